"""Circuits. The key of a circuit is its location and layout; lap times are only comparable within one layout.

`bahrain-1` and the outer `bahrain-3` share a location but not a lap. Barcelona (`catalunya-6`) held the Spanish Grand
Prix of 2025 and the Barcelona-Catalunya Grand Prix of 2026, when the Spanish Grand Prix is in Madrid.
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
    """No circuit has this location and layout. Callers that need parameters fall back to a marked prior."""


@dataclass(frozen=True)
class Circuit:
    """One layout at one location. `direction` is None if unknown."""

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
    """All circuits raced or planned since 2018, by (circuit, layout)."""
    with _DATA.open(encoding="utf-8", newline="") as file:
        rows = [Circuit(**{**cast("dict[str, Any]", row), "latitude": float(row["latitude"]),
                           "longitude": float(row["longitude"]),
                           "length_km": float(row["length_km"]), "turns": int(row["turns"]),
                           "direction": row["direction"] or None}) for row in csv.DictReader(file)]
    return {(row.circuit, row.layout): row for row in rows}


def circuit_of(circuit: str, layout: str) -> Circuit:
    """Get a circuit by location and layout.

    Raises:
        UnknownCircuit: circuits.csv has no such row.
    """
    track = circuits().get((circuit, layout))
    if track is None:
        layouts = sorted(other for location, other in circuits() if location == circuit)
        raise UnknownCircuit(f'circuit "{circuit}" with layout "{layout}" is not in circuits.csv; '
                             + (f"its layouts there are {', '.join(layouts)}." if layouts else "add its row there."))
    return track


def timezone_of(circuit: str, layout: str) -> ZoneInfo:
    """The time zone of a circuit. A new layout takes that of the other layouts at its location."""
    zones = [other.timezone for other in circuits().values() if other.circuit == circuit]
    return ZoneInfo(zones[0]) if zones else ZoneInfo(circuit_of(circuit, layout).timezone)
