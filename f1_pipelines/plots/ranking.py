"""Plots of the ranker: reliability of its probabilities, and rank correlation over a season.

Each function draws into an empty figure; `png` converts it to a file's content.
"""
from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVENTS = {"win": "win", "podium": "podium", "points": "points (first ten)"}


def png(draw: Callable[[Figure], None], size_in: tuple[float, float] = (8.0, 3.0), dpi: int = 75) -> bytes:
    """Draw a figure of this size and return it as a PNG."""
    from matplotlib.figure import Figure

    figure, content = Figure(figsize=size_in, dpi=dpi, layout="constrained"), io.BytesIO()
    draw(figure)
    figure.savefig(content, format="png")
    return content.getvalue()


def draw_reliability(figure: Figure, calibration: pd.DataFrame) -> None:
    """Draw observed frequency over predicted probability, one panel per event and one line per predictor.

    Args:
        figure: An empty figure.
        calibration: Rows of `ranking.calibration` of one protocol. Dots grow with the number of cars.
    """
    panels = figure.subplots(1, len(EVENTS), sharey=True)
    for axes, (event, title) in zip(panels, EVENTS.items(), strict=True):
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        for predictor, rows in calibration[calibration["event"] == event].groupby("predictor"):
            ordered = rows.sort_values("bin").astype({"mean_probability": float, "frequency": float, "n": float})
            [line] = axes.plot(ordered["mean_probability"], ordered["frequency"], linewidth=1, label=str(predictor))
            axes.scatter(ordered["mean_probability"], ordered["frequency"], s=4 + ordered["n"] ** 0.5,
                         color=line.get_color())
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("predicted probability", fontsize=9)
        axes.tick_params(labelsize=8)
    panels[0].set_ylabel("observed frequency", fontsize=9)
    if len(calibration):
        panels[-1].legend(fontsize=7, loc="lower right")


def draw_season(figure: Figure, races: pd.DataFrame) -> None:
    """Draw the rank correlation of each predictor by race, and its running mean over the season.

    Args:
        figure: An empty figure.
        races: Rows of `ranking.evaluation` of one protocol and population, in race order, with `weekend`, `predictor`
            and `spearman`.
    """
    by_race = races.astype({"weekend": object, "spearman": float})
    weekends = list(dict.fromkeys(by_race["weekend"]))
    single, so_far = figure.subplots(1, 2, sharey=True)
    for predictor, rows in by_race.groupby("predictor"):
        rho = rows.set_index("weekend")["spearman"].reindex(weekends)
        single.plot(range(len(rho)), rho, marker="o", markersize=3, linewidth=1, label=str(predictor))
        so_far.plot(range(len(rho)), rho.expanding().mean(), linewidth=1.4, label=str(predictor))
    for axes, title in ((single, "by race"), (so_far, "mean so far")):
        axes.set_title(f"Spearman, {title}", fontsize=10)
        axes.set_xticks(range(len(weekends)), [key.split("-", 1)[1] for key in weekends], rotation=60, fontsize=7,
                        ha="right")
        axes.tick_params(axis="y", labelsize=8)
    so_far.legend(fontsize=7)
