"""Own warehouse and resources for each test, over the real f1db release."""
import shutil
from functools import partial
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest

from f1_pipelines.definitions import defs
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.compute import Compute
from f1_pipelines.resources.engineers import Engineers
from f1_pipelines.resources.race_data import Clock, RaceData
from f1_pipelines.resources.tracking import Tracking
from f1_pipelines.resources.warehouse import Warehouse


@pytest.fixture(scope="session")
def lend(f1db_folder: Path):
    """Build resources that store everything in one folder."""
    def resources(folder: Path) -> dict[str, object]:
        return {
            "warehouse": Warehouse(path=str(folder / "f1.duckdb"), wait_s=5),
            "race_data": RaceData(source="f1db", f1db_path=str(f1db_folder), f1db_folder=str(folder),
                                  fastf1_cache=str(folder / "fastf1")),
            "clock": Clock(fixed="2026-08-22T06:00:00+00:00"),
            "compute": Compute(device="cpu"),
            "checkpoints": Checkpoints(path=str(folder / "checkpoints")),
            "engineers": Engineers(path=str(folder / "engineers"), pictures=str(folder / "pictures")),
            "tracking": Tracking(),
        }

    return resources


@pytest.fixture(scope="session")
def without_grid(f1db_folder: Path, tmp_path_factory) -> Path:
    """The f1db release without the grid of Australia 2026."""
    folder = shutil.copytree(f1db_folder, tmp_path_factory.mktemp("without-grid") / "f1db")
    races = pd.read_csv(folder / "f1db-races.csv")
    [race] = races.loc[(races["year"] == 2026) & (races["grandPrixId"] == "australia"), "id"]
    for name in ("races-starting-grid-positions", "races-race-results"):
        file = folder / f"f1db-{name}.csv"
        rows = pd.read_csv(file, dtype="string", keep_default_na=False)
        if "gridPositionNumber" in rows:
            rows.loc[rows["raceId"] == str(race), ["gridPositionNumber", "gridPositionText"]] = ""
        else:
            rows = rows[rows["raceId"] != str(race)]
        rows.to_csv(file, index=False)
    return folder


@pytest.fixture
def resources(tmp_path: Path, lend, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    return lend(tmp_path)


@pytest.fixture(scope="session")
def materialize():
    """Materialize assets and their checks for a weekend or a range; return Dagster's result."""
    def run(resources: dict[str, object], *names: str, partition: str | None = None, until: str | None = None,
            raises: bool = False, run_config: dict | None = None) -> dg.ExecuteInProcessResult:
        tags = {"dagster/asset_partition_range_start": partition, "dagster/asset_partition_range_end": until}
        return dg.materialize(
            [*defs.assets, *defs.asset_checks], selection=dg.AssetSelection.assets(*names), resources=resources,
            raise_on_error=raises, partition_key=None if until else partition, tags=tags if until else None,
            run_config=run_config)

    return run


@pytest.fixture
def run(resources, materialize):
    """`materialize` with the test's own resources."""
    return partial(materialize, resources)


@pytest.fixture
def rows(resources):
    """Rows of a query on the published warehouse."""
    def query(sql: str) -> list[tuple]:
        with resources["warehouse"].read() as connection:
            return connection.execute(sql).fetchall()
    return query


@pytest.fixture(scope="session")
def season(lend, materialize, tmp_path_factory):
    """Resources with six races of 2025 and 2026-netherlands after first practice, a trained ranker and predictions."""
    folder, races = tmp_path_factory.mktemp("season"), {"partition": "2025-australia", "until": "2025-miami"}
    resources, upcoming = lend(folder), "2026-netherlands"
    sessions = ("race_calendar", "practice_results", "qualifying_results", "race_results")
    training = {"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("F1_WAREHOUSE", str(folder / "f1.duckdb"))
        assert materialize(resources, *sessions, "ranking_features", **races).success
        assert materialize(resources, *sessions, partition="2026-hungary").success
        assert materialize(resources, "race_calendar", "practice_results", "ranking_features", partition=upcoming,
                           raises=True).success
        assert materialize(resources, "pretrained_ranker", "promoted_ranker", run_config=training).success
        assert materialize(resources, "race_predictions", **races).success
        assert materialize(resources, "race_predictions", partition=upcoming, raises=True).success
    return resources
