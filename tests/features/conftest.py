"""Synthetic weekends to build features from; the real ones are in tests/conftest.py."""
from collections.abc import Callable
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.features.ranking import build_ranking_features
from f1_pipelines.tables import race

_NOW = datetime(2026, 8, 22, tzinfo=UTC)
_STAMP = {"source": "sample", "source_version": "1", "fetched_at": _NOW, "car_number": None}


def _conform(table, rows):
    stamps = {name: value for name, value in _STAMP.items() if name in table.column_names}
    frame = pd.DataFrame(rows or {name: [] for name in table.key}).assign(**stamps)
    for column in table.columns:
        if column.name not in frame:
            timestamp = column.type == "TIMESTAMPTZ"
            frame[column.name] = pd.Series(pd.NaT, frame.index).dt.tz_localize("UTC") if timestamp else None
    return table.conform(frame)


class Season:
    """Builds the five input frames race by race; the keywords of a weekend list drivers, best first."""

    def __init__(self):
        self.rows = {name: [] for name in ("calendar", "results", "qualifying", "practice", "grid")}
        self.teams: dict[str, str] = {}

    def weekend(self, key, start, *, state="done", race=(), qualifying=(), practice=(), grid=(), **changes):
        """Add a weekend. `practice` has one list per session; `changes` are result columns by driver."""
        start = pd.Timestamp(start, tz="UTC")
        self.rows["calendar"].append({
            "weekend": key, "season": start.year, "event_name": key, "circuit": "here", "layout": "here-1",
            "format": "conventional", "state": state, "race_start": start})
        for place, driver in enumerate(race, start=1):
            self.rows["results"].append({
                **self._car(key, driver), "version": 1, "grid_position": None, "grid_status": "unknown",
                "official_order": place, "finish_position": place, "classified": True, "status": "finished",
                "points": float(max(0, 4 - place)), "laps": 50, "race_time_s": 5000.0 + 50 * (place - 1),
                "gap_s": 50.0 * (place - 1), "gap_laps": None, "fastest_lap_s": 90.0 + place - 1,
                "result_status": "official", "content_hash": "x", **changes.get(driver, {})})
        for place, driver in enumerate(qualifying, start=1):
            self.rows["qualifying"].append({**self._car(key, driver), "session": "qualifying", "position": place,
                                            "q1_s": 80.0 + 0.8 * (place - 1)})
        for number, drivers in enumerate(practice, start=1):
            for place, driver in enumerate(drivers, start=1):
                self.rows["practice"].append({**self._car(key, driver), "session": f"practice_{number}", "laps": 20,
                                              "position": place, "best_lap_s": 90.0 + 10 * number + place - 1})
        for slot, driver in enumerate(grid, start=1):
            self.rows["grid"].append({**self._car(key, driver), "session": "race", "grid_position": slot,
                                      "grid_status": "grid"})
        return self

    def frames(self):
        tables = {"calendar": race.CALENDAR, "results": race.RESULTS, "qualifying": race.QUALIFYING,
                  "practice": race.PRACTICE, "grid": race.GRID}
        return {name: _conform(table, self.rows[name]) for name, table in tables.items()}

    def features(self, **options):
        """Feature rows on (weekend, driver); each team is its own lineage."""
        rows = build_ranking_features(**self.frames(), lineage=lambda constructor: constructor, **options)
        return rows.set_index(["weekend", "driver"])

    def _car(self, weekend, driver):
        return {"weekend": weekend, "driver": driver, "constructor": self.teams.get(driver, f"team-of-{driver}")}


@pytest.fixture
def season() -> Season:
    return Season()


@pytest.fixture(scope="session")
def build() -> Callable[..., pd.DataFrame]:
    """Function `build(frames, results=other)`: features with some frames replaced."""
    return lambda frames, **other: build_ranking_features(**(frames | other))


@pytest.fixture(scope="session")
def features_of(real_features) -> Callable[[str], pd.DataFrame]:
    """Function: weekend -> its real feature rows by driver."""
    return lambda weekend: real_features[real_features["weekend"] == weekend].set_index("driver")
