"""What the flow from f1db to a prediction costs: `python -m benchmarks.pipeline`. Needs F1_SHARED."""
from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import measure, print_table

RELEASE = Path(os.environ.get("F1_SHARED", Path(__file__).parents[2] / "shared")) / "data" / "f1db-csv"


def main() -> None:
    if not RELEASE.is_dir():
        raise SystemExit(f"needs the real data of F1_SHARED; there is no {RELEASE}")
    with tempfile.TemporaryDirectory() as folder:
        plain, by_dagster = Path(folder) / "plain.duckdb", Path(folder) / "dagster.duckdb"
        backfill = measure(_backfill, plain)
        dagster = measure(_backfill_by_dagster, by_dagster)
        rows = [
            ("definitions load", measure(_load_definitions), "aim: under 3 s"),
            ("backfill 2018-2026, functions alone", backfill, f"{backfill.told:,} rows"),
            ("backfill 2018-2026, by Dagster, start-up apart", dagster,
             f"aim: under 20 s; {dagster.wall_s / backfill.wall_s:.1f} x the functions alone"),
            ("features of all seasons", measure(_features, plain), "aim: under 5 s"),
        ]
        for model in ("champion", "f1net_reference"):
            rows.append((f"pretraining on 2022-2025, {model}", measure(_pretrain, plain, model), "aim: under 30 s"))
        for protocol in ("rolling_2019_2025", "holdout_2025", "prequential_2026"):
            rows.append((f"evaluation, {protocol}", measure(_evaluate, plain, protocol), ""))
    print_table("From f1db to a prediction", rows)


def _load_definitions() -> None:
    import f1_pipelines.definitions  # noqa: F401


def _backfill(path: Path) -> int:
    from f1_pipelines.identity.weekends import known_weekends
    from f1_pipelines.sources.base import Fetched
    from f1_pipelines.sources.f1db.release import F1dbRelease
    from f1_pipelines.sources.f1db.source import F1dbSource
    from f1_pipelines.warehouse.database import WarehouseFile
    from f1_pipelines.warehouse.ingest import store

    source, weekends = F1dbSource(F1dbRelease(RELEASE), lambda: datetime.now(UTC)), known_weekends()
    warehouse, written = WarehouseFile(path), 0
    calendar = Fetched({"race.calendar": source.calendar(range(2018, 2027))})
    for fetched in (calendar, source.practice(weekends), source.qualifying(weekends), source.results(weekends)):
        with warehouse.write("benchmark") as connection:
            written += sum(store(connection, fetched).values())
    return written


def _backfill_by_dagster(path: Path) -> None:
    os.environ.update(F1_SOURCE="f1db", F1_F1DB_PATH=str(RELEASE), F1_WAREHOUSE=str(path))
    import logging
    import shutil

    import dagster as dg

    from f1_pipelines.assets.partitions import race_weekends
    from f1_pipelines.definitions import defs
    from f1_pipelines.settings import PROJECT_ROOT

    logging.disable(logging.CRITICAL)  # a line for each of 872 materializations would bury the table
    shutil.copy(PROJECT_ROOT / "dagster.yaml", path.parent)
    keys = race_weekends.get_partition_keys()
    with dg.DagsterInstance.local_temp(str(path.parent)) as instance:
        dg.materialize(
            [*defs.assets, *defs.asset_checks], resources=defs.resources, instance=instance,
            selection=dg.AssetSelection.assets("race_calendar", "practice_results", "qualifying_results",
                                               "race_results"),
            tags={"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]})


def _history(path: Path):
    from f1_pipelines.features.history import read_history
    from f1_pipelines.warehouse.database import WarehouseFile

    with WarehouseFile(path).read() as connection:
        return read_history(connection)


def _features(path: Path):
    from f1_pipelines.features.ranking import build_ranking_features

    history = _history(path)
    return len(build_ranking_features(history.calendar, history.results, history.qualifying, history.practice,
                                      history.grid))


def _rows(path: Path):
    from f1_pipelines.evaluation.targets import with_targets
    from f1_pipelines.features.ranking import build_ranking_features

    history = _history(path)
    features = build_ranking_features(history.calendar, history.results, history.qualifying, history.practice,
                                      history.grid)
    rows = with_targets(features, history.results)
    return rows[rows["started"]]


def _pretrain(path: Path, model: str) -> None:
    from f1_pipelines.models.config import F1NET, RANKER
    from f1_pipelines.models.training import train

    train(_rows(path), RANKER if model == "champion" else F1NET)


def _evaluate(path: Path, protocol: str) -> None:
    import pandas as pd

    from f1_pipelines.backtest.report import evaluate_protocol, rows_of
    from f1_pipelines.backtest.slices import kinds_of_race

    history = _history(path)
    kinds = kinds_of_race(history.calendar, pd.DataFrame(columns=["weekend", "compound"]))
    evaluate_protocol(rows_of(_rows(path), protocol), history.results, kinds, protocol, log=lambda line: None)


if __name__ == "__main__":
    main()
