"""Which row of an embedding a driver or a team has."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

UNKNOWN = 0  # the row of everyone who was not there in training; trained by dropping known ids to it


@dataclass(frozen=True)
class Vocabulary:
    """Stable ids in a fixed order; row 0 is the unknown id, so names start at row 1."""

    names: tuple[str, ...]
    _rows: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", {name: row for row, name in enumerate(self.names, start=UNKNOWN + 1)})

    @classmethod
    def of(cls, ids: Iterable[str]) -> Vocabulary:
        """Every id once, sorted, so that the order of rows in a table can't matter. Missing ids are left out."""
        return cls(tuple(sorted({name for name in ids if isinstance(name, str)})))

    def grown(self, ids: Iterable[str]) -> Vocabulary:
        """The same rows, and behind them one for every id that is not known yet, sorted."""
        return Vocabulary(self.names + tuple(name for name in Vocabulary.of(ids).names if name not in self._rows))

    def __len__(self) -> int:
        """Rows an embedding needs, the unknown id's among them."""
        return len(self.names) + 1

    def rows(self, ids: Iterable[str]) -> np.ndarray:
        """Row of each id, `UNKNOWN` for those not known."""
        return np.array([self._rows.get(name, UNKNOWN) for name in ids], dtype=np.int64)
