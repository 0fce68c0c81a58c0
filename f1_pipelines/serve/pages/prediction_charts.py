"""Charts of forecasts and comparisons as ECharts options."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from f1_pipelines.serve.pages.race_charts import INK
from f1_pipelines.serve.schemas import Comparison, RankedCar

COLOURS = ("#ab47bc", "#1e88e5", "#43a047", "#fb8c00", "#e53935", "#00acc1", "#8d6e63", "#7cb342", "#5c6bc0",
           "#f06292", "#9e9d24", "#78909c")
SYMBOLS = ("circle", "rect", "triangle", "diamond", "pin", "arrow", "roundRect")  # for readers who see no colours
_TEXT = {"color": INK, "fontSize": 11}
_FAINT = {"lineStyle": {"color": INK, "opacity": 0.2}}


def probabilities(cars: Sequence[RankedCar]) -> dict[str, Any]:
    """Probability of a win, a podium and points for each car [%], the first on top."""
    names = [car.name for car in cars]
    return {
        "grid": {"left": 120, "right": 16, "top": 26, "bottom": 24},
        "legend": {"top": 0, "textStyle": _TEXT}, "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}},
        "xAxis": {"type": "value", "max": 100, "axisLabel": _TEXT | {"formatter": "{value} %"}, "splitLine": _FAINT},
        "yAxis": {"type": "category", "inverse": True, "data": names, "axisLabel": _TEXT},
        "series": [{"name": label, "type": "bar", "barGap": "0%", "color": colour,
                    "data": [round(100 * (getattr(car, name) or 0.0), 1) for car in cars]}
                   for name, label, colour in (("p_win", "win", COLOURS[0]), ("p_podium", "podium", COLOURS[1]),
                                               ("p_points", "points", "#90a4ae"))],
    }


def hits_by_race(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Exact positions (bars) and rank correlation (line) of each race. `rows` has weekend, hits and spearman."""
    return {
        "grid": {"left": 34, "right": 40, "top": 30, "bottom": 70}, "legend": {"top": 0, "textStyle": _TEXT},
        "tooltip": {"trigger": "axis"}, "xAxis": _weekends([row["weekend"] for row in rows]),
        "yAxis": [{"type": "value", "axisLabel": _TEXT, "splitLine": _FAINT, "minInterval": 1},
                  {"type": "value", "min": 0, "max": 1, "axisLabel": _TEXT, "splitLine": {"show": False}}],
        "series": [{"name": "exact positions", "type": "bar", "color": "#90a4ae",
                    "data": [int(row["hits"]) for row in rows]},
                   {"name": "rank correlation", "type": "line", "yAxisIndex": 1, "color": COLOURS[0],
                    "data": [round(row["spearman"], 3) for row in rows]}],
    }


def season_form(weekends: Sequence[str], by_predictor: dict[str, list[float | None]],
                shown: Sequence[str]) -> dict[str, Any]:
    """Rank correlation with the result by race, one line per predictor; those not in `shown` start hidden."""
    return {
        "grid": {"left": 40, "right": 16, "top": 60, "bottom": 76},
        "legend": {"top": 0, "type": "scroll", "textStyle": _TEXT,
                   "selected": {name: name in shown for name in by_predictor}}, "tooltip": {"trigger": "axis"},
        "xAxis": _weekends(weekends),
        "yAxis": {"type": "value", "max": 1, "axisLabel": _TEXT, "splitLine": _FAINT, "scale": True},
        "series": [{"name": name, "type": "line", "connectNulls": False, "color": COLOURS[at % len(COLOURS)],
                    "symbol": SYMBOLS[at % len(SYMBOLS)], "symbolSize": 7,
                    "data": [None if value is None else round(value, 3) for value in values]}
                   for at, (name, values) in enumerate(by_predictor.items())],
    }


def order_slopes(comparison: Comparison, names: tuple[str, str]) -> dict[str, Any]:
    """A line for each car between its positions in two orders; thick for a change of five or more."""
    cars = [(car.name, car.a, car.b) for car in comparison.cars if car.a is not None and car.b is not None]
    last = max((max(a, b) for _, a, b in cars), default=1)
    return {
        "grid": {"left": 120, "right": 120, "top": 30, "bottom": 10}, "tooltip": {"formatter": "{a}"},
        "xAxis": {"type": "category", "data": list(names), "position": "top", "boundaryGap": False,
                  "axisLabel": {"color": INK, "fontWeight": "bold", "interval": 0}, "axisTick": {"show": False}},
        "yAxis": {"type": "value", "inverse": True, "min": 0.5, "max": last + 0.5, "show": False},
        "series": [{
            "name": f"{name}: {a} → {b}", "type": "line", "data": [a, b], "symbolSize": 6,
            "color": COLOURS[2] if b < a else COLOURS[4] if b > a else INK,
            "lineStyle": {"width": 3 if abs(a - b) >= 5 else 1.2},
            "endLabel": {"show": True, "formatter": f"{b} {_short(name)}", "color": INK, "fontSize": 11},
            "label": {"show": False},
            "markPoint": {"symbol": "circle", "symbolSize": 1, "silent": True,
                          "data": [{"coord": [names[0], a], "label": {
                              "show": True, "position": "left", "formatter": f"{_short(name)} {a}",
                              "color": INK, "fontSize": 11}}]},
        } for name, a, b in cars],
    }


def _weekends(keys: Sequence[str]) -> dict[str, Any]:
    return {"type": "category", "data": [key.partition("-")[2] for key in keys], "axisTick": {"show": False},
            "axisLabel": _TEXT | {"rotate": 50, "interval": 0}}


def _short(name: str) -> str:
    return name.split(" ", 1)[-1]
