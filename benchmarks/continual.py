"""Ways of learning on after each race, against each other on real data, and what one season of it costs.

    F1_SHARED=/path/to/shared python -m benchmarks.continual [--seeds 3] [--models champion f1net_reference]

Each season is pretrained on the four before it and then learnt race by race; every race is forecast by what had not yet
learnt from it. The default is chosen on 2022-2025 (2022 was the last great change of rules); 2026 is only reported.
Fifteen minutes on one idle core; `--cost` measures the seconds of 2026 instead.
"""
from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmarks.pipeline import RELEASE, _backfill, _rows
from f1_pipelines.evaluation.baselines import BASELINES
from f1_pipelines.evaluation.bootstrap import mean_interval
from f1_pipelines.evaluation.metrics import spearman
from f1_pipelines.models.config import F1NET, RANKER, TrainConfig
from f1_pipelines.models.continual.fisher import fisher_information
from f1_pipelines.models.continual.settings import DEFAULT, DOCUMENTED, UpdateConfig
from f1_pipelines.models.continual.update import LearntState, learn, window_of
from f1_pipelines.models.training import objective, train, training_races

CHOSEN_ON, REPORTED = (2022, 2023, 2024, 2025), 2026
MODELS = {"champion": RANKER, "f1net_reference": F1NET}
_BY_EPOCH = replace(DOCUMENTED, races_per_step=DOCUMENTED.window_races)  # a sixth of the steps, and less noise in each
VARIANTS: dict[str, UpdateConfig] = {
    "none": replace(DOCUMENTED, method="none"),
    "a step a race: finetune": replace(DOCUMENTED, method="finetune"),
    "a step a race: ewc 10 (documented)": DOCUMENTED,
    "a step a race: ewc 1e4": replace(DOCUMENTED, ewc_lambda=1e4),
    "a step an epoch: finetune": replace(_BY_EPOCH, method="finetune"),
    **{f"a step an epoch: ewc {penalty:g}": replace(_BY_EPOCH, ewc_lambda=penalty)
       for penalty in (10, 100, 1e3, 2e3, 1e4, 3e4, 1e5)},
    "a step an epoch: online ewc 2000": replace(_BY_EPOCH, method="online_ewc", ewc_lambda=2e3),
    "a step an epoch: replay": replace(_BY_EPOCH, method="replay"),
    "a step an epoch: freeze all but the read-out": replace(_BY_EPOCH, method="freeze"),
    "a step an epoch: constructor embedding alone": replace(_BY_EPOCH, method="constructors"),
    "a step an epoch: ewc 2000 from the pretrained": DEFAULT,
    **{f"a step an epoch: ewc {penalty:g}, window of 30 races": replace(
        DOCUMENTED, ewc_lambda=penalty, window_races=30, races_per_step=30) for penalty in (2e3, 1e4)},
}


@dataclass(frozen=True)
class Season:
    """A season learnt race by race: Spearman of each forecast (starters, classified), of the last pretraining season
    before and after each update, and the last update's loss and pull."""

    starters: np.ndarray
    classified: np.ndarray
    old: list[float]
    loss: float
    pull: float


def pretrained(rows: pd.DataFrame, config: TrainConfig, season: int, seed: int) -> LearntState:
    """A ranker taught by the four seasons before, with its Fisher."""
    seasons = tuple(range(season - 4, season))
    trained, _ = train(rows, replace(config, seasons=seasons, seed=seed))
    return LearntState(trained, fisher_information(trained, rows[rows["season"].isin(seasons)]))


def learn_season(rows: pd.DataFrame, root: LearntState, season: int, settings: UpdateConfig, every: bool) -> Season:
    """Forecast and learn one race after the other. `every`: look at the old season after each update, not the last."""
    races, old = rows[rows["season"] == season], rows[rows["season"] == season - 1]
    taught = rows[rows["season"].isin(root.trained.seasons)]
    known, told, last = root, [_of_races(root, old)], {"loss": float("nan"), "penalty": 0.0}
    starters, classified = [], []
    weekends = races.sort_values("race_start")["weekend"].unique()
    for weekend in weekends:
        race = races[races["weekend"] == weekend]
        scores = known.trained.scores(race)
        starters.append(_spearman(scores, race, race["started"]))
        classified.append(_spearman(scores, race, race["classified"]))
        if settings.method != "none":
            learnt = learn(known, root, window_of(races, weekend, settings.window_races), settings, taught)
            known, last = learnt.known, learnt.history[-1]
            if every or weekend == weekends[-1]:
                told.append(_of_races(known, old))
    return Season(np.array(starters), np.array(classified), told, last["loss"], last["penalty"])


def comparison(models: list[str], seeds: int) -> None:
    """Print the table, a line as soon as it is known."""
    rows = _real_rows()
    print(f"{'Spearman, mean over races and seeds':58} {'2022':>6} {'2023':>6} {'2024':>6} {'2025':>6} | 2022-25"
          f" against none [95 %]      | {'2026':>6} sd    classified | 2025 before, worst, after R11 | loss + pull")
    for name, seasons in _baselines(rows):
        print(_line(name, seasons, None))
    for model in models:
        roots = {(season, seed): pretrained(rows, MODELS[model], season, seed)
                 for season in (*CHOSEN_ON, REPORTED) for seed in range(seeds)}
        if model == "champion":
            print(f"{model}: EWC is Bayes' rule at a lambda of {bayes(roots[REPORTED, 0], rows):.0f}")
        unadapted = None
        for name, settings in VARIANTS.items():
            if settings.method == "constructors" and model == "champion":
                continue  # it has no embedding
            seasons = {season: [learn_season(rows, roots[season, seed], season, replace(settings, seed=seed),
                                             season == REPORTED) for seed in range(seeds)]
                       for season in (*CHOSEN_ON, REPORTED)}
            unadapted = unadapted or seasons
            print(_line(f"{model[:8]} {name}{' *' if settings == DEFAULT else ''}", seasons, unadapted), flush=True)
    print(f"* the default: {DEFAULT}")


def bayes(known: LearntState, rows: pd.DataFrame) -> float:
    """The lambda at which EWC is Bayes' rule for a full window: what was learnt counts as its races, no more, no less.

    The Fisher squares the gradient of a mean over pairs, so it says too little: the curvature of the loss, here of the
    ranker's line, tells by how much.
    """
    trained, line = known.trained, known.trained.model.line
    batch = trained.batch(training_races(rows, trained.seasons))
    trained.model.eval()
    loss = objective(trained.model, batch, trained.config, torch.Generator())
    (slope,) = torch.autograd.grad(loss, line, create_graph=True)
    curvature = sum(torch.autograd.grad(one, line, retain_graph=True)[0].flatten()[at].item()
                    for at, one in enumerate(slope.flatten()))
    return len(batch) / DOCUMENTED.window_races * curvature / known.fisher["line"].sum().item()


def cost() -> None:
    """Print the seconds of 2026: pretraining with the Fisher, adaptation and every update, as stored checkpoints."""
    from f1_pipelines.features.history import data_version
    from f1_pipelines.models.checkpoints import load_checkpoint
    from f1_pipelines.models.config import PRETRAINING_SEASONS
    from f1_pipelines.models.continual.chain import bring_up_to_date
    from f1_pipelines.models.pretrain import pretrain
    from f1_pipelines.tables.learning import UPDATES

    rows = _real_rows()
    taught, now = rows[rows["season"].isin(PRETRAINING_SEASONS)], datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        made = pretrain(taught, seasons=PRETRAINING_SEASONS, seed=0, temperature=F1NET.temperature, device="cpu",
                        data_version=data_version(taught), folder=Path(folder), created_at=now, log=lambda line: None)
        print(f"{'pretraining and Fisher, both models':46} {time.perf_counter() - wall:6.1f} s, CPU "
              f"{time.process_time() - cpu:.1f} s")
        for one in made:
            chain = bring_up_to_date(load_checkpoint(Path(one.row["path"])), rows, now, DEFAULT, UPDATES.empty(),
                                     folder=Path(folder), created_at=now, log=lambda line: None)
            told = pd.DataFrame([link.update for link in chain.made])
            learnt = told[told["kind"] == "ewc"]
            print(f"{one.row['model']:46} {len(told)} links, the slowest learnt for {told['seconds'].max():.2f} s; "
                  f"Spearman of its forecasts {learnt['spearman_before'].mean():.4f}, grid "
                  f"{learnt['spearman_grid'].mean():.4f}")
        print(f"{'all with adaptation and updates (aim: 60 s)':46} {time.perf_counter() - wall:6.1f} s, CPU "
              f"{time.process_time() - cpu:.1f} s")


def _real_rows() -> pd.DataFrame:
    """Starters of every race since 2018, with features and outcome."""
    if not RELEASE.is_dir():
        raise SystemExit(f"needs the real data of F1_SHARED; there is no {RELEASE}")
    with tempfile.TemporaryDirectory() as folder:
        _backfill(Path(folder) / "continual.duckdb")
        return _rows(Path(folder) / "continual.duckdb")


def _baselines(rows: pd.DataFrame) -> Iterator[tuple[str, dict[int, list[Season]]]]:
    for baseline in BASELINES:
        if baseline.name not in ("grid", "qualifying", "rank_sum"):
            continue
        seasons = {}
        for season in (*CHOSEN_ON, REPORTED):
            races = [race for _, race in rows[rows["season"] == season].groupby("race_start")]
            told = [(_spearman(baseline.scores(race), race, race["started"]),
                     _spearman(baseline.scores(race), race, race["classified"])) for race in races]
            seasons[season] = [Season(*np.array(told).T, [], float("nan"), 0.0)]
        yield baseline.name, seasons


def _line(name: str, seasons: dict[int, list[Season]], unadapted: dict[int, list[Season]] | None) -> str:
    per_season = [np.mean([run.starters.mean() for run in seasons[season]]) for season in CHOSEN_ON]
    chosen, reported = _per_race(seasons), seasons[REPORTED]
    text = f"{name:58} {' '.join(f'{mean:6.4f}' for mean in per_season)} | {chosen.mean():6.4f}"
    if unadapted:
        gain = chosen - _per_race(unadapted)
        low, high = mean_interval(gain)
        text += f"  {gain.mean():+.4f} [{low:+.4f}, {high:+.4f}]"
    means = [run.starters.mean() for run in reported]
    text = (f"{text:124} | {np.mean(means):6.4f} {np.std(means):.4f} "
            f"{np.mean([run.classified.mean() for run in reported]):6.4f}    ")
    if reported[0].old:
        old = np.array([run.old for run in reported]).mean(axis=0)
        text += f" | {old[0]:.4f} {old.min():.4f} {old[-1]:.4f}          "
    if len(reported[0].old) > 1:
        text += f" | {np.mean([run.loss for run in reported]):.4f} + {np.mean([run.pull for run in reported]):.6f}"
    return text


def _per_race(seasons: dict[int, list[Season]]) -> np.ndarray:
    """Spearman of each race of the seasons to choose on, mean over seeds."""
    return np.concatenate([np.mean([run.starters for run in seasons[season]], axis=0) for season in CHOSEN_ON])


def _spearman(scores: np.ndarray, race: pd.DataFrame, kept: pd.Series) -> float:
    kept = kept.to_numpy(bool)
    return spearman(scores[kept], race["official_order"].to_numpy("float64")[kept])


def _of_races(known: LearntState, rows: pd.DataFrame) -> float:
    scored = rows.assign(score=known.trained.scores(rows))
    return float(np.mean([spearman(race["score"], race["official_order"].to_numpy("float64"))
                          for _, race in scored.groupby("weekend")]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="of pretraining and updates")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--cost", action="store_true", help="measure the seconds of 2026 instead")
    asked = parser.parse_args()
    if asked.cost:
        cost()
    else:
        comparison(asked.models, asked.seeds)


if __name__ == "__main__":
    main()
