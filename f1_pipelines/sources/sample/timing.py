"""A driven race as rows of laps, weather and messages of race control, as timing would have recorded it.

A lap has one status, so its digits are one: 4 (safety car), 5 (red flag), 6 (VSC), and 67 for a VSC that ends in it.
All of a stop falls into the lap that ends in the pits; the lap after it is marked as an out-lap all the same.
"""
from __future__ import annotations

from datetime import timedelta

import numpy as np

from f1_pipelines.identity.entrants import drivers
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim.engine.parameters import GREEN, RED, SC, VSC
from f1_pipelines.sim.teams.seeded_draws import uniform, uniform_scalar
from f1_pipelines.sources.sample.circuits import air_temp_c, is_wet
from f1_pipelines.sources.sample.frames import car_columns, objects
from f1_pipelines.sources.sample.races import Driven
from f1_pipelines.tables.race import COMPOUNDS

CLOCK_AT_START_S = 3600.0  # session clock at lights out: recording begins an hour before
_DIGITS = objects(["1", "6", "4", "5", "67"])  # green, VSC, SC, red, VSC that ends
_COMPOUNDS = objects(COMPOUNDS)  # in the engine's order
_SESSION_S = 3600
_BEGINS = {VSC: ("SafetyCar", None, "VSC DEPLOYED"), SC: ("SafetyCar", None, "SAFETY CAR DEPLOYED"),
           RED: ("Flag", "RED", "RED FLAG")}
_ENDS = {VSC: ("SafetyCar", None, "VSC ENDING"), SC: ("SafetyCar", None, "SAFETY CAR IN THIS LAP"),
         RED: ("Flag", "GREEN", "RACE WILL RESUME")}


def lap_columns(driven: Driven) -> dict[str, object]:
    """Columns of `race.laps`: every completed lap, car by car."""
    done = np.arange(1, len(driven.status) + 1)[:, None] <= driven.laps_done
    cars, laps = np.nonzero(done.T)
    at = (laps, cars)
    pit_in = np.isfinite(driven.lane_s)
    pit_out = np.zeros_like(pit_in)
    pit_out[1:] = pit_in[:-1]
    red = driven.status == RED
    after_red = np.concatenate([[False], red[:-1]])
    who = car_columns([driven.start.entries[car] for car in driven.cars])
    digit = np.where((driven.status == VSC) & (driven.status_left == 1), len(_DIGITS) - 1, driven.status)
    return {
        "weekend": driven.start.weekend.key, "session": driven.start.session, "driver": who["driver"][cars],
        "lap": laps + 1, "lap_time_s": np.round(np.diff(driven.line_s, axis=0)[at], 3),
        "compound": _COMPOUNDS[driven.compound[at]], "tyre_age_laps": driven.age_laps[at] + 1, "fresh_tyre": True,
        "stint": driven.stint[at], "track_status": _DIGITS[digit][laps], "position": driven.position[at],
        "is_pit_in": pit_in[at], "is_pit_out": pit_out[at],
        "is_accurate": ((laps > 0) & ~pit_in[at] & ~pit_out[at] & ~red[laps] & ~after_red[laps]),
        "is_deleted": False, "session_time_s": np.round(CLOCK_AT_START_S + driven.line_s[1:][at], 3),
    }


def race_weather_columns(driven: Driven) -> dict[str, object]:
    """Columns of `race.weather`, one row per lap of the leader."""
    clock = np.round(CLOCK_AT_START_S + driven.line_s[:-1].min(axis=1), 3)
    return _weather(driven.start.weekend, driven.start.session, clock, driven.rain > 0.0)


def session_weather_columns(weekend: Weekend, session: str) -> dict[str, object]:
    """Columns of `race.weather` of a practice or qualifying, every five minutes."""
    clock = np.arange(0.0, _SESSION_S + 1.0, 300.0)
    return _weather(weekend, session, clock, np.full(len(clock), is_wet(weekend, session)))


def message_columns(driven: Driven) -> dict[str, object]:
    """Columns of `race.race_control`: the start, closed tracks, cars that stopped, rain, the flag."""
    start, leader_s = driven.start, driven.line_s.min(axis=1)
    messages: list[tuple[float, int, str, str | None, int | None, str]] = [(0.0, 1, "Flag", "GREEN", None,
                                                                            "RACE STARTED")]
    laps = len(driven.status)
    for lap, status in enumerate(driven.status.tolist(), start=1):
        before = driven.status[lap - 2] if lap > 1 else GREEN
        after = driven.status[lap] if lap < laps else GREEN
        if status != GREEN and status != before:
            messages.append((leader_s[lap - 1] + 1.0, lap, *_message(_BEGINS[status])))
        if status != GREEN and status != after:
            messages.append((leader_s[lap] - 5.0, lap, *_message(_ENDS[status])))
        if driven.rain[lap - 1] > 0 and (lap == 1 or driven.rain[lap - 2] == 0):
            messages.append((leader_s[lap - 1] + 2.0, lap, "Other", None, None, "RAIN REPORTED ON TRACK"))
    names = {driver.driver: driver.abbreviation for driver in drivers()}
    for n in np.flatnonzero(driven.out > 0):
        entry, lap = start.entries[driven.cars[n]], int(driven.laps_done[n]) + 1
        messages.append((leader_s[lap - 1] + 40.0, lap, "CarEvent", None, entry.car_number,
                         f"CAR {entry.car_number} ({names[entry.driver]}) STOPPED ON TRACK"))
    messages.append((leader_s[-1], laps, "Flag", "CHEQUERED", None, "CHEQUERED FLAG"))
    messages.sort(key=lambda message: (message[0], message[1], message[5]))
    at, laps_of, category, flag, car, text = zip(*messages, strict=True)
    lights_out = start.weekend.sessions[start.session]
    return {
        "weekend": start.weekend.key, "session": start.session, "message_number": np.arange(1, len(messages) + 1),
        "sent_at": objects(lights_out + timedelta(seconds=round(float(s))) for s in at), "lap": np.array(laps_of),
        "category": objects(category), "flag": objects(flag),
        "scope": objects("Track" if name else None for name in flag), "car_number": objects(car),
        "message": objects(text)}


def _message(parts: tuple[str, str | None, str]) -> tuple[str, str | None, None, str]:
    category, flag, text = parts
    return category, flag, None, text


def _weather(weekend: Weekend, session: str, clock_s: np.ndarray, rainfall: np.ndarray) -> dict[str, object]:
    key = f"{weekend.key}/{session}/weather"
    wave = uniform(key, ("air", "track", "humidity", "wind"), len(clock_s))
    air = air_temp_c(weekend, session) + 0.6 * (wave[:, 0] - 0.5)
    wet = np.logical_or.accumulate(rainfall)
    return {
        "weekend": weekend.key, "session": session, "session_time_s": clock_s, "air_temp_c": np.round(air, 1),
        "track_temp_c": np.round(air + np.where(wet, 3.0, 14.0) + 1.5 * (wave[:, 1] - 0.5), 1),
        "humidity_pct": np.round(np.where(wet, 82.0, 48.0) + 10.0 * wave[:, 2], 0),
        "pressure_hpa": np.full(len(clock_s), round(1000.0 + 18.0 * uniform_scalar(f"{weekend.key}/pressure"), 1)),
        "wind_speed_ms": np.round(0.5 + 3.0 * wave[:, 3], 1),
        "wind_direction_deg": np.full(len(clock_s), int(360 * uniform_scalar(f"{key}/direction"))),
        "rainfall": rainfall}
