"""The whole warehouse by name: what is created in a new file, checked in an old one, and listed in its README."""
from __future__ import annotations

from f1_pipelines.tables.evaluation import EVALUATION_TABLES
from f1_pipelines.tables.features import RANKING as RANKING_FEATURES
from f1_pipelines.tables.learning import LEARNING_TABLES
from f1_pipelines.tables.lineage import LINEAGE_TABLES
from f1_pipelines.tables.race import RACE_TABLES
from f1_pipelines.tables.ranking import RANKING_TABLES
from f1_pipelines.tables.schema import Table
from f1_pipelines.tables.sim import SIM_TABLES
from f1_pipelines.tables.strategy import STRATEGY_TABLES
from f1_pipelines.tables.views import VIEWS, View

# Raised when a declared table changes in a way that ADD COLUMN can't follow, together with an entry of
# `warehouse/migrations.py` that carries stored rows over. Files of a later version are refused.
SCHEMA_VERSION = 2

SCHEMAS = ("race", "features", "ranking", "sim", "strategy")
TABLES: tuple[Table, ...] = (*RACE_TABLES, RANKING_FEATURES, *RANKING_TABLES, *EVALUATION_TABLES, *LEARNING_TABLES,
                            *LINEAGE_TABLES, *SIM_TABLES, *STRATEGY_TABLES)
BY_NAME: dict[str, Table] = {table.qualified: table for table in TABLES}

__all__ = ["BY_NAME", "SCHEMAS", "SCHEMA_VERSION", "TABLES", "VIEWS", "View"]
