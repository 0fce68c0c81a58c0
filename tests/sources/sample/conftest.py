"""A sample source on a day after its end, and all its tables, fetched once."""
from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.identity.line_ups import embedded_weekends
from f1_pipelines.sources.base import Fetched
from f1_pipelines.sources.sample import SampleSource

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
# The three kinds of sprint weekend, conventional ones, 22 cars with and without a sprint; 2025-australia is wet.
WEEKENDS = ("2022-emilia-romagna", "2023-austria", "2024-sao-paulo", "2025-australia", "2025-bahrain", "2026-china",
            "2026-monaco")
METHODS = ("practice", "qualifying", "results", "laps")


@pytest.fixture(scope="session")
def make_source():
    """Make a new source, at noon of 29 November 2026 or another time."""
    return lambda now=NOW: SampleSource(lambda: now)


@pytest.fixture(scope="session")
def weekends():
    return [embedded_weekends()[key] for key in WEEKENDS]


@pytest.fixture(scope="session")
def all_tables(make_source) -> dict[str, pd.DataFrame]:
    """All tables of 2022-2026, weather and grids included."""
    source = make_source()
    weekends = [weekend for weekend in embedded_weekends().values() if weekend.season >= 2022]
    tables: dict[str, list[pd.DataFrame]] = {"race.calendar": [source.calendar(range(2022, 2027))]}
    for method in METHODS:
        for name, frame in getattr(source, method)(weekends).tables.items():
            tables.setdefault(name, []).append(frame)
    return {name: pd.concat(frames, ignore_index=True) for name, frames in tables.items()}


@pytest.fixture(scope="session")
def digests():
    """SHA-256 of each frame without `fetched_at`."""
    def of(fetched: Fetched) -> dict[str, str]:
        return {name: hashlib.sha256(frame.drop(columns="fetched_at").to_csv(index=False).encode()).hexdigest()
                for name, frame in fetched.tables.items()}
    return of
