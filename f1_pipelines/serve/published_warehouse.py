"""The published copy of the warehouse, one connection a question: one kept open would go on seeing old rows."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from f1_pipelines.settings import settings
from f1_pipelines.warehouse.database import WarehouseError, WarehouseFile, WrongSchema


class NoWarehouse(RuntimeError):
    """There is nothing to read. The message says what to do and names no path: strangers read it."""


@contextmanager
def published() -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection to what was published last.

    Raises:
        NoWarehouse: Nothing was, or it can't be read.
    """
    try:
        with WarehouseFile(settings().f1_warehouse).read() as connection:
            yield connection
    except WrongSchema:
        raise NoWarehouse("the warehouse was written by another version of this project; `f1 doctor` says what to "
                          "do") from None
    except WarehouseError:
        raise NoWarehouse("no warehouse is published here yet; fill one with `make demo`, `f1 doctor` says more") \
            from None
