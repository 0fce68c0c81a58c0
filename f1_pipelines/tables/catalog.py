"""All schemas, tables and views of the warehouse: created in a new file, checked in an existing one."""
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

# Increase it, and add a migration of stored rows to `warehouse/migrations.py`, when a declared table changes by more
# than a new optional column. Files of a later version are refused.
SCHEMA_VERSION = 2

SCHEMAS = ("race", "features", "ranking", "sim", "strategy")
TABLES: tuple[Table, ...] = (*RACE_TABLES, RANKING_FEATURES, *RANKING_TABLES, *EVALUATION_TABLES, *LEARNING_TABLES,
                            *LINEAGE_TABLES, *SIM_TABLES, *STRATEGY_TABLES)
BY_NAME: dict[str, Table] = {table.qualified: table for table in TABLES}

__all__ = ["BY_NAME", "SCHEMAS", "SCHEMA_VERSION", "TABLES", "VIEWS", "View"]
