"""Declare tables, and make frames conform to them.

A declaration defines the DuckDB table (DDL, comments and primary key), validates frames before they are written, and is
checked against `warehouse/README.md`.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

SqlType = Literal["VARCHAR", "INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "TIMESTAMPTZ"]

_PANDAS_DTYPE = {
    "VARCHAR": "string", "INTEGER": "Int32", "BIGINT": "Int64", "DOUBLE": "Float64", "BOOLEAN": "boolean",
    "TIMESTAMPTZ": "datetime64[us, UTC]",
}


class InvalidRows(ValueError):
    """A table refuses rows. The message names the table and column, the values received and the values wanted."""


@dataclass(frozen=True)
class Column:
    """A column: its SQL type, its meaning with the unit, and its valid values."""

    name: str
    type: SqlType
    comment: str
    required: bool = False
    allowed: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None

    def ddl(self) -> str:
        return f'"{self.name}" {self.type}{" NOT NULL" if self.required else ""}'


@dataclass(frozen=True)
class Table:
    """A table of the warehouse.

    `key` is its primary key. Rows are replaced by slice (one value of `slice_by`): a new slice replaces all of the
    stored one, and other slices stay unchanged.
    """

    schema: str
    name: str
    comment: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    slice_by: tuple[str, ...] = ("weekend",)

    @property
    def qualified(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def ddl(self) -> str:
        columns = ", ".join(column.ddl() for column in self.columns)
        key = ", ".join(f'"{name}"' for name in self.key)
        return f'CREATE TABLE IF NOT EXISTS "{self.schema}"."{self.name}" ({columns}, PRIMARY KEY ({key}))'

    def empty(self) -> pd.DataFrame:
        return self.conform(pd.DataFrame(columns=self.column_names))

    def conform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Cast a frame to the declared columns, types and order.

        NaN, NaT and None become missing values, so no NaN reaches an SQL aggregate. Optional columns must be present
        too, with missing values if need be: otherwise a renamed source column would go unnoticed.

        Raises:
            InvalidRows: The frame does not conform.
        """
        absent = [name for name in self.column_names if name not in frame.columns]
        extra = [name for name in frame.columns if name not in self.column_names]
        if absent or extra:
            raise InvalidRows(
                f"{self.qualified}: columns missing {absent or 'none'}, not declared {extra or 'none'}; "
                f"wanted {self.column_names}"
            )
        fitted = pd.DataFrame({column.name: self._cast(column, frame[column.name]) for column in self.columns})
        for column in self.columns:
            self._check_values(column, fitted)
        self._check_key(fitted)
        return fitted.reset_index(drop=True)

    def _cast(self, column: Column, values: pd.Series) -> pd.Series:
        if values.dtype == object:
            values = values.where(values.notna(), None)
        try:
            if column.type == "TIMESTAMPTZ":
                instants = pd.to_datetime(values)
                if instants.isna().all():
                    return pd.Series(pd.NaT, index=values.index, dtype=_PANDAS_DTYPE["TIMESTAMPTZ"])
                if getattr(instants.dtype, "tz", None) is None:
                    raise ValueError("an instant without a time zone")
                return instants.astype(_PANDAS_DTYPE["TIMESTAMPTZ"])
            if column.type == "DOUBLE":
                numbers = pd.to_numeric(values).astype("Float64")
                if np.isinf(numbers.to_numpy("float64", na_value=np.nan)).any():
                    raise ValueError("an infinite number")
                return numbers.where(numbers.notna() & (numbers == numbers), pd.NA)
            if column.type == "VARCHAR":
                invalid = [value for value in values.dropna() if not isinstance(value, str)]
                if invalid:
                    raise ValueError(f"{invalid[0]!r}, which is not text")
            converted = values.astype(_PANDAS_DTYPE[column.type])
            if pd.api.types.is_numeric_dtype(values.dtype) and (converted != values).any():
                raise ValueError("a number that it can't hold")  # pandas would truncate it silently
            return converted
        except (TypeError, ValueError) as problem:
            raise InvalidRows(
                f"{self.qualified}.{column.name}: wanted {column.type} ({column.comment}); got {problem}"
            ) from problem

    def _check_values(self, column: Column, frame: pd.DataFrame) -> None:
        values = frame[column.name]
        invalid, expected = pd.Series(False, index=values.index), ""
        if column.required and values.isna().any():
            invalid, expected = values.isna(), "a value in every row"
        elif column.allowed:
            invalid, expected = values.notna() & ~values.isin(column.allowed), f"one of {', '.join(column.allowed)}"
        elif column.minimum is not None or column.maximum is not None:
            low = -np.inf if column.minimum is None else column.minimum
            high = np.inf if column.maximum is None else column.maximum
            invalid, expected = values.notna() & ~values.between(low, high), f"{low:g} to {high:g}"
        if invalid.any():
            rows = frame.loc[invalid, list(dict.fromkeys([*self.key, column.name]))].head(3).to_dict("records")
            raise InvalidRows(f"{self.qualified}.{column.name}: wanted {expected}; got {int(invalid.sum())} others: "
                              f"{rows}")

    def _check_key(self, frame: pd.DataFrame) -> None:
        key = list(self.key)
        if frame[key].isna().any(axis=None):
            raise InvalidRows(f"{self.qualified}: a row lacks a part of its key {key}")
        duplicates = frame[frame.duplicated(key, keep=False)]
        if len(duplicates):
            raise InvalidRows(f"{self.qualified}: {len(duplicates)} rows share a key {key}: "
                              f"{duplicates[key].head(4).to_dict('records')}")
