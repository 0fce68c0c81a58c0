"""Real MLflow stores, each a copy of one migrated store."""
import shutil
from pathlib import Path

import pytest

from f1_pipelines.tracking.store import TrackingStore


@pytest.fixture
def store(migrated: Path, tmp_path: Path) -> TrackingStore:
    shutil.copy(migrated, tmp_path / "mlflow.db")
    return TrackingStore(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path)
