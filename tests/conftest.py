"""Fixtures for several folders: the real data beside the project, and a source over them."""
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("F1_SHARED") or Path(__file__).parents[2] / "shared")
# Creating an MLflow store takes eight seconds: tests that track copy `migrated`.
os.environ["MLFLOW_TRACKING_URI"] = "off"
# No requests to the Hugging Face hub.
os.environ["HF_HUB_OFFLINE"] = "1"
# The default of ten thousand simulated races takes five seconds per forecast.
os.environ["F1_SIMULATED_RACES"] = "100"
NOW = datetime(2026, 8, 22, 6, 0, tzinfo=UTC)  # the morning after first practice of 2026-netherlands


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real data; without it the test is skipped, or fails in CI."""
    if not (SHARED / "data").is_dir():
        _missing(SHARED)
    return SHARED


@pytest.fixture(scope="session")
def shared_data(shared: Path) -> Callable[[str], Path]:
    """Get a folder of the real data by name, `shared_data("f1db-csv")`; without it, like `shared`."""
    def folder_of(name: str) -> Path:
        folder = shared / "data" / name
        if not folder.is_dir():
            _missing(folder)
        return folder

    return folder_of


def _missing(folder: Path) -> None:
    refuse = pytest.fail if os.environ.get("F1_SHARED_REQUIRED") else pytest.skip
    refuse(f"needs the real data of F1_SHARED; {folder} does not exist")


@pytest.fixture(scope="session")
def migrated(tmp_path_factory) -> Path:
    """The file of a new MLflow store."""
    from mlflow import MlflowClient

    file = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    MlflowClient(f"sqlite:///{file}").search_experiments()
    return file


@pytest.fixture(scope="session")
def f1db_folder(shared_data: Callable[[str], Path]) -> Path:
    return shared_data("f1db-csv")


@pytest.fixture(scope="session")
def f1db(f1db_folder: Path):
    """The real f1db release as a source, on the morning of 22 August 2026."""
    from f1_pipelines.sources.f1db.release import F1dbRelease
    from f1_pipelines.sources.f1db.source import F1dbSource

    return F1dbSource(F1dbRelease(f1db_folder), lambda: NOW)


@pytest.fixture(scope="session")
def real(f1db):
    """The frames that features are built from, for all weekends since 2018. Tests must copy them before changes."""
    from f1_pipelines.identity.weekends import known_weekends
    from f1_pipelines.sources.calendar import calendar_rows

    weekends = known_weekends()
    tables = f1db.qualifying(weekends).tables | f1db.practice(weekends).tables | f1db.results(weekends).tables
    return {"calendar": calendar_rows(weekends, NOW),
            **{name: tables[f"race.{name}"] for name in ("results", "qualifying", "practice", "grid")}}


@pytest.fixture(scope="session")
def real_features(real):
    from f1_pipelines.features.ranking import build_ranking_features

    return build_ranking_features(**real)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the groups of `--dist loadgroup` together, so that shared fixtures are built once.

    2026-11: xdist 3.8 writes a group into `_nodeid`, which pytest 9.2 no longer reads; its scheduler reads the group
    from the id.
    """
    if not hasattr(config, "workerinput") or not config.getoption("loadgroup", False):
        return
    from _pytest.nodeid import coerce_node_id

    for item in items:
        marker = item.get_closest_marker("xdist_group")
        group = marker and (marker.args[0] if marker.args else marker.kwargs["name"])
        if group and not item.nodeid.endswith(f"@{group}"):
            item._id = coerce_node_id(f"{item.nodeid}@{group}")
