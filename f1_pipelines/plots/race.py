"""Plot of one race: positions, rain, tyres and our commands by lap, shaded by track status.

`draw_race` draws into a figure or subfigure, so that two races can be side by side; `save_race` writes a PNG.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from f1_pipelines.plots import panels
from f1_pipelines.plots.calls import active_decisions, calls_of
from f1_pipelines.sim.policies.play import Played

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

WIDTH_IN, DPI = 9.0, 160  # a README shows it 900 pixels wide
PALETTE_SIZE = 96  # colours; more make no visible difference and a larger file
HEAD_IN, LEFT_IN, RIGHT_IN, BETWEEN_IN = 0.34, 0.46, 0.66, 0.08
RAIN_IN, DRY_IN, LAPS_IN, FOOT_IN = 0.50, 0.17, 0.36, 0.06  # LAPS_IN: the lap numbers below the tyres
CAR_IN, CALL_IN = 0.20, 0.155  # height of a car's row of tyres and of a line with commands
MAX_CALLS, COLUMN_IN = 16, 4.0


class BadPicture(ValueError):
    """The plot can't be written to this file."""


@dataclass(frozen=True)
class RaceAxes:
    """The panels of a race plot, top down. In the first three, lap n spans n - 1 to n on the x axis."""

    places: Axes
    rain: Axes
    tyres: Axes
    calls: Axes


def picture_file(path: str | Path) -> Path:
    """Check that a plot can be written to a path, and return it.

    Raises:
        BadPicture: The name does not end in `.png`, the path is a folder, or its parent folder does not exist.
    """
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise BadPicture(f"the plot is a PNG file; got {str(path)!r}: give a name that ends in .png.")
    if path.is_dir():
        raise BadPicture(f"{str(path)!r} is a folder: give the name of a file in it.")
    if not path.parent.is_dir():
        raise BadPicture(f"there is no folder {str(path.parent)!r} for {path.name}: create it first.")
    return path


def save_race(race: Played, path: str | Path) -> Path:
    """Draw a race into a PNG file; replaces an existing file.

    Raises:
        BadPicture: See `picture_file`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    path = picture_file(path)
    figure = Figure(figsize=(WIDTH_IN, height_in(race)), dpi=DPI, facecolor="white")
    draw_race(figure, race)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]).quantize(PALETTE_SIZE).save(path, optimize=True)
    return path


def height_in(race: Played, width_in: float = WIDTH_IN) -> float:
    """Height that a race needs at a width [inches]."""
    return head_in(race, width_in) + sum(_heights_in(race, width_in)) + 3 * BETWEEN_IN + LAPS_IN + FOOT_IN


def draw_race(figure: Figure | SubFigure, race: Played) -> RaceAxes:
    """Draw a race into an empty figure or subfigure, from the top down.

    Args:
        figure: At least as high as `height_in` returns for its width.
        race: Any number of cars and laps; designed for 6 to 22 cars and 10 to 78 laps.
    """
    width_in, figure_in = figure.bbox.width / figure.dpi, figure.bbox.height / figure.dpi
    top = 1.0 - head_in(race, width_in) / figure_in
    panes: list[Axes] = []
    for below, panel_in in zip((0, 0, LAPS_IN, 0), _heights_in(race, width_in), strict=True):
        height = panel_in / figure_in
        panes.append(figure.add_axes((LEFT_IN / width_in, top - height, 1.0 - (LEFT_IN + RIGHT_IN) / width_in, height),
                                     sharex=panes[0] if panes and len(panes) < 3 else None))
        top -= height + (BETWEEN_IN + below) / figure_in
    axes = RaceAxes(*panes)
    calls = calls_of(race, MAX_CALLS)
    panels.draw_heading(figure, panels.heading_of(race, width_in - LEFT_IN), LEFT_IN / width_in, figure_in)
    panels.draw_places(axes.places, race, calls)
    panels.draw_rain(axes.rain, race)
    panels.draw_tyres(axes.tyres, race)
    panels.draw_calls(axes.calls, calls, len(active_decisions(race)), _columns(width_in), width_in - LEFT_IN)
    return axes


def head_in(race: Played, width_in: float = WIDTH_IN) -> float:
    """Height of the heading above the panels [inches]."""
    lines = panels.heading_of(race, width_in - LEFT_IN)
    return HEAD_IN + sum(size_pt for _, size_pt, _ in lines) * panels.SPACING / 72


def _heights_in(race: Played, width_in: float) -> tuple[float, float, float, float]:
    cars, lines = len(race.grid), -(-max(len(calls_of(race, MAX_CALLS)), 1) // _columns(width_in))
    wet = any(row["rain"] for row in race.laps)
    return max(2.4, 0.22 * cars), RAIN_IN if wet else DRY_IN, CAR_IN * cars, CALL_IN * (lines + 1)


def _columns(width_in: float) -> int:
    return max(int(width_in / COLUMN_IN), 1)
