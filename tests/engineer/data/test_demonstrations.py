"""Demonstrations of the expert."""
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

KEY = ("dry_strategy_sprint", 6)  # neither under other names nor with a line of lessons


def test_without_perturbation_the_demonstrations_are_the_experts_race():
    [turns] = expert_demonstrations(ScenarioSampler(), [KEY], perturbation_rate=0.0, futures=96)
    race = play(*KEY, "expert")
    assert [turn.completion for turn in turns] == [row["command"] for row in race.decisions]
    assert [turn.prompt for turn in turns] == [row["observation"] for row in race.decisions]


def test_perturbed_laps_lead_elsewhere_and_the_label_is_still_the_experts():
    [straight] = expert_demonstrations(ScenarioSampler(), [KEY], perturbation_rate=0.0)
    [wild] = expert_demonstrations(ScenarioSampler(), [KEY], perturbation_rate=0.9)
    assert [turn.prompt for turn in straight] != [turn.prompt for turn in wild]
    assert all(parse(turn.completion) for turn in wild)
    [again] = expert_demonstrations(ScenarioSampler(), [KEY], perturbation_rate=0.9)
    assert wild == again


def test_the_experts_command_is_weighed_with_the_others(turns):
    weighed = [turn for turn in turns if turn.completion in turn.values_s]
    assert weighed
    for turn in turns:
        assert max(turn.values_s.values()) == 0.0
        assert turn.expert_value is None or turn.expert_value <= 0.0
    stops = [turn for turn in turns if turn.completion.startswith("PIT_NOW")]
    assert stops
    assert all(turn.values_s[turn.completion] > -3.0 for turn in stops)


def test_stay_outs_are_limited_to_their_share(turns):
    kept = with_fewer_stay_outs(turns, stay_share=0.2)
    idle = sum(turn.completion == "STAY_OUT" for turn in kept)
    assert idle <= 0.2 * len(kept) + 1
    assert [turn for turn in turns if turn.completion != "STAY_OUT"] == [
        turn for turn in kept if turn.completion != "STAY_OUT"]


def test_a_driving_command_that_hardly_gains_becomes_stay_out(turns):
    turn = replace(turns[0], completion="SET_MODE push", values_s={"SET_MODE push": 0.0, "STAY_OUT": -1.0},
                   expert_value=0.0)
    assert without_needless_call(turn, 1.5).completion == "STAY_OUT"
    assert without_needless_call(turn, 1.5).expert_value == -1.0
    assert without_needless_call(turn, 0.5) == turn
    stop = replace(turn, completion="PIT_NOW hard", values_s={"PIT_NOW hard": 0.0, "STAY_OUT": -1.0})
    assert without_needless_call(stop, 1.5) == stop


def test_rows_fit_the_table(turns):
    versions = {"env_version": 1, "prompt_version": 1, "scenes_version": "x"}
    rows = turn_rows(turns).assign(near_tie=False, collected_by="expert", **versions)
    fitted = SFT_TURNS.conform(rows)
    assert json.loads(fitted["values_s"].iloc[0])
    assert len(fitted) == len(turns)


def test_a_sampler_uses_its_fields_and_survives_serialization():
    field = GridSpec((-0.2, -0.1, 0.1, 0.2, 0.3), tuple(range(30, 40)))
    scenes = ScenarioSampler(fields=(field,))
    assert set(scenes.scenario(*KEY).numbers) <= set(field.numbers)
    again = ScenarioSampler.from_json(scenes.as_json())
    assert again.version == scenes.version != ScenarioSampler().version
    assert again.scenario(*KEY) == scenes.scenario(*KEY) != ScenarioSampler().scenario(*KEY)
