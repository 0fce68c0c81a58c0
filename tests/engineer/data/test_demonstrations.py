"""What the expert teaches."""
import json
from dataclasses import replace

from f1_pipelines.engineer.data.demonstrations import (
    expert_demonstrations,
    turn_rows,
    with_fewer_stay_outs,
    without_needless_call,
)
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import TRAINED_FAMILIES, race_keys
from f1_pipelines.sim.environment.commands import parse
from f1_pipelines.sim.policies.play import play
from f1_pipelines.sim.scenarios import UNSEEN_FAMILY, GridSpec, split_of
from f1_pipelines.tables.strategy import SFT_TURNS

KEY = ("dry_strategy_sprint", 6)  # neither under other names nor with a line of lessons


def test_races_are_of_the_split_and_families_take_turns():
    keys = race_keys("train", 3)
    assert [family for family, _ in keys[:len(TRAINED_FAMILIES)]] == list(TRAINED_FAMILIES)
    assert UNSEEN_FAMILY not in TRAINED_FAMILIES
    assert {split_of(*key) for key in keys} == {"train"}


def test_without_odd_laps_the_turns_are_the_experts_race():
    [turns] = expert_demonstrations(ScenarioSampler(), [KEY], odd=0.0, futures=96)
    race = play(*KEY, "expert")
    assert [turn.completion for turn in turns] == [row["command"] for row in race.decisions]
    assert [turn.prompt for turn in turns] == [row["observation"] for row in race.decisions]


def test_odd_laps_lead_elsewhere_and_the_label_is_still_the_experts():
    [straight], [wild] = expert_demonstrations(ScenarioSampler(), [KEY],
                                               odd=0.0), expert_demonstrations(ScenarioSampler(), [KEY], odd=0.9)
    assert [turn.prompt for turn in straight] != [turn.prompt for turn in wild]
    assert all(parse(turn.completion) for turn in wild)
    assert wild == next(expert_demonstrations(ScenarioSampler(), [KEY], odd=0.9)), "the same race, the same turns"


def test_his_own_call_is_weighed_with_the_others(turns):
    weighed = [turn for turn in turns if turn.completion in turn.values_s]
    assert weighed
    for turn in turns:
        assert max(turn.values_s.values()) == 0.0
        assert turn.expert_value is None or turn.expert_value <= 0.0
    stops = [turn for turn in turns if turn.completion.startswith("PIT_NOW")]
    assert stops
    assert all(turn.values_s[turn.completion] > -3.0 for turn in stops)


def test_laps_in_which_nothing_is_done_do_not_drown_the_rest(turns):
    kept = with_fewer_stay_outs(turns, stay_share=0.2)
    idle = sum(turn.completion == "STAY_OUT" for turn in kept)
    assert idle <= 0.2 * len(kept) + 1
    assert [turn for turn in turns if turn.completion != "STAY_OUT"] == [
        turn for turn in kept if turn.completion != "STAY_OUT"]


def test_a_change_of_driving_that_hardly_gains_is_left_out(turns):
    turn = replace(turns[0], completion="SET_MODE push", values_s={"SET_MODE push": 0.0, "STAY_OUT": -1.0},
                   expert_value=0.0)
    assert without_needless_call(turn, 1.5).completion == "STAY_OUT"
    assert without_needless_call(turn, 1.5).expert_value == -1.0
    assert without_needless_call(turn, 0.5) == turn
    stop = replace(turn, completion="PIT_NOW hard", values_s={"PIT_NOW hard": 0.0, "STAY_OUT": -1.0})
    assert without_needless_call(stop, 1.5) == stop


def test_rows_fit_the_table(turns):
    rows = turn_rows(turns).assign(near_tie=False, collected_by="expert", env_version=1, prompt_version=1,
                                   scenes_version="x")
    fitted = SFT_TURNS.conform(rows)
    assert json.loads(fitted["values_s"].iloc[0])
    assert len(fitted) == len(turns)


def test_scenes_have_the_field_they_are_given_and_survive_a_journey():
    field = GridSpec((-0.2, -0.1, 0.1, 0.2, 0.3), tuple(range(30, 40)))
    sampler = ScenarioSampler(fields=(field,))
    assert set(sampler.scenario(*KEY).numbers) <= set(field.numbers)
    again = ScenarioSampler.from_json(sampler.as_json())
    assert again.version == sampler.version != ScenarioSampler().version
    assert again.scenario(*KEY) == sampler.scenario(*KEY) != ScenarioSampler().scenario(*KEY)
