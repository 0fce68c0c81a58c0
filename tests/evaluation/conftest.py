"""The real seasons with their outcome, as predictors are judged on them."""
import os
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from f1_pipelines.evaluation.targets import with_targets
from f1_pipelines.features.ranking import build_ranking_features
from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.sources.calendar import calendar_rows
from f1_pipelines.sources.f1db import F1dbSource
from f1_pipelines.sources.f1db_release import F1dbRelease

_NOW = datetime(2026, 8, 22, tzinfo=UTC)
_SHARED = Path(os.environ.get("F1_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")


@pytest.fixture(scope="session")
def races() -> pd.DataFrame:
    folder = _SHARED / "data" / "f1db-csv"
    if not folder.is_dir():
        pytest.skip(f"no f1db release at {folder}; set F1_SHARED to the folder that holds data/f1db-csv")
    source, weekends = F1dbSource(F1dbRelease(folder), now=lambda: _NOW), known_weekends()
    tables = source.qualifying(weekends).tables | source.practice(weekends).tables | source.results(weekends).tables
    frames = {name: tables[f"race.{name}"] for name in ("results", "qualifying", "practice", "grid")}
    features = build_ranking_features(calendar_rows(weekends, _NOW), **frames)
    return with_targets(features, frames["results"])
