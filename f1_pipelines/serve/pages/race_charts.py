"""Charts of a running race as options of ECharts: functions of the laps so far, without a browser.

Nothing is said by colour alone: cars carry their numbers, tyres their letters, a closed track its name.
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
_MOST_LABELS = 10  # of lines; more lie on each other
_CAR_LAPS = 0.04  # that a car's number covers
_TEXT = {"color": INK, "fontSize": 11}
_FAINT = {"lineStyle": {"color": INK, "opacity": 0.2}}


def ring(lap: Lap) -> dict[str, Any]:
    """Where the cars are as the leader crosses the line: a lap is once round, clockwise, the line at the top."""
    running = [car for car in lap.cars if car.gap_s is not None]
    lap_s = min((car.lap_time_s for car in running if car.lap_time_s), default=None)
    slot = min(_CAR_LAPS, 0.9 / max(len(running), 1))  # on the grid, where nobody has a gap yet
    behind = [(car.gap_s or 0.0) / lap_s if lap_s else slot * at for at, car in enumerate(running)]
    drawn = sorted(zip(running, behind, _rows(behind), strict=True), key=lambda at: at[0].ours)  # ours on top
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
                    "data": [_on_ring(*at) for at in drawn]}],
    }


def gaps(laps: Sequence[Lap]) -> dict[str, Any]:
    """Gap of each car to the leader by lap [s], the leader on top; laps under a closed track are shaded and named."""
    numbers = [car.number for car in laps[0].cars]
    lines = []
    for tone, number in enumerate(numbers):
        cars = [_car(lap, number) for lap in laps]
        ours = cars[0].ours
        lines.append({
            "name": f"#{number}", "type": "line", "showSymbol": False, "z": 5 if ours else 2,
            "data": [[lap.lap, car.gap_s] for lap, car in zip(laps, cars, strict=True)],
            "color": OURS if ours else OTHERS[tone % len(OTHERS)], "lineStyle": {"width": 4 if ours else 1.6},
            "endLabel": {"show": ours or len(numbers) <= _MOST_LABELS, "formatter": "{a}",
                         "fontWeight": "bold" if ours else "normal", "color": OURS if ours else INK},
            **({"markArea": _closed(laps), "markPoint": _stops(laps, number)} if ours else {}),
        })
    return _over_laps(laps[0].laps) | {
        "tooltip": {"trigger": "axis", "order": "valueAsc"},
        "yAxis": {"type": "value", "inverse": True, "name": "s behind", "nameLocation": "start", "axisLabel": _TEXT,
                  "nameTextStyle": _TEXT, "splitLine": _FAINT}, "series": lines}


def tyres(laps: Sequence[Lap]) -> dict[str, Any]:
    """The stints of each car so far, by place; the letter is the compound's."""
    order = [car.number for car in laps[-1].cars]
    stints = {number: _stints(laps, number) for number in order}
    most = max(map(len, stints.values()))
    series = [{"type": "bar", "stack": "laps", "barWidth": "70%", "name": f"stint {at + 1}",
               "data": [_stint(stints[number], at) for number in order]} for at in range(most)]
    return _over_laps(laps[0].laps) | {
        "yAxis": {"type": "category", "inverse": True, "data": [f"#{number}" for number in order], "axisLabel": _TEXT,
                  "axisTick": {"show": False}, "axisLine": {"show": False}},
        "tooltip": {"formatter": "{b}: {c} laps"}, "series": series}


def weather(laps: Sequence[Lap]) -> dict[str, Any]:
    """Rain in each lap (bars) and water on the track after it (line), 0 to 1."""
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
    """Row on the ring of each car, 0 outside: cars that would hide each other go side by side."""
    rows: list[int] = []
    for at, here in enumerate(behind):
        apart = ((here - behind[k]) % 1.0 for k in range(at))  # a lapped car may be right beside the leader
        taken = {rows[k] for k, part in enumerate(apart) if min(part, 1.0 - part) < _CAR_LAPS}
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
    """(compound, laps driven on it) of each set, the last one as far as it went."""
    driven = [car for lap in laps[1:] if (car := _car(lap, number)).gap_s is not None]
    if not driven:
        return [(_car(laps[0], number).compound, 0)]
    sets: list[list[Any]] = []
    for before, car in zip([None, *driven], driven, strict=False):
        if before is None or before.stopped:
            sets.append([car.compound, 0])
        sets[-1][1] += 1
    return [(compound, length) for compound, length in sets]


def _stint(stints: list[tuple[str, int]], at: int) -> dict[str, Any]:
    if at >= len(stints):
        return {"value": 0}
    compound, length = stints[at]
    return {"value": length, "itemStyle": {"color": TYRES[compound], "borderColor": "#333", "borderWidth": 1},
            "label": {"show": length > 0, "formatter": compound[0].upper(), "color": "#111", "fontWeight": "bold"}}


def _stops(laps: Sequence[Lap], number: int) -> dict[str, Any]:
    cars = [(lap.lap, _car(lap, number)) for lap in laps]
    return {"symbolSize": 26, "label": {"fontSize": 9, "color": "#fff"}, "itemStyle": {"color": OURS},
            "data": [{"coord": [at, car.gap_s], "value": "PIT"} for at, car in cars if car.stopped]}


def _closed(laps: Sequence[Lap]) -> dict[str, Any]:
    spans = []
    for status, run in groupby(laps[1:], key=lambda lap: lap.status):
        if status != "green":
            of = list(run)
            spans.append([{"xAxis": of[0].lap - 1, "name": status.upper(),
                           "itemStyle": {"color": TRACK[status], "opacity": 0.25}}, {"xAxis": of[-1].lap}])
    return {"silent": True, "label": {"color": INK, "fontWeight": "bold"}, "data": spans}
