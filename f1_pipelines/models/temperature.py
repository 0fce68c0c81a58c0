"""The temperature of F1Net's ListNet loss, searched by Hyperopt.

Notable choices:
- Judged on the last season inside the training seasons, by models that learnt from the ones before. The season that
  an evaluation tests on is never looked at.
- Each proposal depends on the trials before it and on the seed and number of the trial, on nothing else. Trials are
  kept as JSON lines, one synced line each, so a search that was stopped goes on and ends as if it never had been.
- A trials file says what it was searched for; one that belongs to other data or settings is put aside and begun anew.
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
RANDOM_TRIALS = 5  # before TPE has something to go by

Progress = Callable[[int, float, float], None]


@dataclass(frozen=True)
class TemperatureResult:
    """The best temperature, its mean Spearman, and all trials: trial (from 1), temperature, spearman."""

    temperature: float
    spearman: float
    trials: pd.DataFrame


def search_temperature(
    frame: pd.DataFrame, trials_file: Path, *, max_trials: int = 12, seed: int = 0, config: TrainConfig = F1NET,
    progress: Progress | None = None,
) -> TemperatureResult:
    """Search for the temperature, going on from the trials in `trials_file`.

    Args:
        frame: As for `train`. The last of `config.seasons` in it is the season to judge on; needs two at least.
        trials_file: JSON lines, made when it is not there.
        max_trials: Trials in all, those in the file included.
        seed: Of the search and of each training.
        config: Dial settings of the trainings.
        progress: Called after each trial with its number, its temperature and its mean Spearman.
    """
    races = training_races(frame, config.seasons)
    *learnt, judged = sorted(int(season) for season in races["season"].unique())
    if not learnt:
        raise ValueError(f"only {judged} has races; a search needs a season to learn from and a later one to judge on")
    config = replace(config, seasons=tuple(learnt), seed=seed)
    test = races[races["season"] == judged]
    done = _read(trials_file, {"seed": seed, "config": asdict(replace(config, temperature=0.0)), "judged": judged,
                               "range": [LOWEST, HIGHEST], "data": _digest(races, config)})
    for number in range(len(done) + 1, max_trials + 1):
        temperature = _propose(done, number, seed)
        trained, _ = train(races, replace(config, temperature=temperature))
        done.append({"trial": number, "temperature": temperature, "spearman": _mean_spearman(trained, test)})
        _append(trials_file, done[-1])
        if progress is not None:
            progress(number, temperature, done[-1]["spearman"])
    table = pd.DataFrame(done[:max_trials], columns=["trial", "temperature", "spearman"])
    best = table.loc[table["spearman"].idxmax()]  # the first of equals
    return TemperatureResult(float(best["temperature"]), float(best["spearman"]), table)


def _propose(done: list[dict[str, Any]], number: int, seed: int) -> float:
    """What TPE would try next, from nothing but the trials done, the seed and the number."""
    space = {"temperature": hp.loguniform("temperature", np.log(LOWEST), np.log(HIGHEST))}
    domain, trials = Domain(lambda point: 0.0, space), Trials()
    for trial in done:
        misc = {"tid": trial["trial"], "cmd": domain.cmd, "workdir": None, "idxs": {"temperature": [trial["trial"]]},
                "vals": {"temperature": [trial["temperature"]]}}
        result = {"loss": -trial["spearman"], "status": STATUS_OK}
        documents = trials.new_trial_docs([trial["trial"]], [None], [result], [misc])
        trials.insert_trial_docs([document | {"state": JOB_STATE_DONE} for document in documents])
    trials.refresh()
    suggest = partial(tpe.suggest, n_startup_jobs=RANDOM_TRIALS, verbose=False)
    random_state = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    return float(suggest([number], domain, trials, random_state)[0]["misc"]["vals"]["temperature"][0])


def _mean_spearman(trained: TrainedRanker, test: pd.DataFrame) -> float:
    scored = test.assign(score=trained.scores(test))
    return float(np.mean([spearman(race["score"], race["official_order"].astype("float64"))
                          for _, race in scored.groupby("weekend") if len(race) > 1]))


def _read(path: Path, search: dict[str, Any]) -> list[dict[str, Any]]:
    """Trials of this search in the file, whose first line says which search it is."""
    search = json.loads(json.dumps(search))
    if path.exists():
        # A run that was killed may have left half a line: only what ends in a line break was written.
        whole = path.read_text().rpartition("\n")[0].splitlines()
        if whole and json.loads(whole[0]) == search:
            _replace(path, whole)
            return [json.loads(line) for line in whole[1:]]
        path.replace(path.with_name(path.name + ".other"))
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, [json.dumps(search, sort_keys=True)])
    return []


def _replace(path: Path, lines: list[str]) -> None:
    growing = path.with_name(f".{path.name}-{os.getpid()}")
    growing.write_text("".join(f"{line}\n" for line in lines))
    growing.replace(path)


def _append(path: Path, trial: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(trial) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _digest(races: pd.DataFrame, config: TrainConfig) -> str:
    """Of everything a training reads, whatever order the rows are in."""
    columns = ["weekend", "driver", "constructor", "season", "official_order", *config.features]
    rows = races[columns].sort_values(["weekend", "driver"]).astype({
        name: "float64" for name in ("season", "official_order", *config.features)})
    hashes = pd.util.hash_pandas_object(rows.astype({"weekend": str, "driver": str, "constructor": str}), index=False)
    return hashlib.sha256(hashes.to_numpy().tobytes()).hexdigest()[:16]
