"""Columns by name, one piece per session, joined into one frame at the end: a frame per session would be slower."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from f1_pipelines.identity.line_ups import Entry

Columns = Mapping[str, object]  # arrays of one length, scalars for all rows


def car_columns(entries: Sequence[Entry]) -> dict[str, np.ndarray]:
    """The columns that identify a car, one row per car."""
    return {"driver": objects(entry.driver for entry in entries),
            "constructor": objects(entry.constructor for entry in entries),
            "car_number": np.array([entry.car_number for entry in entries])}


def objects(values: Iterable[object]) -> np.ndarray:
    """Texts or missing values as an array of objects."""
    items = list(values)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def stacked(pieces: Sequence[Columns], names: Sequence[str]) -> pd.DataFrame:
    """Join pieces into one frame with these columns. A piece is as long as its longest column."""
    if not pieces:
        return pd.DataFrame(columns=list(names))
    lengths = [max((len(value) for value in piece.values() if isinstance(value, np.ndarray)), default=1)
               for piece in pieces]
    return pd.DataFrame({name: _column([piece.get(name) for piece in pieces], lengths) for name in names})


def _column(values: list[object], lengths: list[int]) -> np.ndarray:
    parts = []
    for value, length in zip(values, lengths, strict=True):
        if isinstance(value, np.ndarray):
            parts.append(value)
        else:
            part = np.empty(length, dtype=object)
            part[:] = value
            parts.append(part)
    return np.concatenate(parts)
