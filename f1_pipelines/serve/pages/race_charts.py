"""Charts of a running race: ECharts options computed from the laps so far.

Colour never carries information alone: cars have numbers, tyres letters, safety-car periods names.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from f1_pipelines.plots.panels import TYRES
from f1_pipelines.serve.live_race import CarOnLap, Lap

OURS, OTHERS, INK = "#ab47bc", ("#8d99ae", "#6c8ebf", "#7fa99b", "#b08d57", "#9c89b8", "#a3a380"), "#7d8590"
TRACK = {"green": "#43a047", "vsc": "#fbc02d", "sc": "#fb8c00", "red": "#e53935"}
STATUS_NAMES = {"green": "green", "vsc": "virtual safety car", "sc": "safety car", "red": "red flag"}
_MAX_LABELS = 10  # more line labels would overlap
_CAR_LAPS = 0.04  # width of a car's symbol on the ring [laps]
_TEXT = {"color": INK, "fontSize": 11}
_FAINT = {"lineStyle": {"color": INK, "opacity": 0.2}}


def ring(lap: Lap) -> dict[str, Any]:
    """Track positions as the leader crosses the line: one turn is a lap, clockwise, with the line at the top."""
    running = [car for car in lap.cars if car.gap_s is not None]
    lap_s = min((car.lap_time_s for car in running if car.lap_time_s), default=None)
    slot = min(_CAR_LAPS, 0.9 / max(len(running), 1))  # distance on the grid, where there are no gaps yet
    behind = [(car.gap_s or 0.0) / lap_s if lap_s else slot * k for k, car in enumerate(running)]
    drawn = sorted(zip(running, behind, _rows(behind), strict=True), key=lambda item: item[0].ours)  # ours on top
    return {
        "animationDurationUpdate": 350,
        "tooltip": {"formatter": "{b}"},
        "polar": {"radius": "84%"},
        "radiusAxis": {"min": 0, "max": 1, "show": False},
        "angleAxis": {"min": 0, "max": 1, "startAngle": 90, "axisTick": {"show": False}, "axisLabel": {"show": False},
                      "splitLine": {"show": False},
                      "axisLine": {"lineStyle": {"color": TRACK[lap.next_status], "width": 12, "opacity": 0.55}}},
        "title": [{"text": f"{lap.lap} / {lap.laps}", "subtext": STATUS_NAMES[lap.next_status], "left": "center",
                   "top": "40%", "textStyle": {"color": INK, "fontSize": 26},
                   "subtextStyle": {"color": INK, "fontSize": 13}},
                  {"text": "▼", "left": "center", "top": "1%", "textStyle": {"color": INK, "fontSize": 14}}],
        "series": [{"type": "scatter", "coordinateSystem": "polar",
                    "data": [_on_ring(*item) for item in drawn]}],
    }


def gaps(laps: Sequence[Lap]) -> dict[str, Any]:
    """Gap of each car to the leader by lap [s], the leader on top; safety-car periods are shaded and named."""
    numbers = [car.number for car in laps[0].cars]
    lines = []
    for tone, number in enumerate(numbers):
        cars = [_car(lap, number) for lap in laps]
        ours = cars[0].ours
        lines.append({
            "name": f"#{number}", "type": "line", "showSymbol": False, "z": 5 if ours else 2,
            "data": [[lap.lap, car.gap_s] for lap, car in zip(laps, cars, strict=True)],
            "color": OURS if ours else OTHERS[tone % len(OTHERS)], "lineStyle": {"width": 4 if ours else 1.6},
            "endLabel": {"show": ours or len(numbers) <= _MAX_LABELS, "formatter": "{a}",
                         "fontWeight": "bold" if ours else "normal", "color": OURS if ours else INK},
            **({"markArea": _neutralized(laps), "markPoint": _stops(laps, number)} if ours else {}),
        })
    return _over_laps(laps[0].laps) | {
        "tooltip": {"trigger": "axis", "order": "valueAsc"},
        "yAxis": {"type": "value", "inverse": True, "name": "s behind", "nameLocation": "start", "axisLabel": _TEXT,
                  "nameTextStyle": _TEXT, "splitLine": _FAINT}, "series": lines}


def tyres(laps: Sequence[Lap]) -> dict[str, Any]:
    """The stints of each car so far, by position; the letter is the compound's initial."""
    order = [car.number for car in laps[-1].cars]
    stints = {number: _stints(laps, number) for number in order}
    n_stints = max(map(len, stints.values()))
    series = [{"type": "bar", "stack": "laps", "barWidth": "70%", "name": f"stint {k + 1}",
               "data": [_stint(stints[number], k) for number in order]} for k in range(n_stints)]
    return _over_laps(laps[0].laps) | {
        "yAxis": {"type": "category", "inverse": True, "data": [f"#{number}" for number in order], "axisLabel": _TEXT,
                  "axisTick": {"show": False}, "axisLine": {"show": False}},
        "tooltip": {"formatter": "{b}: {c} laps"}, "series": series}


def weather(laps: Sequence[Lap]) -> dict[str, Any]:
    """Rain in each lap (bars) and water on the track at its end (line), 0 to 1."""
    driven = laps[1:] or laps
    return _over_laps(laps[0].laps, bottom=20) | {
        "tooltip": {"trigger": "axis"}, "legend": {"data": ["rain", "water on track"], "top": 0, "textStyle": _TEXT},
        "yAxis": {"type": "value", "min": 0, "max": 1, "interval": 1, "axisLabel": _TEXT, "splitLine": _FAINT},
        "series": [{"name": "rain", "type": "bar", "color": "#3f7fbf", "data": [[lap.lap, lap.rain] for lap in driven]},
                   {"name": "water on track", "type": "line", "color": "#26a69a", "showSymbol": False,
                    "data": [[lap.lap, lap.wetness] for lap in driven]}]}


def _over_laps(laps: int, bottom: int = 28) -> dict[str, Any]:
    return {"animationDuration": 200, "grid": {"left": 40, "right": 44, "top": 22, "bottom": bottom},
            "xAxis": {"type": "value", "min": 0, "max": laps, "name": "lap", "nameLocation": "end",
                      "axisLabel": _TEXT | {"hideOverlap": True},
                      "nameTextStyle": _TEXT, "splitLine": {"show": False}, "minInterval": 1,
                      "axisLine": {"onZero": False}}}


def _rows(behind: list[float]) -> list[int]:
    """Row of each car on the ring, 0 outside. Cars that would overlap are side by side."""
    rows: list[int] = []
    for at, position in enumerate(behind):
        distances = ((position - behind[k]) % 1.0 for k in range(at))  # a lapped car may be right beside the leader
        taken = {rows[k] for k, distance in enumerate(distances) if min(distance, 1.0 - distance) < _CAR_LAPS}
        rows.append(next(row for row in range(at + 1) if row not in taken))
    return rows


def _on_ring(car: CarOnLap, behind: float, row: int) -> dict[str, Any]:
    return {"name": f"P{car.position} #{car.number} {car.driver} {car.compound}, +{car.gap_s:.1f} s",
            "value": [1 - 0.16 * min(row, 5), round(-behind % 1.0, 4)], "symbolSize": 30 if car.ours else 22,
            "itemStyle": {"color": TYRES[car.compound], "borderColor": OURS if car.ours else "#444",
                          "borderWidth": 4 if car.ours else 1.5},
            "label": {"show": True, "formatter": str(car.number), "color": "#111", "fontWeight": "bold",
                      "fontSize": 11}}


def _car(lap: Lap, number: int) -> CarOnLap:
    return next(car for car in lap.cars if car.number == number)


def _stints(laps: Sequence[Lap], number: int) -> list[tuple[str, int]]:
    """(compound, laps driven) of each set of tyres."""
    driven = [car for lap in laps[1:] if (car := _car(lap, number)).gap_s is not None]
    if not driven:
        return [(_car(laps[0], number).compound, 0)]
    sets: list[list[Any]] = []
    for before, car in zip([None, *driven], driven, strict=False):
        if before is None or before.stopped:
            sets.append([car.compound, 0])
        sets[-1][1] += 1
    return [(compound, length) for compound, length in sets]


def _stint(stints: list[tuple[str, int]], k: int) -> dict[str, Any]:
    if k >= len(stints):
        return {"value": 0}
    compound, length = stints[k]
    return {"value": length, "itemStyle": {"color": TYRES[compound], "borderColor": "#333", "borderWidth": 1},
            "label": {"show": length > 0, "formatter": compound[0].upper(), "color": "#111", "fontWeight": "bold"}}


def _stops(laps: Sequence[Lap], number: int) -> dict[str, Any]:
    cars = [(lap.lap, _car(lap, number)) for lap in laps]
    return {"symbolSize": 26, "label": {"fontSize": 9, "color": "#fff"}, "itemStyle": {"color": OURS},
            "data": [{"coord": [at, car.gap_s], "value": "PIT"} for at, car in cars if car.stopped]}


def _neutralized(laps: Sequence[Lap]) -> dict[str, Any]:
    """Shaded periods under virtual safety car, safety car or red flag."""
    spans = []
    for status, group in groupby(laps[1:], key=lambda lap: lap.status):
        if status != "green":
            period = list(group)
            spans.append([{"xAxis": period[0].lap - 1, "name": status.upper(),
                           "itemStyle": {"color": TRACK[status], "opacity": 0.25}}, {"xAxis": period[-1].lap}])
    return {"silent": True, "label": {"color": INK, "fontWeight": "bold"}, "data": spans}
