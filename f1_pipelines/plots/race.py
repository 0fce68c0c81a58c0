"""A played race as one picture: places, rain, tyres and our calls, lap by lap, under the colours of the track status.

`draw_race` draws into a figure or a part of one, so that two races can stand side by side; `save_race` makes a PNG.
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
PALETTE_SIZE = 96  # more are not to be seen, and fewer bytes load sooner
HEAD_IN, LEFT_IN, RIGHT_IN, BETWEEN_IN = 0.34, 0.46, 0.66, 0.08
RAIN_IN, DRY_IN, LAPS_IN, FOOT_IN = 0.50, 0.17, 0.36, 0.06  # LAPS_IN: the numbers of the laps below the tyres
CAR_IN, CALL_IN = 0.20, 0.155  # of each car's row and each line of the log
MAX_CALLS, COLUMN_IN = 16, 4.0


class BadPicture(ValueError):
    """A file that no picture can be written to."""


@dataclass(frozen=True)
class RaceAxes:
    """The panels of a race, from top to bottom. In the first three lap n runs from n - 1 to n."""

    places: Axes
    rain: Axes
    tyres: Axes
    calls: Axes


def picture_file(path: str | Path) -> Path:
    """The path, if a picture can be written there.

    Raises:
        BadPicture: No `.png`, a folder, or in a folder that does not exist.
    """
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise BadPicture(f"a picture is a PNG file; got {str(path)!r}: give a name that ends in .png.")
    if path.is_dir():
        raise BadPicture(f"{str(path)!r} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise BadPicture(f"there is no folder {str(path.parent)!r} for {path.name}: make it first.")
    return path


def save_race(race: Played, path: str | Path) -> Path:
    """Draw the race into a PNG file, replacing it.

    Raises:
        BadPicture: See `picture_file`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # late, as everywhere here: only pictures need the wait
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
    """Height that the race needs at that width [inches]."""
    return head_in(race, width_in) + sum(_heights_in(race, width_in)) + 3 * BETWEEN_IN + LAPS_IN + FOOT_IN


def draw_race(figure: Figure | SubFigure, race: Played) -> RaceAxes:
    """Draw a race into an empty figure or subfigure, from the top down.

    Args:
        figure: Of the height that `height_in` gives for its width, or more.
        race: Any number of cars and laps; made for 6 to 22 cars and 10 to 78 laps.
    """
    width_in, high_in = figure.bbox.width / figure.dpi, figure.bbox.height / figure.dpi
    top = 1.0 - head_in(race, width_in) / high_in
    panes: list[Axes] = []
    for below, height in zip((0, 0, LAPS_IN, 0), _heights_in(race, width_in), strict=True):
        tall = height / high_in
        panes.append(figure.add_axes((LEFT_IN / width_in, top - tall, 1.0 - (LEFT_IN + RIGHT_IN) / width_in, tall),
                                     sharex=panes[0] if panes and len(panes) < 3 else None))
        top -= tall + (BETWEEN_IN + below) / high_in
    axes = RaceAxes(*panes)
    calls = calls_of(race, MAX_CALLS)
    panels.draw_heading(figure, panels.heading_of(race, width_in - LEFT_IN), LEFT_IN / width_in, high_in)
    panels.draw_places(axes.places, race, calls)
    panels.draw_rain(axes.rain, race)
    panels.draw_tyres(axes.tyres, race)
    panels.draw_calls(axes.calls, calls, len(active_decisions(race)), _columns(width_in), width_in - LEFT_IN)
    return axes


def head_in(race: Played, width_in: float = WIDTH_IN) -> float:
    """Height above the panels: two races side by side line up if the shorter head begins so much lower [inches]."""
    lines = panels.heading_of(race, width_in - LEFT_IN)
    return HEAD_IN + sum(size_pt for _, size_pt, _ in lines) * panels.SPACING / 72


def _heights_in(race: Played, width_in: float) -> tuple[float, float, float, float]:
    cars, lines = len(race.grid), -(-max(len(calls_of(race, MAX_CALLS)), 1) // _columns(width_in))
    wet = any(row["rain"] for row in race.laps)
    return max(2.4, 0.22 * cars), RAIN_IN if wet else DRY_IN, CAR_IN * cars, CALL_IN * (lines + 1)


def _columns(width_in: float) -> int:
    return max(int(width_in / COLUMN_IN), 1)
