"""Vocabulary: the embedding row of each driver or constructor."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

UNKNOWN = 0  # row of ids outside the vocabulary; trained by replacing known ids by it


@dataclass(frozen=True)
class Vocabulary:
    """Stable ids in a fixed order. Row 0 is the unknown id, so names start at row 1."""

    names: tuple[str, ...]
    _rows: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", {name: row for row, name in enumerate(self.names, start=UNKNOWN + 1)})

    @classmethod
    def of(cls, ids: Iterable[str]) -> Vocabulary:
        """Vocabulary of the distinct ids, sorted so that the order of rows does not matter. Skips missing ids."""
        return cls(tuple(sorted({name for name in ids if isinstance(name, str)})))

    def grown(self, ids: Iterable[str]) -> Vocabulary:
        """Append a row for each new id, sorted; existing rows stay."""
        return Vocabulary(self.names + tuple(name for name in Vocabulary.of(ids).names if name not in self._rows))

    def __len__(self) -> int:
        """Number of embedding rows, including the unknown id."""
        return len(self.names) + 1

    def rows(self, ids: Iterable[str]) -> np.ndarray:
        """Row of each id; `UNKNOWN` for ids outside the vocabulary."""
        return np.array([self._rows.get(name, UNKNOWN) for name in ids], dtype=np.int64)
