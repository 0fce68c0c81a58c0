"""Demonstrations: driven by the expert, filtered, as table rows."""
import json
from dataclasses import replace

from f1_pipelines.engineer.data.demonstrations import (
    expert_demonstrations,
    turn_rows,
    with_fewer_stay_outs,
    without_needless_call,
)
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.sim.environment.commands import parse
from f1_pipelines.sim.policies.play import play
from f1_pipelines.sim.scenarios import GridSpec
from f1_pipelines.tables.strategy import SFT_TURNS

KEY = ("dry_strategy_sprint", 6)  # a race with the usual names and without a hint


def test_without_perturbation_the_demonstrations_are_the_experts_race():
    [turns] = expert_demonstrations(ScenarioSampler(), [KEY], perturbation_rate=0.0, futures=96)
    race = play(*KEY, "expert")
    assert [turn.completion for turn in turns] == [row["command"] for row in race.decisions]
    assert [turn.prompt for turn in turns] == [row["observation"] for row in race.decisions]


def test_perturbed_laps_change_the_race_reproducibly_and_labels_stay_valid():
    [unperturbed] = expert_demonstrations(ScenarioSampler(), [KEY], perturbation_rate=0.0)
    [perturbed] = expert_demonstrations(ScenarioSampler(), [KEY], perturbation_rate=0.9)
    assert [turn.prompt for turn in unperturbed] != [turn.prompt for turn in perturbed]
    assert all(parse(turn.completion) for turn in perturbed)
    [repeated] = expert_demonstrations(ScenarioSampler(), [KEY], perturbation_rate=0.9)
    assert perturbed == repeated


def test_values_are_relative_to_the_best_command_and_stops_are_close_to_it(turns):
    assert any(turn.completion in turn.values_s for turn in turns)
    for turn in turns:
        assert max(turn.values_s.values()) == 0.0
        assert turn.expert_value is None or turn.expert_value <= 0.0
    stops = [turn for turn in turns if turn.completion.startswith("PIT_NOW")]
    assert stops
    assert all(turn.values_s[turn.completion] > -3.0 for turn in stops)


def test_stay_outs_are_limited_to_their_share(turns):
    reduced = with_fewer_stay_outs(turns, stay_share=0.2)
    n_stays = sum(turn.completion == "STAY_OUT" for turn in reduced)
    assert n_stays <= 0.2 * len(reduced) + 1
    assert [turn for turn in turns if turn.completion != "STAY_OUT"] == [
        turn for turn in reduced if turn.completion != "STAY_OUT"]


def test_a_driving_command_that_hardly_gains_becomes_stay_out(turns):
    turn = replace(turns[0], completion="SET_MODE push", values_s={"SET_MODE push": 0.0, "STAY_OUT": -1.0},
                   expert_value=0.0)
    assert without_needless_call(turn, 1.5).completion == "STAY_OUT"
    assert without_needless_call(turn, 1.5).expert_value == -1.0
    assert without_needless_call(turn, 0.5) == turn
    stop = replace(turn, completion="PIT_NOW hard", values_s={"PIT_NOW hard": 0.0, "STAY_OUT": -1.0})
    assert without_needless_call(stop, 1.5) == stop


def test_rows_conform_to_the_table(turns):
    versions = {"env_version": 1, "prompt_version": 1, "scenes_version": "x"}
    rows = turn_rows(turns).assign(near_tie=False, collected_by="expert", **versions)
    conformed = SFT_TURNS.conform(rows)
    assert json.loads(conformed["values_s"].iloc[0])
    assert len(conformed) == len(turns)


def test_a_sampler_uses_its_fields_and_survives_serialization():
    grid_spec = GridSpec((-0.2, -0.1, 0.1, 0.2, 0.3), tuple(range(30, 40)))
    sampler = ScenarioSampler(fields=(grid_spec,))
    assert set(sampler.scenario(*KEY).numbers) <= set(grid_spec.numbers)
    restored = ScenarioSampler.from_json(sampler.as_json())
    assert restored.version == sampler.version != ScenarioSampler().version
    assert restored.scenario(*KEY) == sampler.scenario(*KEY) != ScenarioSampler().scenario(*KEY)
