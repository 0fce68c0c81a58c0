"""Versions of a weekend's data: the sensor reads these instead of the data."""
from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from f1_pipelines.sources.base import Fetched
from f1_pipelines.tables.race import GRID, QUALIFYING, RESULTS

Phase = Literal["pre_race", "post_race"]
DECIDING: dict[Phase, str] = {"pre_race": "qualifying", "post_race": "race"}  # the session that opens a phase
_PROVENANCE = ["source_version", "fetched_at"]


@dataclass(frozen=True)
class SourceUpdate:
    """The data that a source now has of one phase of a weekend.

    `version` changes with the content of the data; of a race it is the `content_hash` of the official classification.
    None: there are no data yet, and `lacks` says what is missing.
    """

    version: str | None
    lacks: str = ""


def update_in(fetched: Fetched, phase: Phase) -> SourceUpdate:
    """Get the update from fetched qualifying (`pre_race`) or results (`post_race`) of one weekend."""
    if phase == "post_race":
        rows = fetched.tables.get(RESULTS.qualified, RESULTS.empty())
        rows = rows[rows["result_status"] != "provisional"]
    else:
        rows = fetched.tables.get(QUALIFYING.qualified, QUALIFYING.empty())
        rows = rows[rows["session"] == DECIDING[phase]]
    if rows.empty:
        reasons = [refusal.reason for refusal in fetched.refused if refusal.session == DECIDING[phase]]
        return SourceUpdate(None, reasons[0] if reasons else "no official sheet yet")
    if phase == "post_race":
        return SourceUpdate(rows["content_hash"].iloc[0])
    return SourceUpdate(digest(rows, fetched.tables.get(GRID.qualified, GRID.empty())))


def digest(*frames: pd.DataFrame) -> str:
    """SHA-256 over the content of the frames, without source version and time of fetching."""
    sha256 = hashlib.sha256()
    for frame in frames:
        sha256.update(frame.drop(columns=_PROVENANCE, errors="ignore").to_csv(index=False).encode())
    return sha256.hexdigest()
