"""Clip values that rounding carried past a bound.

A share or a correlation computed as a float sum can end one unit in the last place beyond 1, depending on the
processor. The code that computes it clips it to the bound. A value farther out is an error, which the table refuses.
"""
from __future__ import annotations

from typing import TypeVar

import numpy as np
import pandas as pd

from f1_pipelines.tables.schema import Table

ROUNDING = 1e-9  # a million times the rounding error of a sum of a hundred numbers between 1 and 10

Values = TypeVar("Values", float, np.ndarray, pd.Series)


def clip_rounding(values: Values, minimum: float = -np.inf, maximum: float = np.inf) -> Values:
    """Move values past a bound by at most `ROUNDING` to the bound. All others, NaN included, stay unchanged.

    Args:
        values: A number, an array or a column.
        minimum: Lower bound.
        maximum: Upper bound.

    >>> clip_rounding(1.0000000000000002, 0.0, 1.0), clip_rounding(1.001, 0.0, 1.0)
    (1.0, 1.001)
    """
    if isinstance(values, pd.Series):
        low = ((values < minimum) & (values >= minimum - ROUNDING)).fillna(False).astype(bool)
        high = ((values > maximum) & (values <= maximum + ROUNDING)).fillna(False).astype(bool)
        return values.mask(low, minimum).mask(high, maximum)
    if isinstance(values, np.ndarray):
        values = np.where((values < minimum) & (values >= minimum - ROUNDING), minimum, values)
        return np.where((values > maximum) & (values <= maximum + ROUNDING), maximum, values)
    if minimum - ROUNDING <= values < minimum:
        return minimum
    return maximum if maximum < values <= maximum + ROUNDING else values


def clip_columns(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Apply `clip_rounding` to each DOUBLE column of the frame that has bounds in the table."""
    bounded = {column.name: column for column in table.columns if column.type == "DOUBLE"
               and (column.minimum is not None or column.maximum is not None)}
    return frame.assign(**{
        name: clip_rounding(frame[name], -np.inf if column.minimum is None else column.minimum,
                            np.inf if column.maximum is None else column.maximum)
        for name, column in bounded.items() if name in frame.columns})
