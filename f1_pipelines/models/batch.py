"""Conversion of frames of cars to padded tensors and back.

Notable choices:
- A batch is as wide as its largest race; the number of cars is nowhere a constant.
- Unknown inputs stay NaN here. Each model replaces them with its own neutral value, the same in training and serving.
- Cars are sorted by driver id, never by result, so that the result cannot break ties.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from f1_pipelines.models.vocabulary import Vocabulary


@dataclass(frozen=True)
class RaceBatch:
    """B races of up to N cars with F inputs. `order` and `classified` are None if the frame has no outcomes."""

    numeric: Tensor  # (B, N, F) float, NaN = unknown
    driver: Tensor  # (B, N) long
    constructor: Tensor  # (B, N) long
    entered: Tensor  # (B, N) bool, False = empty slot
    order: Tensor | None  # (B, N) float, 1 = winner, 0 in empty slots
    classified: Tensor | None  # (B, N) bool
    weekends: tuple[str, ...]
    race_of_row: np.ndarray  # (rows,) position of each row of the frame in the batch
    slot_of_row: np.ndarray

    def __len__(self) -> int:
        return len(self.weekends)

    @property
    def known(self) -> Tensor:
        """Whether each input is known, (B, N, F) bool."""
        return ~torch.isnan(self.numeric)

    def inputs(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Arguments of a model's `forward`."""
        return self.numeric, self.driver, self.constructor, self.entered

    def races(self, index: Tensor) -> RaceBatch:
        """Select races for a training step. The selection can't map scores back to rows."""
        no_rows = np.empty(0, dtype=np.int64)
        return RaceBatch(
            self.numeric[index], self.driver[index], self.constructor[index], self.entered[index],
            None if self.order is None else self.order[index],
            None if self.classified is None else self.classified[index],
            tuple(self.weekends[i] for i in index.tolist()), no_rows, no_rows)

    def to(self, device: torch.device | str) -> RaceBatch:
        """The same batch on a device."""
        names = ("numeric", "driver", "constructor", "entered", "order", "classified")
        parts = {name: getattr(self, name) for name in names}
        moved: dict[str, Any] = {name: None if part is None else part.to(device) for name, part in parts.items()}
        return replace(self, **moved)

    def rows(self, scores: Tensor) -> np.ndarray:
        """Convert scores (B, N) to one per row of the frame, in its order."""
        return scores.detach().cpu().double().numpy()[self.race_of_row, self.slot_of_row]


def to_batch(
    frame: pd.DataFrame, features: Sequence[str], drivers: Vocabulary, constructors: Vocabulary,
) -> RaceBatch:
    """Convert a frame of cars to a batch, one race per weekend, sorted by race start (if the frame has it) and driver.

    Args:
        frame: One row per (weekend, driver) with `constructor` and the features; missing = unknown. Training also
            needs `official_order` and `classified`. Every row counts as entered.
        features: Input columns, in this order.
        drivers, constructors: Vocabularies of the embeddings; ids outside become the unknown id.

    Raises:
        KeyError: A column is missing.
        ValueError: A driver has two rows in a race.
    """
    missing = [name for name in ("weekend", "driver", "constructor", *features) if name not in frame.columns]
    if missing:
        raise KeyError(f"the frame lacks {missing}: build it with f1_pipelines.features")
    if frame.duplicated(["weekend", "driver"]).any():
        raise ValueError("a driver is entered twice in a race and would be ranked against the same driver")
    keys = frame[["weekend", "driver"]].assign(start=frame.get("race_start", frame["weekend"]), row=range(len(frame)))
    keys = keys.sort_values(["start", "weekend", "driver"])
    keys["race"] = keys.groupby(["start", "weekend"], sort=False).ngroup()
    keys["slot"] = keys.groupby("race").cumcount()
    weekends = tuple(keys.drop_duplicates("race")["weekend"])
    keys = keys.sort_values("row")
    at = keys["race"].to_numpy(np.int64), keys["slot"].to_numpy(np.int64)
    shape = (len(weekends), int(at[1].max()) + 1 if len(frame) else 0)

    def pad(values: np.ndarray, empty: float | bool, dtype: torch.dtype) -> Tensor:
        out = np.full(shape + values.shape[1:], empty, dtype=values.dtype)
        out[at] = values
        return torch.from_numpy(out).to(dtype)

    numeric = frame[list(features)].astype("Float64").to_numpy(dtype="float64", na_value=np.nan)
    order = classified = None
    if "official_order" in frame.columns and frame["official_order"].notna().all():
        order = pad(frame["official_order"].to_numpy("float64"), 0.0, torch.float32)
        classified = pad(frame["classified"].to_numpy(bool), False, torch.bool)
    return RaceBatch(
        pad(numeric, np.nan, torch.float32), pad(drivers.rows(frame["driver"]), 0, torch.long),
        pad(constructors.rows(frame["constructor"]), 0, torch.long), pad(np.ones(len(frame), bool), False, torch.bool),
        order, classified, weekends, *at)
