"""Tracks. A circuit is a location and a layout: both together are the key, and times are only comparable within one.

`bahrain-1` and the outer `bahrain-3` share a place but not a lap; Barcelona (`catalunya-6`) was the Spanish Grand Prix
of 2025 and the Barcelona-Catalunya one of 2026, whose Spanish Grand Prix is in Madrid.
"""
from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

_DATA = Path(__file__).parent / "data" / "circuits.csv"


class UnknownCircuit(ValueError):
    """No such location and layout; whoever needs values for it falls back to a marked prior."""


@dataclass(frozen=True)
class Circuit:
    """One layout at one location. `direction` is None where we don't know it."""

    circuit: str
    layout: str
    name: str
    place: str
    country: str
    latitude: float
    longitude: float
    timezone: str
    length_km: float
    turns: int
    kind: str
    direction: str | None


@cache
def circuits() -> dict[tuple[str, str], Circuit]:
    """Every (circuit, layout) of 2018 and later."""
    with _DATA.open(encoding="utf-8", newline="") as file:
        rows = [Circuit(**{**cast("dict[str, Any]", row), "latitude": float(row["latitude"]),
                           "longitude": float(row["longitude"]),
                           "length_km": float(row["length_km"]), "turns": int(row["turns"]),
                           "direction": row["direction"] or None}) for row in csv.DictReader(file)]
    return {(row.circuit, row.layout): row for row in rows}


def circuit_of(circuit: str, layout: str) -> Circuit:
    """The track of a location and layout."""
    track = circuits().get((circuit, layout))
    if track is None:
        there = sorted(known for place, known in circuits() if place == circuit)
        raise UnknownCircuit(f'circuit "{circuit}" with layout "{layout}" is not in circuits.csv; '
                             + (f"it has {', '.join(there)} there." if there else "add its row there."))
    return track


def timezone_of(circuit: str, layout: str) -> ZoneInfo:
    """The time zone at the circuit. A new layout of a known location is in the zone of the others there."""
    zones = [known.timezone for known in circuits().values() if known.circuit == circuit]
    return ZoneInfo(zones[0]) if zones else ZoneInfo(circuit_of(circuit, layout).timezone)
