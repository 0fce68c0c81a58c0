"""A simulated season: a source that tests can change, a clock that they set, and a real Dagster instance."""
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from f1_pipelines.definitions import defs
from f1_pipelines.settings import settings
from tests.automation.season import CODE, Season, range_tags, resources_in
from tests.automation.season_source import SeasonData, SetClock, World, extend_sample


@pytest.fixture(scope="session")
def winter(tmp_path_factory) -> Path:
    """A folder with the warehouse before the season: 2025 stored, a ranker pretrained on it."""
    folder = tmp_path_factory.mktemp("winter")
    SeasonData.world, SetClock.at = World(), datetime(2026, 2, 1, tzinfo=UTC)
    config = {"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}
    spans = [("2025-singapore", "2026-abu-dhabi", ("race_calendar",), None),
             ("2025-singapore", "2025-abu-dhabi", ("qualifying_results", "race_results", "ranking_features",
                                                   "pretrained_ranker", "promoted_ranker"), config)]
    with pytest.MonkeyPatch.context() as patch:
        extend_sample(patch)
        patch.setenv("F1_WAREHOUSE", str(folder / "f1.duckdb"))
        for first, last, names, run_config in spans:
            assert dg.materialize(defs.assets, resources=resources_in(folder), tags=range_tags(first, last),
                                  selection=dg.AssetSelection.assets(*names), run_config=run_config).success
    return folder


@pytest.fixture(scope="session")
def no_disk_flush():
    """Dagster's databases stay on disk, but are not flushed after each of a run's hundred events."""
    def relax(connection, _) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", relax)
    yield
    event.remove(Engine, "connect", relax)


@pytest.fixture
def season(no_disk_flush, winter, tmp_path, monkeypatch):
    """The season, starting from the winter's warehouse."""
    folder = tmp_path / "season"
    shutil.copytree(winter, folder)
    extend_sample(monkeypatch)
    monkeypatch.setenv("F1_WAREHOUSE", str(folder / "f1.duckdb"))
    assert settings().f1_warehouse.exists()
    SeasonData.world = World()
    # One database for all events: creating one per run takes longer than most runs.
    storage = {"event_log_storage": {"module": "dagster._core.storage.event_log",
                                     "class": "ConsolidatedSqliteEventLogStorage",
                                     "config": {"base_dir": str(tmp_path / "events")}}}
    loaded = {name: module for name, module in sys.modules.items() if name.startswith(CODE)}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=storage) as instance:
        yield Season(folder, instance)
    sys.modules.update(loaded)
