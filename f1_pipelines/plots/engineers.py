"""Plots of race engineers: training curves, scores by family, and the stages from untrained to expert.

Each function returns a figure; `style.png_of` and `style.svg_of` convert it to a file's content.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from f1_pipelines.plots.style import (
    COLOURS,
    FAINT,
    INK,
    SMALL_PT,
    TEXT_PT,
    TITLE_PT,
    display_name,
    policy_style,
    style_axes,
    styled_figure,
)
from f1_pipelines.sim.scenarios import FAMILIES, UNSEEN_FAMILY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALL = "all"
PANELS = (ALL, *FAMILIES, "unseen_circuit")
TITLES = {ALL: "all families", UNSEEN_FAMILY: f"unseen: {display_name(UNSEEN_FAMILY)}",
          "unseen_circuit": "unseen circuits, all families"}
REFERENCE_POLICIES = ("untrained", "sft", "expert")  # with lines to compare the score in training with
LOSS_TICKS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5)  # those within the axis limits are drawn
LABEL_GAP_PT = 9.0  # minimum distance of two labels
SMOOTHING_STEPS = 5  # window of the moving mean
LINE_STYLES = ("-", "--", ":", "-.")  # by training seed, repeated


def training_figure(curve: pd.DataFrame, leaderboard: pd.DataFrame) -> Figure:
    """Plot SFT loss, and GRPO score and selection score, by training step.

    Args:
        curve: Rows of `strategy.training_curve` of one profile, any number of runs. Metrics drawn: `loss` (sft),
            `score` (grpo, of sampled commands) and `selection_score` (grpo, of whole validation races).
        leaderboard: Rows of `strategy.leaderboard`; its plain rows of all families are the reference lines.
    """
    figure = styled_figure(3.0)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.6))
    style_axes(left, "SFT: loss on the expert's commands")
    for run, rows in _runs(curve, "sft", "loss"):
        left.plot(rows["step"], rows["value"], color=COLOURS["sft"], linewidth=1.1, **run)
    left.set_yscale("log")
    low, high = left.get_ylim()
    ticks = [loss for loss in LOSS_TICKS if low <= loss <= high]
    left.set_yticks(ticks, [f"{loss:g}" for loss in ticks])
    left.minorticks_off()
    style_axes(right, "GRPO: score after the sampled commands")
    for run, rows in _runs(curve, "grpo", "score"):
        right.plot(rows["step"], rows["value"], color=COLOURS["grpo"], linewidth=0.6, alpha=0.3, label="_raw")
        right.plot(rows["step"], rows["value"].rolling(SMOOTHING_STEPS, 1, center=True).mean(), color=COLOURS["grpo"],
                   linewidth=1.4, **run)
    for k, (run, rows) in enumerate(_runs(curve, "grpo", "selection_score")):
        right.plot(rows["step"], rows["value"], color=INK, linewidth=0.9, marker="o", markersize=3.5,
                   linestyle=run["linestyle"], label="_more" if k else "whole validation races")
    figure.draw_without_rendering()  # computes the sizes that labels need
    _reference_lines(right, leaderboard)
    for axes in (left, right):
        axes.set_xlabel("step", fontsize=TEXT_PT, color=INK)
        if len(axes.get_legend_handles_labels()[0]):
            axes.legend(fontsize=SMALL_PT, frameon=False, loc="best", handlelength=2.4)
    return figure


def scores_figure(leaderboard: pd.DataFrame) -> Figure:
    """Plot mean scores with 95 % intervals: one panel per family, one for all families, one for unseen circuits.

    Args:
        leaderboard: Rows of `strategy.leaderboard`, plain variant. Policies are ordered by score over all families.
    """
    overall = leaderboard[leaderboard["family"] == ALL].sort_values("mean")
    policies = overall["policy"].tolist()
    figure = styled_figure(2 * (0.175 * len(policies) + 0.75))
    grid = figure.subplots(2, 4, sharex=True, sharey=True).ravel()
    for axes, part in zip(grid, PANELS, strict=True):
        rows = leaderboard[leaderboard["family"] == part].set_index("policy").reindex(policies).dropna(subset="mean")
        style_axes(axes)
        axes.set_title(TITLES.get(part, display_name(part)), fontsize=TEXT_PT, color=INK, loc="left",
                       fontweight="bold" if part == ALL else "normal")
        for policy, row in rows.iterrows():
            at, style = policies.index(policy), policy_style(str(policy))
            axes.plot([row["low"], row["high"]], [at, at], color=style["color"], linewidth=1.2, marker="|",
                      markersize=7, zorder=2, label="_interval")
            axes.plot(row["mean"], at, markersize=4 if style["marker"] != "*" else 6, linestyle="", zorder=3,
                      label=policy, **style)
            if part == ALL:
                inside = row["mean"] > 0.8
                axes.annotate(f"{row['mean']:.2f}", (row["low"] if inside else row["high"], at),
                              (-4 if inside else 4, 0), textcoords="offset points", va="center",
                              ha="right" if inside else "left", fontsize=SMALL_PT, color=INK)
        axes.set_ylim(-0.7, len(policies) - 0.3)
    grid[0].set_xlim(0, 1.03)
    grid[0].set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
    grid[0].set_yticks(range(len(policies)), [display_name(policy) for policy in policies])
    for axes in grid[4:]:
        axes.set_xlabel("score", fontsize=TEXT_PT, color=INK)
    for axes in grid[::4]:
        for label, policy in zip(axes.get_yticklabels(), policies, strict=True):
            label.set(color=COLOURS.get(policy, INK), fontweight="bold" if policy in COLOURS else "normal")
    return figure


def journey_figure(stages: pd.DataFrame) -> Figure:
    """Plot the score of each stage from untrained to expert, and the share of the gap to the expert that it closes.

    Args:
        stages: Ordered rows with `label`, `policy` (sets the colour), `mean`, `low` and `high`. The first row is 0 % of
            the gap, the last row (the expert) 100 %. A label that ends in * marks training races, drawn hollow.
    """
    figure = styled_figure(3.2, 7.5)
    axes = figure.subplots()
    style_axes(axes)
    mean = stages["mean"].to_numpy(float)
    axes.plot(range(len(stages)), mean, color="#c8c8c8", linewidth=1.2, zorder=1, label="_way")
    for at, row in enumerate(stages.itertuples()):
        style = policy_style(row.policy)
        axes.plot([at, at], [row.low, row.high], color=style["color"], linewidth=1.6, marker="_", markersize=10,
                  zorder=2, label="_interval")
        axes.plot(at, row.mean, markersize=5.5, linestyle="", zorder=3, label=row.label,
                  markerfacecolor="white" if row.label.endswith("*") else style["color"], **style)
        below = at == 0  # the line rises from here
        axes.annotate(f"{row.mean:.3f}", (at, row.low if below else row.high), (0, -5 if below else 5),
                      textcoords="offset points", ha="center", va="top" if below else "bottom", fontsize=TEXT_PT,
                      color=INK)
    axes.set_xticks(range(len(stages)), stages["label"], fontsize=TEXT_PT)
    axes.set(xlim=(-0.4, len(stages) - 0.35), ylim=(0, 1))
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("score", fontsize=TEXT_PT, color=INK)
    low, gap = mean[0], mean[-1] - mean[0]
    if gap > 0:
        closed = axes.secondary_yaxis("right", functions=(lambda y: (y - low) / gap, lambda y: low + y * gap))
        closed.set_yticks(np.linspace(0, 1, 5), [f"{share:.0%}" for share in np.linspace(0, 1, 5)])
        closed.tick_params(labelsize=SMALL_PT, color=FAINT, labelcolor=INK, length=2)
        closed.set_ylabel("gap to the expert closed", fontsize=TEXT_PT, color=INK)
        closed.spines["right"].set_visible(False)
    axes.set_title("From untrained to expert: held-out races, 95 % intervals", fontsize=TITLE_PT, color=INK,
                   loc="left")
    if stages["label"].str.endswith("*").any():
        axes.annotate("* training races of that DAgger round, before the expert relabelled them", (1, 0.02),
                      xycoords="axes fraction", ha="right", fontsize=SMALL_PT, color=FAINT)
    return figure


def _runs(curve: pd.DataFrame, stage: str, metric: str) -> list[tuple[dict[str, str], pd.DataFrame]]:
    """Line style and rows of each run, ordered by training seed."""
    rows = curve[(curve["stage"] == stage) & (curve["metric"] == metric)].astype({"value": float})
    runs = rows.sort_values("step").groupby(["training_seed", "run"])
    return [({"linestyle": LINE_STYLES[k % len(LINE_STYLES)], "label": f"training seed {seed}"}, part)
            for k, ((seed, _), part) in enumerate(runs)]


def _reference_lines(axes: Axes, leaderboard: pd.DataFrame) -> None:
    """Draw mean and interval of the `REFERENCE_POLICIES` over all families, with names at the right end."""
    rows = leaderboard[(leaderboard["family"] == ALL) & (leaderboard["variant"] == "plain")].set_index("policy")
    references = rows.loc[[policy for policy in REFERENCE_POLICIES if policy in rows.index]].sort_values("mean")
    for policy, row in references.iterrows():
        axes.axhspan(row["low"], row["high"], color=COLOURS[policy], alpha=0.15, linewidth=0, label="_interval")
        axes.axhline(row["mean"], color=COLOURS[policy], linewidth=1.2, label="_line")
    axes.margins(y=0.08)
    scale_pt = axes.get_window_extent().height / np.ptp(axes.get_ylim()) / axes.figure.dpi * 72
    label_pt = -np.inf
    for policy, row in references.iterrows():  # from the lowest up, so that no labels overlap
        label_pt = max(row["mean"] * scale_pt, label_pt + LABEL_GAP_PT)
        axes.annotate(f"{display_name(policy)} {row['mean']:.2f}", (1, row["mean"]),
                      (3, label_pt - row["mean"] * scale_pt),
                      xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize=SMALL_PT,
                      color=COLOURS[policy], fontweight="bold", annotation_clip=False)
