"""Plots of race engineers: the drawn data are read from the axes and compared with the rows."""
from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from PIL import Image

from f1_pipelines.plots.engineers import PANELS, journey_figure, scores_figure, training_figure
from f1_pipelines.plots.style import png_of, svg_of
from f1_pipelines.tables.strategy import LEADERBOARD, POLICIES, TRAINING_CURVE

LEVELS = dict(zip(POLICIES, np.linspace(0.2, 0.95, len(POLICIES)).round(3), strict=True))


def board(policies=POLICIES, parts=PANELS) -> pd.DataFrame:
    rows = pd.DataFrame([
        {"policy": policy, "variant": variant, "family": part, "n": 30, "mean": LEVELS[policy] + shift,
         "low": LEVELS[policy] + shift - 0.02, "high": LEVELS[policy] + shift + 0.03}
        for policy in policies for part in parts for variant, shift in (("plain", 0.0), ("renamed", -0.1))
        if variant == "plain" or policy == "sft"])
    fixed = {"constant_score": False, "env_version": 2, "prompt_version": 2, "scenes_version": "0",
             "made_at": pd.Timestamp("2026-11-29", tz="UTC")}
    return LEADERBOARD.conform(rows.assign(**fixed, **{name: 0.5 for name in LEADERBOARD.column_names
                                                       if name not in {*rows.columns, *fixed, "checkpoint"}},
                                           checkpoint=None))


def curve() -> pd.DataFrame:
    rows = [{"run": f"{stage}{seed}", "stage": stage, "profile": "tiny", "training_seed": seed, "step": step,
             "metric": metric, "value": value(step) + 0.01 * seed}
            for seed in (0, 1, 2) for stage, metric, value in (
                ("sft", "loss", lambda step: 2.0 / (1 + step)), ("grpo", "score", lambda step: 0.7 + step / 1000),
                ("grpo", "selection_score", lambda step: 0.75 + step / 1000), ("grpo", "entropy", lambda step: 9.0))
            for step in range(0, 60, 10)]
    return TRAINING_CURVE.conform(pd.DataFrame(rows))


def lines(axes) -> dict[str, list[tuple[float, float]]]:
    return {line.get_label(): [tuple(point) for point in line.get_xydata().round(6).tolist()]
            for line in axes.get_lines()}


def test_training_curves_show_each_seed_and_the_reference_policies():
    figure = training_figure(curve().sample(frac=1, random_state=0), board())
    sft, grpo = figure.axes
    for seed in (0, 1, 2):
        assert lines(sft)[f"training seed {seed}"] == [
            (float(step), round(2.0 / (1 + step) + 0.01 * seed, 6)) for step in range(0, 60, 10)]
    assert lines(grpo)["whole validation races"] == [(float(s), round(0.75 + s / 1000, 6)) for s in range(0, 60, 10)]
    assert not any(y > 1 for points in lines(grpo).values() for _, y in points)  # entropy is not drawn
    labels = {text.get_text(): text.xy[1] for text in grpo.texts}
    assert labels == {f"{name} {LEVELS[policy]:.2f}": LEVELS[policy] for policy, name in
                     (("untrained", "untrained"), ("sft", "SFT"), ("expert", "expert"))}


def test_labels_of_close_lines_do_not_overlap():
    close = board()
    close.loc[close["policy"] == "expert", ["mean", "low", "high"]] -= LEVELS["expert"] - LEVELS["sft"] - 0.001
    figure = training_figure(curve(), close)
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in figure.axes[1].texts), key=lambda box: box.y0)
    assert len(boxes) == 3
    assert all(below.y1 <= above.y0 + 1 for below, above in zip(boxes, boxes[1:], strict=False))


def test_scores_have_a_panel_per_family_with_all_intervals():
    figure = scores_figure(board().query("variant == 'plain'"))
    assert len(figure.axes) == len(PANELS) == 8
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names[0] == "random" and names[-1] == "oracle" and "GRPO" in names
    for axes in figure.axes:
        for rank, policy in enumerate(sorted(POLICIES, key=LEVELS.__getitem__)):
            assert lines(axes)[policy] == [(LEVELS[policy], float(rank))]
        intervals = [tuple(line.get_xdata().round(6)) for line in axes.get_lines() if line.get_label() == "_interval"]
        assert sorted(intervals) == sorted((round(x - 0.02, 6), round(x + 0.03, 6)) for x in LEVELS.values())
    figure.draw_without_rendering()
    titles = [next(text for text in axes.findobj(Text) if text.get_text() == axes.get_title(loc="left")
                   ).get_window_extent() for axes in figure.axes]
    assert all(left.x1 < right.x0 for left, right in zip(titles[4:], titles[5:], strict=False))


def test_the_panel_of_a_family_without_races_is_empty():
    figure = scores_figure(board(parts=("all", "late_safety_car")).query("variant == 'plain'"))
    assert [bool(axes.get_lines()) for axes in figure.axes] == [part in ("all", "late_safety_car") for part in PANELS]


def test_the_journey_spans_the_gap_from_first_to_last_stage():
    stages = pd.DataFrame([
        {"label": label, "policy": policy, "mean": mean, "low": mean - 0.02, "high": mean + 0.02}
        for label, policy, mean in (("untrained", "untrained", 0.2), ("SFT", "sft", 0.7), ("GRPO 1", "grpo", 0.72),
                                    ("GRPO 2", "grpo", 0.71), ("expert", "expert", 0.9))])
    figure = journey_figure(stages)
    axes = figure.axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == stages["label"].tolist()
    assert [lines(axes)[label] for label in stages["label"]] == [[(float(k), mean)] for k, mean in
                                                                  enumerate(stages["mean"])]
    (closed,) = axes.child_axes
    figure.draw_without_rendering()
    assert closed.get_ylim() == pytest.approx(((0 - 0.2) / 0.7, (1 - 0.2) / 0.7))


def test_without_a_gap_there_is_no_gap_axis():
    stages = pd.DataFrame([{"label": name, "policy": name, "mean": 0.5, "low": 0.4, "high": 0.6}
                           for name in ("untrained", "expert")])
    assert not journey_figure(stages).axes[0].child_axes


@pytest.mark.parametrize("rows", [slice(None), slice(0, 0)], ids=["rows", "none"])
def test_files_have_the_right_width_and_are_reproducible(rows):
    def draw():
        return training_figure(curve().iloc[rows], board().iloc[rows])

    with Image.open(io.BytesIO(png_of(draw()))) as image:
        assert image.format == "PNG" and image.width == 1440
    first = svg_of(draw())
    assert first == svg_of(draw()) and b"<svg" in first and b">step<" in first
