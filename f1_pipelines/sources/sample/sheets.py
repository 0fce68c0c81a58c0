"""A driven race as rows of its classification and its pit stops, with the points rules of its season."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim.engine.state import ACCIDENT
from f1_pipelines.sim.teams.seeded_draws import uniform
from f1_pipelines.sources.sample.frames import car_columns, objects
from f1_pipelines.sources.sample.races import DrivenRace

RACE_POINTS = (25, 18, 15, 12, 10, 8, 6, 4, 2, 1)
SPRINT_POINTS = (8, 7, 6, 5, 4, 3, 2, 1)  # since 2022
LAST_FASTEST_LAP_POINT = 2024  # season
DISQUALIFIED = 0.0015  # chance that a car is illegal after a Grand Prix: about one in two seasons
_ACCIDENTS = ("Collision", "Accident", "Spun off", "Collision damage")
_FAILURES = ("Power unit", "Gearbox", "Hydraulics", "Brakes", "Electrical", "Suspension", "Overheating", "Water leak")


@dataclass(frozen=True)
class Classification:
    """The official sheet of all cars of the line-up, (M,) each."""

    order: np.ndarray  # 1..M: finishers, retirements, disqualified, non-starters
    finish: np.ndarray  # classified place or NaN
    status: np.ndarray
    text: np.ndarray
    laps: np.ndarray
    time_s: np.ndarray  # NaN except for cars on the lead lap
    fastest_s: np.ndarray


def classification(driven: DrivenRace) -> Classification:
    """Make the official sheet: the engine's order, then disqualified cars, then cars that did not start."""
    start, cars = driven.start, driven.cars
    drivers, count = [entry.driver for entry in start.entries], len(start.entries)
    name = "/".join(start.key)
    u_illegal, u_reason = uniform(f"{name}/sheet", drivers, 2)
    illegal = (u_illegal[cars] < DISQUALIFIED) & driven.finished & (start.session == "race")
    rank = np.full(count, 3000.0) + np.arange(count)
    rank[cars] = driven.place + 1000.0 * illegal
    order = np.empty(count)
    order[rank.argsort(kind="stable")] = np.arange(1, count + 1)

    places = np.full(count, np.nan)
    classified = np.zeros(count, dtype=bool)
    classified[cars] = driven.classified & ~illegal
    places[np.flatnonzero(classified)[order[classified].argsort()]] = np.arange(1, classified.sum() + 1)
    laps = np.zeros(count)
    laps[cars] = driven.laps_done
    status, text = objects(["not_started"] * count), objects(["Did not start"] * count)
    lead = laps.max()
    for n, car in enumerate(cars):
        status[car], text[car] = _status(driven, n, bool(illegal[n]), int(lead - laps[car]), u_reason[car])
    time_s = np.full(count, np.nan)
    on_lead_lap = status[cars] == "finished"
    time_s[cars[on_lead_lap]] = driven.line_s[-1][on_lead_lap]
    return Classification(order, places, status, text, laps, time_s, _fastest(driven, count))


def result_columns(driven: DrivenRace) -> dict[str, object]:
    """Columns of `race.results` and `race.sprint_results`, without hash and provenance."""
    start, sheet = driven.start, classification(driven)
    grid = start.grid
    winner_s = np.nanmin(sheet.time_s)
    lapped = sheet.status == "lapped"
    grid_status = np.where(~grid.starts, "not_started", np.where(grid.pit_lane, "pit_lane", "grid"))
    return {
        **car_columns(start.entries), "weekend": start.weekend.key, "version": 1,
        "grid_position": np.where(grid.starts, grid.slot, np.nan), "grid_status": grid_status.astype(object),
        "official_order": sheet.order, "finish_position": sheet.finish, "classified": np.isfinite(sheet.finish),
        "status": sheet.status, "status_text": sheet.text, "points": points(driven, sheet), "laps": sheet.laps,
        "race_time_s": sheet.time_s, "gap_s": np.round(sheet.time_s - winner_s, 3),
        "gap_laps": np.where(lapped, sheet.laps.max() - sheet.laps, np.nan), "fastest_lap_s": sheet.fastest_s,
        "result_status": "official",
    }


def points(driven: DrivenRace, sheet: Classification) -> np.ndarray:
    """Championship points (M,); until 2024 one for the fastest lap of a Grand Prix, if its car is in the top ten."""
    scale = RACE_POINTS if driven.start.session == "race" else SPRINT_POINTS
    by_place = np.array([*scale, 0.0])
    place = np.where(np.isfinite(sheet.finish), sheet.finish, len(by_place)).astype(int)
    total = by_place[np.minimum(place, len(by_place)) - 1]
    if driven.start.session == "race" and driven.start.weekend.season <= LAST_FASTEST_LAP_POINT:
        fastest = int(np.nanargmin(sheet.fastest_s))
        total[fastest] += 1.0 if place[fastest] <= len(RACE_POINTS) else 0.0
    return total


def pit_stop_columns(driven: DrivenRace) -> dict[str, object]:
    """Columns of `race.pit_stops`: stops after which the car drove on, by car and lap."""
    lap = np.arange(1, len(driven.lane_s) + 1)[:, None]
    left_again = np.isfinite(driven.lane_s) & (lap < driven.laps_done + ~driven.finished)
    cars, laps = np.nonzero(left_again.T)
    identity = car_columns([driven.start.entries[driven.cars[n]] for n in cars])
    return {"weekend": driven.start.weekend.key, "driver": identity["driver"], "constructor": identity["constructor"],
            "stop": np.cumsum(left_again, axis=0)[laps, cars], "lap": laps + 1,
            "pit_lane_time_s": driven.lane_s[laps, cars]}


def _status(driven: DrivenRace, n: int, illegal: bool, laps_behind: int, u: float) -> tuple[str, str]:
    if illegal:
        return "disqualified", "Illegal floor"
    if driven.finished[n]:
        return ("lapped", f"+{laps_behind} lap" + "s" * (laps_behind > 1)) if laps_behind else ("finished", "Finished")
    reasons = _ACCIDENTS if driven.out[n] == ACCIDENT else _FAILURES
    return "retired", reasons[int(u * len(reasons))]


def _fastest(driven: DrivenRace, count: int) -> np.ndarray:
    """Fastest lap of each car of the line-up [s]; NaN if it completed none."""
    lap_s = np.diff(driven.line_s, axis=0)
    done = np.arange(1, len(lap_s) + 1)[:, None] <= driven.laps_done
    best = np.full(count, np.nan)
    least = np.where(done, lap_s, np.inf).min(axis=0)
    best[driven.cars] = np.where(np.isfinite(least), np.round(least, 3), np.nan)
    return best
