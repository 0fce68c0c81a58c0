"""A warehouse, races with a planted order, and rankers with hand-set weights of two features."""
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from f1_pipelines.models.checkpoints import Checkpoint, save_checkpoint
from f1_pipelines.models.config import TrainConfig
from f1_pipelines.models.ranker import Ranker, RankerConfig
from f1_pipelines.models.trained import TrainedRanker
from f1_pipelines.models.vocabulary import Vocabulary
from f1_pipelines.promotion import RULE, Rule, decide, record, store_checkpoints
from f1_pipelines.tables.features import RANKING
from f1_pipelines.tables.race import RESULTS
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices

NOW = datetime(2026, 8, 1, tzinfo=UTC)
# Both determine the order of these races, lower is better; the grid depends on the gap only.
FEATURES = ("qualifying_gap_pct", "driver_finish_form")


@pytest.fixture(scope="session")
def races() -> pd.DataFrame:
    """Eight races of 2026 with twenty cars."""
    rng = np.random.default_rng(0)
    races = []
    for number in range(8):
        gap, form, luck = rng.normal(size=(3, 20))
        races.append(pd.DataFrame({
            "weekend": f"2026-race-{number}", "season": 2026, "driver": [f"driver-{car:02d}" for car in range(20)],
            "constructor": [f"team-{car // 2:02d}" for car in range(20)], "entered": True, "started": True,
            "race_start": pd.Timestamp(2026, 3, 1, tz="UTC") + pd.Timedelta(weeks=number),
            "qualifying_gap_pct": gap + 5, "driver_finish_form": form / 10 + 0.5,
            "grid_position": (pd.Series(gap) + 0.8 * luck).rank(),
            "official_order": (pd.Series(gap) + form + 0.4 * luck[::-1]).rank().astype("Int32"), "classified": True}))
    return pd.concat(races, ignore_index=True)


@dataclass
class Store:
    """A warehouse with checkpoints."""

    file: WarehouseFile
    folder: Path

    def add(self, weights: tuple[float, float], through: str = "2025-abu-dhabi", parent: str | None = None,
             learning: dict | None = None) -> str:
        """Store a ranker trained through a weekend; return its id."""
        config = TrainConfig(features=FEATURES)
        model = Ranker(RankerConfig(len(FEATURES), members=1))
        with torch.no_grad():
            model.narrow.zero_()
            model.line[0, :, 0] = torch.tensor(weights)
        trained = TrainedRanker(model.eval(), config, Vocabulary(()), Vocabulary(()), (2025,), "2025-australia",
                                through, 24)
        checkpoint = save_checkpoint(trained, self.folder, kind="ewc" if parent else "pretrained", parent=parent,
                                     data_version="x", created_at=NOW, learning=learning)
        with self.file.write("test") as connection:
            store_checkpoints(connection, pd.DataFrame([row_of(checkpoint)]))
        return checkpoint.id

    def load(self, races: pd.DataFrame) -> None:
        """Store these races with their outcome in the warehouse."""
        features = races.assign(source="f1db", stage="grid", feature_version="1")
        results = races.assign(version=1, finish_position=races["official_order"], grid_status="grid",
                               status="finished", result_status="official", content_hash="x", source="f1db",
                               fetched_at=NOW)
        with self.file.write("test") as connection:
            for table, frame in ((RANKING, features), (RESULTS, results)):
                replace_slices(connection, table, frame.reindex(columns=table.column_names))

    def rows(self, sql: str) -> list[tuple]:
        with self.file.read() as connection:
            return connection.execute(sql).fetchall()

    @property
    def champion(self) -> str:
        [(promoted,)] = self.rows("SELECT checkpoint FROM ranking.checkpoints WHERE promoted")
        return promoted


def row_of(checkpoint: Checkpoint) -> dict[str, object]:
    meta = checkpoint.meta
    row = {name: meta[name] for name in ("kind", "model", "parent", "trained_from", "trained_through", "n_races",
                                         "feature_version", "data_version")}
    return {**row, "checkpoint": checkpoint.id, "seed": 0, "metrics": "{}", "path": str(checkpoint.path),
            "promoted": False, "created_at": NOW, "settings": None, "dagster_run": None, "mlflow_run": None}


@pytest.fixture
def store(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    return Store(WarehouseFile(tmp_path / "f1.duckdb"), tmp_path / "checkpoints")


@pytest.fixture
def decide_on(store: Store, races: pd.DataFrame) -> Callable:
    """Function that lets the rule decide on a candidate and applies the decision."""
    def run(candidate: str, rows: pd.DataFrame = races, rule: Rule = RULE):
        with store.file.write("test") as connection:
            decision = decide(connection, candidate, rows, store.folder, rule)
            if decision:
                record(connection, decision, NOW)
        return decision

    return run
