"""The warehouse as a Dagster resource."""
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import duckdb
from pydantic import Field

from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.files import GENERATIONS


class Warehouse(dg.ConfigurableResource[None]):
    """A DuckDB file. Steps read the published copy and write under a lock, so they need no pool."""

    path: str = Field(description="The DuckDB file; created by the first write.")
    wait_s: float = Field(300.0, ge=0, description="How long a writer waits for another one [s].")
    generations: int = Field(GENERATIONS, ge=0, description="Number of earlier published copies to keep "
                                                            "(F1_GENERATIONS).")

    @property
    def file(self) -> WarehouseFile:
        return WarehouseFile(self.path, self.wait_s, self.generations)

    @contextmanager
    def read(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a read-only connection to the last committed state."""
        with self.file.read() as connection:
            yield connection

    @contextmanager
    def write(self, purpose: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection in a transaction, committed and published after the body unless it raises."""
        with self.file.write(purpose) as connection:
            yield connection
