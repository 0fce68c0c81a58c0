"""Charts of training and evaluation as ECharts options."""
from __future__ import annotations

from typing import Any

import pandas as pd

from f1_pipelines.serve.pages.prediction_charts import COLOURS
from f1_pipelines.serve.pages.race_charts import INK

_TEXT = {"color": INK, "fontSize": 11}
_FAINT = {"lineStyle": {"color": INK, "opacity": 0.2}}
_MAX_POINTS = 400  # per line; more make no visible difference


def training_curves(title: str, points: pd.DataFrame) -> dict[str, Any]:
    """A metric by step, one line per run. `points` has run, step and value."""
    return {
        "title": {"text": title, "textStyle": {"color": INK, "fontSize": 13}},
        "grid": {"left": 56, "right": 16, "top": 56, "bottom": 28}, "tooltip": {"trigger": "axis"},
        "legend": {"top": 24, "type": "scroll", "textStyle": _TEXT},
        "xAxis": {"type": "value", "name": "step", "axisLabel": _TEXT, "splitLine": {"show": False}},
        "yAxis": {"type": "value", "scale": True, "axisLabel": _TEXT, "splitLine": _FAINT},
        "series": [{"name": str(run)[:12], "type": "line", "showSymbol": len(line) < 3, "sampling": "lttb",
                    "color": COLOURS[at % len(COLOURS)],
                    "data": line[["step", "value"]].iloc[::1 + len(line) // _MAX_POINTS].to_numpy().tolist()}
                   for at, (run, line) in enumerate(points.groupby("run", sort=False))],
    }


def score_intervals(board: pd.DataFrame) -> dict[str, Any]:
    """Mean and 95 % interval per policy. `board` has policy, mean, low, high and n, the lowest mean first."""
    return {
        "grid": {"left": 110, "right": 50, "top": 10, "bottom": 28},
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}},
        "xAxis": {"type": "value", "min": 0, "max": 1, "axisLabel": _TEXT, "splitLine": _FAINT},
        "yAxis": {"type": "category", "data": [f"{row.policy} (n={row.n})" for row in board.itertuples()],
                  "axisLabel": _TEXT},
        # The interval is a bar stacked on an invisible bar; the mean is a point.
        "series": [
            {"name": "low", "type": "bar", "stack": "interval", "itemStyle": {"opacity": 0}, "silent": True,
             "data": board["low"].round(3).tolist()},
            {"name": "95 % interval", "type": "bar", "stack": "interval", "barWidth": 8, "color": "#90a4ae",
             "data": [{"value": round(row.high - row.low, 3), "label": {
                 "show": True, "position": "right", "color": INK, "formatter": f"{row.mean:.3f}"}}
                 for row in board.itertuples()]},
            {"name": "mean", "type": "scatter", "color": COLOURS[0], "symbolSize": 12,
             "data": [[round(row.mean, 3), at] for at, row in enumerate(board.itertuples())]}],
    }
