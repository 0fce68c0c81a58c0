"""A real server on the loopback interface for client tests, and a warehouse with sample seasons."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import uvicorn

from f1_pipelines.serve.app import create_app
from f1_pipelines.serve.run import config_of, listen
from f1_pipelines.serve.settings import ServeSettings


@contextmanager
def serving(settings: ServeSettings) -> Iterator[str]:
    """Run a server without pages; yields its address."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(config_of(create_app(settings, pages=False), settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server ended during startup"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory) -> Iterator[None]:
    """No warehouse is published."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("F1_WAREHOUSE", str(tmp_path_factory.mktemp("warehouse") / "f1.duckdb"))
        yield


@pytest.fixture(scope="module")
def url(nowhere) -> Iterator[str]:
    """A server with limits that no test reaches."""
    with serving(ServeSettings(requests_per_s=10_000, burst=10_000)) as address:
        yield address


@pytest.fixture
def serve(nowhere) -> Iterator[Callable[..., str]]:
    """`serve(sessions=1)` starts another server with that limit."""
    with ExitStack() as servers:
        yield lambda **limits: servers.enter_context(
            serving(ServeSettings(**{"requests_per_s": 10_000, "burst": 10_000, **limits})))


SEASONS = (("2025-australia", "2025-bahrain"), ("2026-australia", "2026-japan"))
UPCOMING = "2026-miami"  # qualifying is over
_DATA_ASSETS = ("race_calendar", "practice_results", "qualifying_results", "race_results", "ranking_features")


@pytest.fixture(scope="session")
def sample_seasons(tmp_path_factory) -> Path:
    """Folder with a warehouse of some sample races, rankers trained on them, predictions and evaluation."""
    import dagster as dg

    from f1_pipelines.definitions import defs
    from f1_pipelines.resources.checkpoints import Checkpoints
    from f1_pipelines.resources.compute import Compute
    from f1_pipelines.resources.race_data import Clock, RaceData
    from f1_pipelines.resources.tracking import Tracking
    from f1_pipelines.resources.warehouse import Warehouse

    folder = tmp_path_factory.mktemp("seasons")
    resources = {"warehouse": Warehouse(path=str(folder / "f1.duckdb")),
            "race_data": RaceData(source="sample", f1db_folder=str(folder), fastf1_cache=str(folder)),
            "clock": Clock(fixed="2026-05-03T12:00:00+00:00"), "compute": Compute(device="cpu"),
            "checkpoints": Checkpoints(path=str(folder / "checkpoints")), "tracking": Tracking()}

    def materialize(first: str, last: str, *names: str, **config: object) -> None:
        span = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        dg.materialize([*defs.assets], selection=dg.AssetSelection.assets(*names), tags=span,
                       resources={**defs.resources, **resources},
                       run_config={"ops": {name: {"config": values} for name, values in config.items()}})

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("F1_WAREHOUSE", str(folder / "f1.duckdb"))
        patch.setenv("F1_SIMULATED_RACES", "0")
        for first, last in SEASONS:
            materialize(first, last, *_DATA_ASSETS)
        materialize(UPCOMING, UPCOMING, *_DATA_ASSETS[:3], _DATA_ASSETS[-1])
        materialize(*SEASONS[0], "pretrained_ranker", "promoted_ranker",
                    pretrained_ranker={"seasons": [2025], "temperature": 3.4})
        materialize(SEASONS[1][0], UPCOMING, "race_predictions", "ranking_evaluation")
    return folder


@pytest.fixture(scope="module")
def stored(sample_seasons: Path) -> Iterator[Path]:
    """Publish the sample seasons."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("F1_WAREHOUSE", str(sample_seasons / "f1.duckdb"))
        yield sample_seasons
