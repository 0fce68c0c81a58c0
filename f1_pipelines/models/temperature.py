"""Search for the temperature of F1Net's ListNet loss with Hyperopt.

Notable choices:
- Models are trained on all training seasons but the last, which validates them. Test seasons of an evaluation are never
  used.
- Each proposal depends only on the earlier trials, the seed and the trial number. Trials are stored as JSON lines,
  synced one by one, so an interrupted search resumes with the same result.
- The first line of the trials file identifies data and settings; a file of another search is renamed and a new one
  started.
"""
from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hyperopt import JOB_STATE_DONE, STATUS_OK, Trials, hp, tpe
from hyperopt.base import Domain

from f1_pipelines.evaluation.metrics import spearman
from f1_pipelines.models.config import F1NET, TrainConfig
from f1_pipelines.models.trained import TrainedRanker
from f1_pipelines.models.training import train, training_races

LOWEST, HIGHEST = 0.5, 10.0
RANDOM_TRIALS = 5  # before TPE starts

Progress = Callable[[int, float, float], None]


@dataclass(frozen=True)
class TemperatureResult:
    """Best temperature, its mean Spearman, and all trials: trial (from 1), temperature, spearman."""

    temperature: float
    spearman: float
    trials: pd.DataFrame


def search_temperature(
    frame: pd.DataFrame, trials_file: Path, *, max_trials: int = 12, seed: int = 0, config: TrainConfig = F1NET,
    progress: Progress | None = None,
) -> TemperatureResult:
    """Search for the temperature, resuming from the trials in `trials_file`.

    Args:
        frame: As for `train`. The last of `config.seasons` in it is the validation season; needs at least two.
        trials_file: JSON lines; created if missing.
        max_trials: Total number of trials, including those in the file.
        seed: Seed of the search and of each training.
        config: Hyperparameters of the trainings.
        progress: Called after each trial with its number, temperature and mean Spearman.

    Raises:
        ValueError: Only one season has races.
    """
    races = training_races(frame, config.seasons)
    *training_seasons, validation_season = sorted(int(season) for season in races["season"].unique())
    if not training_seasons:
        raise ValueError(f"only {validation_season} has races; a search needs a season to train on and a later one to "
                         "validate on")
    config = replace(config, seasons=tuple(training_seasons), seed=seed)
    validation = races[races["season"] == validation_season]
    trials = _read(trials_file, {
        "seed": seed, "config": asdict(replace(config, temperature=0.0)), "judged": validation_season,
        "range": [LOWEST, HIGHEST], "data": _digest(races, config)})
    for number in range(len(trials) + 1, max_trials + 1):
        temperature = _propose(trials, number, seed)
        trained, _ = train(races, replace(config, temperature=temperature))
        trials.append({"trial": number, "temperature": temperature, "spearman": _mean_spearman(trained, validation)})
        _append(trials_file, trials[-1])
        if progress is not None:
            progress(number, temperature, trials[-1]["spearman"])
    table = pd.DataFrame(trials[:max_trials], columns=["trial", "temperature", "spearman"])
    best = table.loc[table["spearman"].idxmax()]  # the first of ties
    return TemperatureResult(float(best["temperature"]), float(best["spearman"]), table)


def _propose(previous: list[dict[str, Any]], number: int, seed: int) -> float:
    """TPE's next proposal, a pure function of the previous trials, the trial number and the seed."""
    space = {"temperature": hp.loguniform("temperature", np.log(LOWEST), np.log(HIGHEST))}
    domain, trials = Domain(lambda point: 0.0, space), Trials()
    for trial in previous:
        misc = {"tid": trial["trial"], "cmd": domain.cmd, "workdir": None, "idxs": {"temperature": [trial["trial"]]},
                "vals": {"temperature": [trial["temperature"]]}}
        result = {"loss": -trial["spearman"], "status": STATUS_OK}
        documents = trials.new_trial_docs([trial["trial"]], [None], [result], [misc])
        trials.insert_trial_docs([document | {"state": JOB_STATE_DONE} for document in documents])
    trials.refresh()
    suggest = partial(tpe.suggest, n_startup_jobs=RANDOM_TRIALS, verbose=False)
    random_state = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    return float(suggest([number], domain, trials, random_state)[0]["misc"]["vals"]["temperature"][0])


def _mean_spearman(trained: TrainedRanker, rows: pd.DataFrame) -> float:
    scored = rows.assign(score=trained.scores(rows))
    return float(np.mean([spearman(race["score"], race["official_order"].astype("float64"))
                          for _, race in scored.groupby("weekend") if len(race) > 1]))


def _read(path: Path, search: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the trials of this search. Renames a file of another search, and starts a new one."""
    search = json.loads(json.dumps(search))
    if path.exists():
        # A killed run may have left an incomplete last line, without a line break.
        lines = path.read_text().rpartition("\n")[0].splitlines()
        if lines and json.loads(lines[0]) == search:
            _replace(path, lines)
            return [json.loads(line) for line in lines[1:]]
        path.replace(path.with_name(path.name + ".other"))
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, [json.dumps(search, sort_keys=True)])
    return []


def _replace(path: Path, lines: list[str]) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    temporary.write_text("".join(f"{line}\n" for line in lines))
    temporary.replace(path)


def _append(path: Path, trial: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(trial) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _digest(races: pd.DataFrame, config: TrainConfig) -> str:
    """Digest of everything that training reads, independent of the order of the rows."""
    columns = ["weekend", "driver", "constructor", "season", "official_order", *config.features]
    rows = races[columns].sort_values(["weekend", "driver"]).astype({
        name: "float64" for name in ("season", "official_order", *config.features)})
    hashes = pd.util.hash_pandas_object(rows.astype({"weekend": str, "driver": str, "constructor": str}), index=False)
    return hashlib.sha256(hashes.to_numpy().tobytes()).hexdigest()[:16]
