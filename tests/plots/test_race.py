"""The plot of a race: the drawn data are read from the axes and compared with the race."""
from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

from f1_pipelines.cli import main
from f1_pipelines.plots import panels
from f1_pipelines.plots.race import MAX_CALLS, BadPicture, RaceAxes, draw_race, height_in, picture_file, save_race
from f1_pipelines.sim.engine.drive import Calls
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.step import run
from f1_pipelines.sim.policies.play import Played, lap_table, play

RACES = (("dry_strategy_sprint", 3, "fixed_stop"), ("weather_roulette", 7, "random"), ("late_safety_car", 16, "done"),
         ("virtual_safety_car_window", 2, "blind_list"), ("championship_decider", 5, "expert"))


@pytest.fixture(scope="module", params=RACES, ids=lambda race: race[0])
def race(request) -> Played:
    return play(*request.param)


@pytest.fixture(scope="module")
def grand_prix() -> Played:
    """78 laps of 22 cars with rain, stops and retirements, and a command in every lap."""
    lap, car = np.arange(78), np.arange(22)
    setup = RaceSetup(circuits=(circuit_prior("monaco"),), seeds=np.array([11]), car_pace_s=np.linspace(-1, 1, 22),
                      race_laps=78, rain=0.6 * ((lap > 40) & (lap < 55))[None], accident_scale=1.5)
    history = run(setup, lambda _, state: Calls(
        pit=np.where((car * 7 + state.lap) % 26 == 3, (state.lap // 5 + car) % 3, -1)[None]), record=True)
    played = play("weather_roulette", 7, "stay_out")
    scenario = SimpleNamespace(numbers=(*range(1, 23),), rain=setup.rain[0])
    decisions = [{**played.decisions[0], "lap": n + 1, "command": "SET_MODE push", "reason": "why not? " * 30}
                 for n in lap]
    return replace(played, family="made_up", laps=lap_table(SimpleNamespace(scenario=scenario, history=history)),
                   decisions=decisions, grid=[*range(1, 23)])


def drawn(race: Played, width_in: float = 9.0) -> RaceAxes:
    return draw_race(Figure(figsize=(width_in, height_in(race, width_in))), race)


def test_the_lines_are_the_positions_of_the_race(race):
    lines = {line.get_label(): line for line in drawn(race).places.lines}
    for slot, number in enumerate(race.grid, start=1):
        rows = [row for row in race.laps if row["car"] == number and row["position"]]
        expected = [(0, slot), *((row["lap"], row["position"]) for row in rows)]
        assert [tuple(point) for point in lines[f"car {number}"].get_xydata()] == expected
    ours = next(row["car"] for row in race.laps if row["ours"])
    widths = {label: line.get_linewidth() for label, line in lines.items() if label.startswith("car ")}
    assert max(widths, key=widths.get) == f"car {ours}" and len(widths) == len(race.grid)


def test_the_bars_are_the_tyres_of_each_lap(race):
    axes = drawn(race).tyres
    order = [int(label.get_text()[1:]) for label in axes.get_yticklabels()]
    assert order == panels.finish_order(race) and sorted(order) == sorted(race.grid)
    compounds = {}
    for bar in axes.containers:
        (patch,), (_, number, compound) = bar.patches, bar.get_label().split()
        assert order[round(patch.get_y() + patch.get_height() / 2)] == int(number)
        assert to_hex(patch.get_facecolor()) == panels.TYRES[compound]
        first, last = round(patch.get_x()), round(patch.get_x() + patch.get_width())
        compounds |= {(int(number), lap): compound for lap in range(first + 1, last + 1)}
    assert compounds == {(row["car"], row["lap"]): row["compound"] for row in race.laps}
    letters = [text.get_text() for text in axes.texts if len(text.get_text()) == 1]
    assert letters == [bar.get_label().split()[2][0].upper() for bar in axes.containers]


def test_rain_and_track_status_are_drawn_for_each_lap(race):
    axes = drawn(race)
    rain, status = ({row["lap"]: row[name] for row in race.laps} for name in ("rain", "status"))
    if any(rain.values()):
        bars = [bar for container in axes.rain.containers for bar in container.patches]
        assert {round(bar.get_x() + bar.get_width() / 2 + 0.5): bar.get_height() for bar in bars} == rain
    else:
        assert "no rain" in [text.get_text() for text in axes.rain.texts]
    shaded = {}
    for patch in axes.places.patches:
        first, last = round(patch.get_x()), round(patch.get_x() + patch.get_width())
        shaded |= {lap: patch.get_label().removeprefix("track ") for lap in range(first + 1, last + 1)}
    assert shaded == {lap: name for lap, name in status.items() if name != "green"}
    labels = {text.get_text().lower() for text in axes.places.texts} & {"sc", "vsc", "red"}
    assert labels == set(shaded.values())


def test_stops_and_commands_are_marked_with_their_lap(race):
    axes = drawn(race)
    texts = [text.get_text() for text in axes.calls.texts[1:]]
    decisions = [d for d in race.decisions if d["command"] != "STAY_OUT"]
    assert [int(lap) for lap in texts[::2]] == [d["lap"] for d in decisions]  # a sprint has room for all of them
    verbs = [text.split()[0].rstrip(":") for text in texts[1::2]]
    assert verbs == [d["command"].split()[0] for d in decisions]
    ours = [row for row in race.laps if row["ours"]]
    stops = {text.xy for text in axes.places.texts if text.get_bbox_patch() is not None}
    assert stops == {(row["lap"], row["position"]) for row in ours[:-1] if row["stopped"]}


def test_the_file_is_a_png_of_the_right_width(race, tmp_path):
    file = save_race(race, tmp_path / "race.PNG")
    with Image.open(file) as image:
        assert image.format == "PNG" and image.width == 1440
        assert len(image.convert("RGB").getcolors(10**6)) > 30
    assert file.stat().st_size < 150_000
    first = file.read_bytes()
    assert save_race(race, file).read_bytes() == first


def test_a_grand_prix_fits_and_shows_how_many_commands_it_omits(grand_prix, tmp_path):
    figure = Figure(figsize=(9.0, height_in(grand_prix)))
    axes = draw_race(figure, grand_prix)
    assert axes.calls.texts[0].get_text().startswith(f"{MAX_CALLS} of 78 commands")
    assert len(axes.tyres.get_yticklabels()) == 22
    cars = [text for text in [*axes.places.texts, *axes.tyres.get_yticklabels()] if "#" in text.get_text()]
    boxes = [text.get_window_extent() for text in cars]
    assert len(boxes) > 50 and all(0 <= box.x0 < box.x1 <= figure.bbox.width for box in boxes)
    edge = sorted((box for text, box in zip(cars, boxes, strict=True) if text.get_text().startswith("P")),
                  key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 1 for below, above in zip(edge, edge[1:], strict=False))


def test_two_races_fit_side_by_side():
    races = [play("weather_roulette", 7, policy) for policy in ("stay_out", "fixed_stop")]
    figure = Figure(figsize=(13.0, max(height_in(race, 6.5) for race in races)))
    for part, race in zip(figure.subfigures(1, 2), races, strict=True):
        axes = draw_race(part, race)
        assert axes.places.get_position().y0 > axes.rain.get_position().y1 > axes.tyres.get_position().y1
        for text in axes.calls.texts:
            assert text.get_window_extent().x1 <= part.bbox.x1
    figure.canvas.draw()


@pytest.mark.parametrize("command", ["PIT_NOW $\\frac{1$", "無線 で 話す", 'RADIO_DRIVER "a\nb"', "", "_{^$$"])
def test_any_model_output_is_drawn_as_text(command, tmp_path):
    race = play("dry_strategy_sprint", 3, "stay_out")
    decisions = [{**race.decisions[0], "command": command, "error": f"unknown command {command!r}", "reason": ""}]
    save_race(replace(race, decisions=decisions), tmp_path / "race.png")
    assert (tmp_path / "race.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("name", "message"), [
    ("race.jpg", "ends in .png"), ("race", "ends in .png"), ("nowhere/race.png", "create it first"),
    ("folder.png", "is a folder")])
def test_a_bad_file_name_is_refused_before_the_race_is_played(name, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(BadPicture, match=message):
        picture_file(tmp_path / name)
    monkeypatch.setattr(sys.modules[play.__module__], "play", lambda *_: pytest.fail("played"))
    monkeypatch.setattr("sys.argv", ["f1", "race", "--family", "late_safety_car", "--seed", "3", "--policy", "done",
                                     "--picture", str(tmp_path / name)])
    with pytest.raises(SystemExit) as end:
        main.main()
    printed = capsys.readouterr()
    assert end.value.code == 1 and message in printed.err and printed.err.count("\n") == 1 and not printed.out


def test_the_command_draws_and_prints_the_race(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["f1", "race", "--family", "late_safety_car", "--seed", "3", "--policy", "done",
                                     "--picture", str(tmp_path / "race.png")])
    main.main()
    assert "late_safety_car seed 3" in capsys.readouterr().out
    with Image.open(tmp_path / "race.png") as image:
        assert image.format == "PNG"
