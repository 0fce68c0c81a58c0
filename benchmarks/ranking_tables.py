"""Every number of the ranker from real data: orders, probabilities, calibration, stages, slices, as markdown.

    F1_SHARED=/path/to/shared python -m benchmarks.ranking_tables [--protocol NAME] [--out FOLDER]

Reads f1db (F1_SHARED/data/f1db-csv), and laps (F1_SHARED/data/laps) to tell wet races from dry ones; writes nothing
unless asked to. Five minutes on two cores.
"""
from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small matrices: threads only wait for each other

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from f1_pipelines.backtest.predictors import TrainedPredictor, champion
from f1_pipelines.backtest.protocols import evaluate, summarise
from f1_pipelines.backtest.report import ProtocolReport, evaluate_protocol, rows_of
from f1_pipelines.backtest.slices import kinds_of_race
from f1_pipelines.evaluation.targets import with_targets
from f1_pipelines.features.ranking import as_known_at, build_ranking_features
from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.sources.f1db.release import F1dbRelease
from f1_pipelines.sources.f1db.source import F1dbSource
from f1_pipelines.sources.laps_archive import LapsArchive
from f1_pipelines.tables.evaluation import PROTOCOLS
from f1_pipelines.tables.features import STAGES

SHARED = Path(os.environ.get("F1_SHARED") or Path(__file__).parents[2] / "shared")
# What was asked of the champion in rolling_2019_2025 (issue 4): at least, or for errors at most.
ROLLING = {"spearman": (0.672, True), "delta_low": (0.02, True), "log_loss_win": (1.25, False),
           "brier_podium": (0.065, False), "ece_win": (0.015, False), "ece_podium": (0.015, False),
           "ece_points": (0.015, False)}


class AtStage:
    """Our ranker, as it ranks when it knows no more than a stage: as it is, or trained on races masked alike."""

    def __init__(self, stage: str, masked_training: bool, of: TrainedPredictor) -> None:
        self._stage, self._masked, self._of = stage, masked_training, of
        self.name = f"{stage}, {'trained for it' if masked_training else 'as it is'}"

    def fit(self, train: pd.DataFrame) -> None:
        """Learn from races."""
        self._of.fit(as_known_at(train, self._stage) if self._masked else train)

    def scores(self, race: pd.DataFrame):
        """Score one race as it was known then."""
        return self._of.scores(as_known_at(race, self._stage))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", choices=PROTOCOLS, action="append", help="these only, and no stages")
    parser.add_argument("--out", type=Path, help="write the tables there as CSV")
    options = parser.parse_args()
    start = time.perf_counter()
    frames = read()
    rows, kinds = frames["rows"], kinds_of_race(frames["calendar"], frames["laps"])
    folds: dict = {}
    for protocol in options.protocol or PROTOCOLS:
        began = time.perf_counter()
        found = evaluate_protocol(rows_of(rows, protocol), frames["results"], kinds, protocol, lambda line: None, folds)
        show(protocol, found, time.perf_counter() - began)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            for name in ("races", "summary", "calibration", "slices"):
                getattr(found, name).to_csv(options.out / f"{protocol}_{name}.csv", index=False)
    if not options.protocol:
        show_stages(rows)
    print(f"\n{time.perf_counter() - start:.0f} s in all")


def read() -> dict[str, pd.DataFrame]:
    """Starters with features and outcome, and what they came from."""
    now, weekends = datetime.now(UTC), known_weekends()
    f1db = F1dbSource(F1dbRelease(SHARED / "data" / "f1db-csv"), lambda: now)
    told = f1db.qualifying(weekends).tables | f1db.practice(weekends).tables | f1db.results(weekends).tables
    frames = {name: told[f"race.{name}"] for name in ("results", "qualifying", "practice", "grid")}
    frames["calendar"] = f1db.calendar(range(weekends[0].season, weekends[-1].season + 1))
    rows = with_targets(build_ranking_features(**frames), frames["results"])
    archive = SHARED / "data" / "laps"
    laps = LapsArchive(archive) if archive.is_dir() else None
    frames["laps"] = laps.laps(laps.weekends()).tables["race.laps"] if laps else pd.DataFrame(columns=["weekend",
                                                                                                        "compound"])
    return {**frames, "rows": rows[rows["started"]]}


def show(protocol: str, found: ProtocolReport, seconds: float) -> None:
    """Orders, probabilities, calibration and slices of one protocol."""
    summary = found.summary
    starters = summary[summary["population"] == "starters"].set_index("predictor")
    classified = summary[summary["population"] == "classified"].set_index("predictor")["spearman"]
    print(f"\n## {protocol}, {starters['n_races'].iloc[0]} races ({seconds:.0f} s), data "
          f"{starters['data_version'].iloc[0]}\n")
    orders = pd.DataFrame({
        "Spearman (classified)": [f"{rho:.3f} ({classified[name]:.3f})" for name, rho in starters["spearman"].items()],
        "against grid": interval(starters, "delta_spearman", "delta"), "NDCG@10": three(starters["ndcg10"]),
        "winner hit": three(starters["top1"]), "podium overlap": three(starters["podium_overlap"]),
        "places off": starters["mae_positions"].map("{:.2f}".format)}, index=starters.index)
    print(orders.to_markdown())
    chances = starters[starters["log_loss_win"].notna()].sort_values("log_loss_win")
    print()
    print(pd.DataFrame({
        "log loss win": three(chances["log_loss_win"]),
        "against grid_logit": interval(chances, "delta_log_loss_win", "delta_log_loss_win"),
        "Brier win": three(chances["brier_win"]), "Brier podium": chances["brier_podium"].map("{:.4f}".format),
        "against grid_logit ": interval(chances, "delta_brier_podium", "delta_brier_podium", 4),
        "Brier points": chances["brier_points"].map("{:.4f}".format),
        "ECE win / podium / points": [f"{row.ece_win:.3f} / {row.ece_podium:.3f} / {row.ece_points:.3f}"
                                      for row in chances.itertuples()]}, index=chances.index).to_markdown())
    if protocol == "rolling_2019_2025":
        ours = starters.loc["champion"]
        print("\ntargets: " + "; ".join(
            f"{name} {ours[name]:.4f} ({'>=' if least else '<='} {goal}: "
            f"{'met' if (ours[name] >= goal) == least or ours[name] == goal else 'MISSED'})"
            for name, (goal, least) in ROLLING.items()))
        bins = found.calibration[found.calibration["predictor"] == "champion"]
        print("\nchampion, predicted / observed (cars), by bin\n")
        cells = bins.assign(cell=[f"{row.mean_probability:.2f} / {row.frequency:.2f} ({row.n})"
                                  for row in bins.itertuples()])
        print(cells.pivot_table(index="bin", columns="event", values="cell", aggfunc="first",
                                fill_value="").to_markdown())
    shown = ["grid", "qualifying", "rank_sum", "champion", "champion_ewc"]
    slices = found.slices[found.slices["predictor"].isin(shown)]
    cells = slices.assign(cell=[
        f"{row.spearman:.3f}" + ("" if row.predictor == "grid" else
                                 f" {row.delta_spearman:+.3f} [{row.delta_low:+.3f}, {row.delta_high:+.3f}]")
        for row in slices.itertuples()])
    print()
    print(cells.pivot_table(index=["kind", "slice", "n_races"], columns="predictor", values="cell", aggfunc="first",
                            sort=False, fill_value="").reset_index().to_markdown(index=False))


def show_stages(rows: pd.DataFrame) -> None:
    """How good our ranker is at each stage, as it is and trained for that stage alone."""
    ours, predictors = champion(), []
    for stage in STAGES:
        predictors.append(AtStage(stage, False, ours))
        if stage != STAGES[-1]:
            predictors.append(AtStage(stage, True, champion()))
    print("\n## Stages: mean Spearman, all starters\n")
    columns = {}
    for protocol in ("rolling_2019_2025", "holdout_2025"):
        races = evaluate(predictors, rows_of(rows, protocol), protocol)
        told = summarise(races, against=predictors[-1].name)
        told = told[told["population"] == "starters"].set_index("predictor")
        columns[protocol] = told["spearman"].round(3)
        columns[f"{protocol}, against all known"] = interval(told, "delta", "delta")
    print(pd.DataFrame(columns).reindex([predictor.name for predictor in predictors]).to_markdown())


def interval(rows: pd.DataFrame, mean: str, bounds: str, digits: int = 3) -> list[str]:
    """Means with their intervals; nothing where a predictor is compared with itself."""
    return ["" if row[mean] == row[f"{bounds}_low"] == row[f"{bounds}_high"] == 0 else
            f"{row[mean]:+.{digits}f} [{row[f'{bounds}_low']:+.{digits}f}, {row[f'{bounds}_high']:+.{digits}f}]"
            for _, row in rows.iterrows()]


def three(values: pd.Series) -> pd.Series:
    return values.map("{:.3f}".format)


if __name__ == "__main__":
    main()
