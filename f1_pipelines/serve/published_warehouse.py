"""Read access to the published copy of the warehouse, with a new connection per request to see the latest rows."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from f1_pipelines.settings import settings
from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile, WrongSchema


class NoWarehouse(RuntimeError):
    """There is no readable warehouse. The message says what to do and names no path, because clients see it."""


@contextmanager
def published() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a read-only connection to the published warehouse.

    Raises:
        NoWarehouse: No warehouse is published, or it can't be read.
    """
    try:
        with WarehouseFile(settings().f1_warehouse).read() as connection:
            yield connection
    except WrongSchema:
        raise NoWarehouse("the warehouse was written by another version of this project; run `f1 doctor`") from None
    except WarehouseError:
        raise NoWarehouse("no warehouse is published yet; create one with `make demo`, or run `f1 doctor`") from None
