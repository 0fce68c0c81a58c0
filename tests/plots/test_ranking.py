"""Plots of the ranker show the given data."""
import pandas as pd
from matplotlib.figure import Figure

from f1_pipelines.plots.ranking import EVENTS, draw_reliability, draw_season, png

CALIBRATION = pd.DataFrame([
    {"predictor": predictor, "event": event, "bin": number, "n": 10 * number, "mean_probability": number / 10 - 0.05,
     "frequency": number / 10}
    for predictor in ("champion", "grid_logit") for event in EVENTS for number in (1, 4, 9)])
RACES = pd.DataFrame([
    {"weekend": f"2026-{name}", "predictor": predictor, "spearman": rho}
    for predictor, values in (("grid", (0.5, 0.7, 0.6)), ("champion", (0.6, 0.8, 0.1)))
    for name, rho in zip(("australia", "china", "japan"), values, strict=True)])


def lines(axes):
    return {line.get_label(): (line.get_xdata().round(6).tolist(), line.get_ydata().round(6).tolist())
            for line in axes.get_lines() if line.get_label()[0] != "_"}


def test_each_event_has_a_panel_with_a_line_per_predictor():
    figure = Figure()
    draw_reliability(figure, CALIBRATION.sample(frac=1, random_state=0))
    assert len(figure.axes) == len(EVENTS)
    for axes in figure.axes:
        assert lines(axes)["champion"] == ([0.05, 0.35, 0.85], [0.1, 0.4, 0.9])
        assert "grid_logit" in lines(axes)


def test_a_season_shows_each_race_and_the_mean_so_far_in_race_order():
    figure = Figure()
    draw_season(figure, RACES)
    single, so_far = figure.axes
    assert lines(single)["champion"][1] == [0.6, 0.8, 0.1]
    assert lines(so_far)["champion"][1] == [0.6, 0.7, 0.5]
    assert [tick.get_text() for tick in single.get_xticklabels()] == ["australia", "china", "japan"]


def test_plots_are_png_files_also_of_empty_tables():
    assert png(lambda figure: draw_season(figure, RACES)).startswith(b"\x89PNG")
    assert png(lambda figure: draw_reliability(figure, CALIBRATION.iloc[:0])).startswith(b"\x89PNG")
