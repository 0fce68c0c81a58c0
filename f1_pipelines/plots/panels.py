"""Panels of a race plot: positions, rain, tyres and commands.

Colour never carries information alone: tyres have letters, safety-car periods names, our car a thick line and a label.
"""
from __future__ import annotations

from itertools import groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from f1_pipelines.plots.calls import PlottedCall
from f1_pipelines.sim.policies.play import Played

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.text import Text

TYRES = {"soft": "#e8453c", "medium": "#f7d23e", "hard": "#f0f0f0", "inter": "#4fae5b", "wet": "#5b9bd9"}
NEUTRALIZED = {"vsc": "#fff1c4", "sc": "#ffd98f", "red": "#f3b4b0"}
OURS, OTHERS, INK, RAIN = "#6a1b9a", ("#7d7d7d", "#a6a6a6", "#929292"), "#2b2b2b", "#3f7fbf"
TITLE_PT, TEXT_PT, SMALL_PT = 11.0, 8.0, 7.2
LETTER, BOLD, SPACING = 0.56, 0.66, 1.5  # mean width of a character and line distance, relative to the font size


def heading_of(race: Played, width_in: float) -> list[tuple[str, float, str]]:
    """Wrap the lines of the heading (race and policy, result, briefing): (text, font size [pt], weight), top down."""
    parts = " · ".join(f"{name} {value:.2f}" for name, value in race.score.items() if name != "score")
    result = "disqualified" if race.info["disqualified"] else f"P{race.info['position']} of {len(race.grid)}"
    if not race.info["finished"] and not race.info["disqualified"]:
        result = "did not finish"
    texts = (
        (f"{race.family} seed {race.seed}, {race.circuit}: {race.policy} scores {race.score['score']:.2f}", TITLE_PT,
         "bold"),
        (f"{result}, best possible P{race.info['best_position']} · {parts} · {race.split}, env {race.env_version}",
         TEXT_PT, "normal"),
        (race.briefing, SMALL_PT, "normal"))
    return [(line, size_pt, weight) for text, size_pt, weight in texts
            for line in wrap(text, int(width_in * 72 / size_pt / (BOLD if weight == "bold" else LETTER)))]


def draw_heading(figure: Figure | SubFigure, lines: list[tuple[str, float, str]], left: float,
                 height_in: float) -> None:
    """Draw the lines of `heading_of`."""
    offset_in = 0.10
    for line, size_pt, weight in lines:
        figure.text(left, 1.0 - offset_in / height_in, line, fontsize=size_pt, fontweight=weight, color=INK, va="top",
                    parse_math=False)
        offset_in += size_pt * SPACING / 72


def draw_places(axes: Axes, race: Played, calls: list[PlottedCall]) -> None:
    """Draw the positions by lap, starting from the grid, one line per car; our line marks the laps of our commands."""
    laps = _prepare_lap_axes(axes, race)
    for tone, number in enumerate(race.grid):
        rows = [row for row in race.laps if row["car"] == number]
        ours, driven = rows[0]["ours"], [row for row in rows if row["position"]]
        laps_driven = [0] + [row["lap"] for row in driven]
        positions = [race.grid.index(number) + 1] + [row["position"] for row in driven]
        colour = OURS if ours else OTHERS[tone % len(OTHERS)]
        axes.plot(laps_driven, positions, color=colour, linewidth=3.0 if ours else 1.1, zorder=4 if ours else 2,
                  label=f"car {number}", solid_joinstyle="round")
        style: dict[str, Any] = {"color": colour, "fontsize": TEXT_PT if ours else SMALL_PT, "va": "center",
                 "fontweight": "bold" if ours else "normal"}
        axes.annotate(f"#{number}", (0, positions[0]), (-5, 0), textcoords="offset points", ha="right", **style)
        last = (laps_driven[-1], positions[-1])
        if len(driven) < len(rows):
            axes.plot(*last, marker="X", color=colour, markersize=7, zorder=5, clip_on=False, label="_out")
            axes.annotate("out", last, (6, 5), textcoords="offset points", zorder=5, **style)
        else:
            end = "DSQ" if ours and race.info["disqualified"] else f"P{positions[-1]}"
            axes.annotate(f"{end} #{number}", last, (6, 0), textcoords="offset points", **style)
        for row in driven:
            if row["stopped"] and not ours:
                axes.plot(row["lap"], row["position"], marker="o", color="white", markeredgecolor=colour,
                          markersize=3.5, zorder=3, label="_stop")
        if ours:
            _mark_calls(axes, calls, dict(zip(laps_driven, positions, strict=True)))
            _mark_stops(axes, rows)
    axes.set(ylim=(len(race.grid) + 0.5, 0.5), yticks=[], xlim=(0, laps))
    axes.tick_params(labelbottom=False)
    axes.spines["left"].set_visible(False)
    for status, first_lap, last_lap in _neutralized(race):
        axes.annotate(status.upper(), ((first_lap + last_lap) / 2 - 0.5, 1), (0, 2), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha="center", va="bottom", fontsize=SMALL_PT, fontweight="bold",
                      color=INK)


def draw_rain(axes: Axes, race: Played) -> None:
    """Draw the intensity of rain in each lap, 0 to 1."""
    laps = _prepare_lap_axes(axes, race)
    rain = {row["lap"]: row["rain"] for row in race.laps}
    axes.tick_params(labelbottom=False)
    axes.set_yticks([])
    if not any(rain.values()):
        axes.set_ylim(0, 1)
        axes.text(laps / 2, 0.45, "no rain", ha="center", va="center", fontsize=SMALL_PT, color=INK)
        return
    axes.bar([lap - 0.5 for lap in rain], list(rain.values()), width=0.94, color=RAIN, zorder=2, label="rain")
    axes.set(ylim=(0, 1.1), yticks=[0, 1])
    axes.set_ylabel("rain", fontsize=TEXT_PT, color=INK, labelpad=8)


def draw_tyres(axes: Axes, race: Played) -> None:
    """Draw the stints of each car in finishing order; the letter is the compound's initial."""
    _prepare_lap_axes(axes, race)
    order = finish_order(race)
    for row, number in enumerate(order):
        for compound, first, last in stints_of(race, number):
            axes.barh(row, last - first + 1, left=first - 1, height=0.78, color=TYRES[compound], edgecolor=INK,
                      linewidth=0.6, zorder=2, clip_on=False, label=f"car {number} {compound}")
            axes.text((first - 1 + last) / 2, row, compound[0].upper(), ha="center", va="center_baseline",
                      fontsize=SMALL_PT, color="black", zorder=3)
    axes.set(ylim=(len(order) - 0.4, -0.6))
    axes.set_yticks(range(len(order)), [f"#{number}" for number in order], fontsize=SMALL_PT)
    for label, number in zip(axes.get_yticklabels(), order, strict=True):
        ours = number == _our_number(race)
        label.set(color=OURS if ours else OTHERS[0], fontweight="bold" if ours else "normal")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("lap", fontsize=TEXT_PT, color=INK, labelpad=1, loc="left")
    axes.annotate(", ".join(f"{name[0].upper()} {name}" for name in TYRES) + "; ○ another car's stop", (1, 0),
                  (0, -17), xycoords="axes fraction", textcoords="offset points", ha="right", va="top",
                  fontsize=SMALL_PT, color=INK)


def draw_calls(axes: Axes, calls: list[PlottedCall], n_calls: int, columns: int, width_in: float) -> None:
    """List the marked commands as text: each command and its reply or reason. `n_calls` counts all commands."""
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    lines, axes_in = -(-max(len(calls), 1) // columns), axes.bbox.width / axes.figure.dpi
    axes.text(0, 1, f"{len(calls)} of {n_calls} commands by lap, with reply or reason" if calls else
              "STAY_OUT in every lap", fontsize=SMALL_PT, fontstyle="italic", color=INK, va="top")
    for k, call in enumerate(calls):
        x, y = k // lines * width_in / columns / axes_in, 1 - (1 + k % lines) / (lines + 1)
        axes.text(x + 0.14 / axes_in, y, str(call.lap), fontsize=SMALL_PT, fontweight="bold", color=OURS, va="top",
                  ha="right")
        text = axes.text(x + 0.20 / axes_in, y, call.text, fontsize=SMALL_PT, color=INK, va="top", parse_math=False)
        _shorten(text, (width_in / columns - 0.36) * axes.figure.dpi)


def stints_of(race: Played, number: int) -> list[tuple[str, int, int]]:
    """(compound, first lap, last lap) of each set of tyres that a car used."""
    rows = [row for row in race.laps if row["car"] == number]
    stints: list[Any] = []
    for row in rows:
        if not stints or row["tyre_age_laps"] != rows[row["lap"] - 2]["tyre_age_laps"] + 1:
            stints.append((row["compound"], row["lap"], row["lap"]))
        stints[-1] = (*stints[-1][:2], row["lap"])
    return stints


def finish_order(race: Played) -> list[int]:
    """Car numbers in finishing order; retired cars are last, by laps driven."""
    last = {row["car"]: row for row in race.laps}
    return sorted(last, key=lambda number: (last[number]["position"] is None, last[number]["position"]
                                            or -last[number]["lap"]))


def _shorten(text: Text, max_pixels: float) -> None:
    """Shorten a text until it fits."""
    content = text.get_text()
    while (width := text.get_window_extent().width) > max_pixels:
        content = content[:min(len(content) - 1, int(len(content) * max_pixels / width))]
        text.set_text(content.rstrip() + "…")


def _prepare_lap_axes(axes: Axes, race: Played) -> int:
    """Set lap limits and style, and shade safety-car periods. Returns the number of laps."""
    from matplotlib.ticker import MaxNLocator

    laps = max(row["lap"] for row in race.laps)
    axes.set_xlim(0, laps)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=15, integer=True))
    axes.tick_params(labelsize=SMALL_PT, length=2, color=INK, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    for status, first, last in _neutralized(race):
        axes.axvspan(first - 1, last, color=NEUTRALIZED[status], linewidth=0, zorder=0, label=f"track {status}")
    return laps


def _neutralized(race: Played) -> list[tuple[str, int, int]]:
    """(status, first lap, last lap) of each period under VSC, safety car or red flag."""
    by_lap = {row["lap"]: row["status"] for row in race.laps}
    runs = [list(run) for _, run in groupby(sorted(by_lap.items()), key=lambda lap: lap[1])]
    return [(run[0][1], run[0][0], run[-1][0]) for run in runs if run[0][1] != "green"]


def _our_number(race: Played) -> int:
    return next(row["car"] for row in race.laps if row["ours"])


def _mark_calls(axes: Axes, calls: list[PlottedCall], position: dict[int, int]) -> None:
    """Mark each command on our line, in the middle of its lap. `position` is by lap, 0 for the grid."""
    for call in calls:
        if call.lap - 1 in position:
            before = position[call.lap - 1]
            point = (call.lap - 0.5, (before + position.get(call.lap, before)) / 2)
            axes.plot(*point, marker="o", color="white", markeredgecolor=OURS, markersize=10.5, zorder=6, label="_call")
            axes.annotate(str(call.lap), point, ha="center", va="center_baseline", fontsize=6.2, color=OURS,
                          fontweight="bold", zorder=7)


def _mark_stops(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Mark the new tyres at the end of each lap with a pit stop."""
    for before, after in zip(rows, rows[1:], strict=False):
        if before["stopped"]:
            axes.annotate(after["compound"][0].upper(), (before["lap"], before["position"]), ha="center",
                          va="center_baseline", fontsize=SMALL_PT, fontweight="bold", color="black", zorder=9,
                          bbox={"boxstyle": "circle,pad=0.22", "facecolor": TYRES[after["compound"]],
                                "edgecolor": OURS, "linewidth": 1.4})
