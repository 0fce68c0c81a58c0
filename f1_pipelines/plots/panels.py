"""The panels of a race's picture. Nothing is said by colour alone: tyres have letters, a closed track its name, our car
a thick line and a label.
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
CLOSED = {"vsc": "#fff1c4", "sc": "#ffd98f", "red": "#f3b4b0"}
OURS, OTHERS, INK, RAIN = "#6a1b9a", ("#7d7d7d", "#a6a6a6", "#929292"), "#2b2b2b", "#3f7fbf"
TITLE_PT, TEXT_PT, SMALL_PT = 11.0, 8.0, 7.2
LETTER, BOLD, SPACING = 0.56, 0.66, 1.5  # mean widths of a character and distance of lines, over the size of the type


def heading_of(race: Played, width_in: float) -> list[tuple[str, float, str]]:
    """Policy and race, result, and briefing: (line, points, weight) from the top down."""
    parts = " · ".join(f"{name} {value:.2f}" for name, value in race.score.items() if name != "score")
    place = "disqualified" if race.info["disqualified"] else f"P{race.info['position']} of {len(race.grid)}"
    if not race.info["finished"] and not race.info["disqualified"]:
        place = "did not finish"
    texts = (
        (f"{race.family} seed {race.seed}, {race.circuit}: {race.policy} scores {race.score['score']:.2f}", TITLE_PT,
         "bold"),
        (f"{place}, best possible P{race.info['best_position']} · {parts} · {race.split}, env {race.env_version}",
         TEXT_PT, "normal"),
        (race.briefing, SMALL_PT, "normal"))
    return [(line, size_pt, weight) for text, size_pt, weight in texts
            for line in wrap(text, int(width_in * 72 / size_pt / (BOLD if weight == "bold" else LETTER)))]


def draw_heading(figure: Figure | SubFigure, lines: list[tuple[str, float, str]], left: float, high_in: float) -> None:
    """The lines of `heading_of`."""
    down_in = 0.10
    for line, size_pt, weight in lines:
        figure.text(left, 1.0 - down_in / high_in, line, fontsize=size_pt, fontweight=weight, color=INK, va="top",
                    parse_math=False)
        down_in += size_pt * SPACING / 72


def draw_places(axes: Axes, race: Played, calls: list[PlottedCall]) -> None:
    """Place by lap from the grid on, one line a car; ours carries the laps of our calls."""
    laps = _prepare_lap_axes(axes, race)
    for tone, number in enumerate(race.grid):
        rows = [row for row in race.laps if row["car"] == number]
        ours, driven = rows[0]["ours"], [row for row in rows if row["position"]]
        at = [0] + [row["lap"] for row in driven]
        place = [race.grid.index(number) + 1] + [row["position"] for row in driven]
        colour = OURS if ours else OTHERS[tone % len(OTHERS)]
        axes.plot(at, place, color=colour, linewidth=3.0 if ours else 1.1, zorder=4 if ours else 2,
                  label=f"car {number}", solid_joinstyle="round")
        style: dict[str, Any] = {"color": colour, "fontsize": TEXT_PT if ours else SMALL_PT, "va": "center",
                 "fontweight": "bold" if ours else "normal"}
        axes.annotate(f"#{number}", (0, place[0]), (-5, 0), textcoords="offset points", ha="right", **style)
        if len(driven) < len(rows):
            axes.plot(at[-1], place[-1], marker="X", color=colour, markersize=7, zorder=5, clip_on=False,
                      label="_out")
            axes.annotate("out", (at[-1], place[-1]), (6, 5), textcoords="offset points", zorder=5, **style)
        else:
            end = "DSQ" if ours and race.info["disqualified"] else f"P{place[-1]}"
            axes.annotate(f"{end} #{number}", (at[-1], place[-1]), (6, 0), textcoords="offset points", **style)
        for row in driven:
            if row["stopped"] and not ours:
                axes.plot(row["lap"], row["position"], marker="o", color="white", markeredgecolor=colour,
                          markersize=3.5, zorder=3, label="_stop")
        if ours:
            _mark_calls(axes, calls, dict(zip(at, place, strict=True)))
            _mark_stops(axes, rows)
    axes.set(ylim=(len(race.grid) + 0.5, 0.5), yticks=[], xlim=(0, laps))
    axes.tick_params(labelbottom=False)
    axes.spines["left"].set_visible(False)
    for status, first, last in _closed(race):
        axes.annotate(status.upper(), ((first + last) / 2 - 0.5, 1), (0, 2), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha="center", va="bottom", fontsize=SMALL_PT, fontweight="bold",
                      color=INK)


def draw_rain(axes: Axes, race: Played) -> None:
    """Intensity of the rain in each lap, 0 to 1."""
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
    """The stints of each car, by finish; the letter is the compound's."""
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


def draw_calls(axes: Axes, calls: list[PlottedCall], of: int, columns: int, width_in: float) -> None:
    """The marked calls in words, of so many: what was called, and what came back or why."""
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    lines, across = -(-max(len(calls), 1) // columns), axes.bbox.width / axes.figure.dpi
    axes.text(0, 1, f"{len(calls)} of {of} calls by lap, with what came back or why" if calls else "STAY_OUT always",
              fontsize=SMALL_PT, fontstyle="italic", color=INK, va="top")
    for k, call in enumerate(calls):
        x, y = k // lines * width_in / columns / across, 1 - (1 + k % lines) / (lines + 1)
        axes.text(x + 0.14 / across, y, str(call.lap), fontsize=SMALL_PT, fontweight="bold", color=OURS, va="top",
                  ha="right")
        text = axes.text(x + 0.20 / across, y, call.text, fontsize=SMALL_PT, color=INK, va="top", parse_math=False)
        _shorten(text, (width_in / columns - 0.36) * axes.figure.dpi)


def stints_of(race: Played, number: int) -> list[tuple[str, int, int]]:
    """(compound, first lap, last lap) of each set that the car raced on."""
    rows = [row for row in race.laps if row["car"] == number]
    stints: list[Any] = []
    for row in rows:
        if not stints or row["tyre_age_laps"] != rows[row["lap"] - 2]["tyre_age_laps"] + 1:
            stints.append((row["compound"], row["lap"], row["lap"]))
        stints[-1] = (*stints[-1][:2], row["lap"])
    return stints


def finish_order(race: Played) -> list[int]:
    """Car numbers from the winner down; those that stopped last, the furthest first."""
    last = {row["car"]: row for row in race.laps}
    return sorted(last, key=lambda number: (last[number]["position"] is None, last[number]["position"]
                                            or -last[number]["lap"]))


def _shorten(text: Text, most_pixels: float) -> None:
    """Shorten a text until it fits."""
    words = text.get_text()
    while (width := text.get_window_extent().width) > most_pixels:
        words = words[:min(len(words) - 1, int(len(words) * most_pixels / width))]
        text.set_text(words.rstrip() + "…")


def _prepare_lap_axes(axes: Axes, race: Played) -> int:
    """What the panels over laps have in common: the distance, the closed track, no frame. The laps."""
    from matplotlib.ticker import MaxNLocator

    laps = max(row["lap"] for row in race.laps)
    axes.set_xlim(0, laps)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=15, integer=True))
    axes.tick_params(labelsize=SMALL_PT, length=2, color=INK, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    for status, first, last in _closed(race):
        axes.axvspan(first - 1, last, color=CLOSED[status], linewidth=0, zorder=0, label=f"track {status}")
    return laps


def _closed(race: Played) -> list[tuple[str, int, int]]:
    """(status, first lap, last lap) of each period under VSC, safety car or red flag."""
    by_lap = {row["lap"]: row["status"] for row in race.laps}
    runs = [list(run) for _, run in groupby(sorted(by_lap.items()), key=lambda lap: lap[1])]
    return [(run[0][1], run[0][0], run[-1][0]) for run in runs if run[0][1] != "green"]


def _our_number(race: Played) -> int:
    return next(row["car"] for row in race.laps if row["ours"])


def _mark_calls(axes: Axes, calls: list[PlottedCall], place: dict[int, int]) -> None:
    """At the start of the lap that was called."""
    for call in calls:
        if call.lap - 1 in place:
            here = place[call.lap - 1]
            there = place.get(call.lap, here)
            axes.plot(call.lap - 0.5, (here + there) / 2, marker="o", color="white", markeredgecolor=OURS,
                      markersize=10.5, zorder=6, label="_call")
            axes.annotate(str(call.lap), (call.lap - 0.5, (here + there) / 2), ha="center", va="center_baseline",
                          fontsize=6.2, color=OURS, fontweight="bold", zorder=7)


def _mark_stops(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """The tyres that went on, where the lap ended in the pits."""
    for before, after in zip(rows, rows[1:], strict=False):
        if before["stopped"]:
            axes.annotate(after["compound"][0].upper(), (before["lap"], before["position"]), ha="center",
                          va="center_baseline", fontsize=SMALL_PT, fontweight="bold", color="black", zorder=9,
                          bbox={"boxstyle": "circle,pad=0.22", "facecolor": TYRES[after["compound"]],
                                "edgecolor": OURS, "linewidth": 1.4})
