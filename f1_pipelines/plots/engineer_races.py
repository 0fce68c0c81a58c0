"""Plots of race engineers' races: one race before and after training, and one race per circuit."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from f1_pipelines.plots import panels
from f1_pipelines.plots.race import draw_race, head_in, height_in
from f1_pipelines.plots.style import DPI, INK, SMALL_PT, TEXT_PT, display_name
from f1_pipelines.sim.policies.play import Played

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STORY_IN, TITLE_IN = 10.0, 0.34  # width of the story, height of its title
COLUMNS, PANEL_IN, GRID_IN = 4, 1.35, 9.0  # columns of the grid, height of a panel, width of the grid


def story_figure(before: Played, after: Played) -> Figure:
    """Plot the same race with two policies, side by side.

    Raises:
        ValueError: The races differ in family, seed or circuit.
    """
    from matplotlib.figure import Figure

    if (before.family, before.seed, before.circuit) != (after.family, after.seed, after.circuit):
        raise ValueError(f"a story compares two policies in one race; got {before.family}/{before.seed} and "
                         f"{after.family}/{after.seed}: play the same family and seed with both.")
    half, races = STORY_IN / 2, (before, after)
    max_head = max(head_in(race, half) for race in races)
    offsets = [max_head - head_in(race, half) for race in races]  # so that the panels of both line up
    body_in = max(offset + height_in(race, half) for offset, race in zip(offsets, races, strict=True))
    figure = Figure(figsize=(STORY_IN, TITLE_IN + body_in), dpi=DPI, facecolor="white")
    title, body = cast("Any", figure).subfigures(2, 1, height_ratios=(TITLE_IN, body_in), hspace=0)
    scores = [f"{display_name(race.policy)} {race.score['score']:.2f}" for race in races]
    title.text(0.012, 0.4, f"One race, two policies: {scores[0]}, {scores[1]}", fontsize=TEXT_PT + 4, color=INK,
               fontweight="bold", va="center")
    for part, offset, race in zip(body.subfigures(1, 2, wspace=0), offsets, races, strict=True):
        heights = (offset, body_in - offset)
        draw_race(part.subfigures(2, 1, height_ratios=heights, hspace=0)[1] if offset else part, race)
    return figure


def circuit_grid(races: Sequence[Played]) -> Figure:
    """Plot one small panel per race, by circuit: positions by lap, track status, rain and our tyres."""
    from matplotlib.figure import Figure

    rows = -(-len(races) // COLUMNS)
    figure = Figure(figsize=(GRID_IN, rows * PANEL_IN + 0.45), dpi=DPI, layout="constrained", facecolor="white")
    grid = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes, race in zip(grid, sorted(races, key=lambda race: race.circuit), strict=False):
        draw_small(axes, race)
    for axes in grid[len(races):]:
        axes.set_axis_off()
    figure.supxlabel("Positions by lap, our car in purple; below: our tyres (" + ", ".join(
        f"{name[0].upper()} {name}" for name in panels.TYRES) + ") and the number of laps; above, in blue: rain",
                     fontsize=TEXT_PT, color=INK)
    return figure


def draw_small(axes: Axes, race: Played) -> None:
    """Draw one race into a small panel: positions by lap, our tyres along the bottom."""
    laps, cars = max(row["lap"] for row in race.laps), len(race.grid)
    status = {row["lap"]: row["status"] for row in race.laps}
    rain = {row["lap"]: row["rain"] for row in race.laps}
    for lap in range(1, laps + 1):
        if status[lap] != "green":
            axes.axvspan(lap - 1, lap, color=panels.NEUTRALIZED[status[lap]], linewidth=0, zorder=0,
                         label=f"track {lap}")
            if status.get(lap - 1) != status[lap]:
                axes.text(lap - 0.85, cars + 0.6, status[lap].upper(), fontsize=6.5, color=INK, va="center", zorder=5)
        if rain[lap]:
            axes.bar(lap - 0.5, 0.28, width=1.0, bottom=0.3, color=panels.RAIN, alpha=min(0.25 + rain[lap], 1.0),
                     zorder=1, label=f"rain {lap}")
    for number in race.grid:
        driven = [row for row in race.laps if row["car"] == number and row["position"]]
        ours = bool(driven) and driven[0]["ours"]
        axes.plot([0, *(row["lap"] for row in driven)],
                  [race.grid.index(number) + 1, *(row["position"] for row in driven)],
                  color=panels.OURS if ours else "#b8b8b8", linewidth=2.2 if ours else 0.8, zorder=4 if ours else 2,
                  label=f"car {number}", solid_joinstyle="round")
        if ours:
            for compound, first, last in panels.stints_of(race, number):
                axes.barh(cars + 1.5, last - first + 1, left=first - 1, height=0.95, color=panels.TYRES[compound],
                          edgecolor=INK, linewidth=0.5, zorder=3, label=f"tyre {compound}")
                axes.text((first - 1 + last) / 2, cars + 1.5, compound[0].upper(), ha="center", va="center_baseline",
                          fontsize=6.5, color="black", zorder=4)
    axes.set(xlim=(0, laps), ylim=(cars + 2.05, 0.25), yticks=[1, cars])
    axes.set_yticklabels(["P1", f"P{cars}"])
    axes.set_xticks([laps])
    axes.tick_params(labelsize=6.5, length=0, labelcolor=INK, pad=1.5)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    result = f"P{race.info['position']}" if race.info["finished"] else "out"
    axes.set_title(f"{race.circuit}  {race.score['score']:.2f}, {result}", fontsize=SMALL_PT, color=INK, loc="left",
                   pad=2.5)
