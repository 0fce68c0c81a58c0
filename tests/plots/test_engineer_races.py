"""Plots of one race with two policies, and of one race per circuit."""
from __future__ import annotations

import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from f1_pipelines.plots import panels
from f1_pipelines.plots.engineer_races import circuit_grid, story_figure
from f1_pipelines.plots.style import png_of
from f1_pipelines.sim.policies.play import Played, play

RACES = (("dry_strategy_sprint", 3), ("weather_roulette", 5), ("late_safety_car", 1), ("championship_decider", 0),
         ("tyre_cliff_management", 2))


@pytest.fixture(scope="module")
def races() -> list[Played]:
    return [play(family, seed, "checklist") for family, seed in RACES]


@pytest.mark.parametrize(("family", "seed"), [*RACES[:3], ("virtual_safety_car_window", 21)])
def test_the_panels_of_both_races_line_up(family, seed):
    figure = story_figure(play(family, seed, "stay_out"), play(family, seed, "checklist"))
    figure.draw_without_rendering()
    left, right = figure.axes[:4], figure.axes[4:]
    for before, after in zip(left[:3], right[:3], strict=True):
        assert before.get_window_extent().y0 == pytest.approx(after.get_window_extent().y0, abs=1)
        assert before.get_window_extent().y1 == pytest.approx(after.get_window_extent().y1, abs=1)
        assert before.get_window_extent().x1 < after.get_window_extent().x0
        assert before.get_xlim() == after.get_xlim()
    for text in figure.findobj(Text):
        assert text.get_window_extent().x0 >= -1 and text.get_window_extent().x1 <= figure.bbox.x1 + 1


def test_a_story_of_different_races_is_refused(races):
    with pytest.raises(ValueError, match="compares two policies in one race"):
        story_figure(races[0], races[1])


def test_the_grid_has_one_panel_per_circuit_with_its_race(races):
    figure = circuit_grid(races)
    shown = [axes for axes in figure.axes if axes.axison]
    by_name = {race.circuit: race for race in races}
    assert [axes.get_title(loc="left").split("  ")[0] for axes in shown] == sorted(by_name)
    for axes, name in zip(shown, sorted(by_name), strict=True):
        race = by_name[name]
        ours = next(row["car"] for row in race.laps if row["ours"])
        lines = {line.get_label(): line for line in axes.get_lines()}
        assert len(lines) == len(race.grid) and to_hex(lines[f"car {ours}"].get_color()) == panels.OURS
        assert lines[f"car {ours}"].get_ydata().tolist()[1:] == [
            row["position"] for row in race.laps if row["ours"] and row["position"]]
        tyres = [bar.get_label().split()[1] for bar in axes.containers if bar.get_label().startswith("tyre")]
        assert tyres == [compound for compound, _, _ in panels.stints_of(race, ours)]
        shaded = {int(patch.get_label().split()[1]) for patch in axes.patches if patch.get_label().startswith("track")}
        assert shaded == {row["lap"] for row in race.laps if row["status"] != "green"}
        wet = {int(bar.get_label().split()[1]) for bar in axes.containers if bar.get_label().startswith("rain")}
        assert wet == {row["lap"] for row in race.laps if row["rain"]}
        assert f"{race.score['score']:.2f}" in axes.get_title(loc="left")


def test_the_grid_can_be_saved_as_a_png(races):
    assert png_of(circuit_grid(races)).startswith(b"\x89PNG")
