"""DAgger: the expert relabels the student's races; a resumed run reads the stored round."""
from f1_pipelines.engineer.data.dagger import dagger_round, read_demonstrations
from f1_pipelines.engineer.data.demonstrations import (
    expert_demonstrations,
    relabel_with_expert,
    without_needless_call,
)
from f1_pipelines.engineer.progress import SILENT, Reporter
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import TRAINED_FAMILIES, dagger_races
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.scenarios import split_of

KEY = ("dry_strategy_sprint", 1)


class Sleeper:
    """An engineer that always stays out."""

    n_batches = 0

    def commands(self, observations):
        self.n_batches += 1
        return ["STAY_OUT"] * len(observations)


def test_the_expert_relabels_its_own_race_with_the_same_commands():
    [turns] = expert_demonstrations(ScenarioSampler(), [KEY], perturbation_rate=0.0)
    assert list(relabel_with_expert(ScenarioSampler(), {KEY: [turn.completion for turn in turns]})) == [turns]


def test_relabelled_races_have_the_students_laps_and_the_experts_labels():
    scenario = ScenarioSampler().scenario(*KEY)
    [turns] = relabel_with_expert(ScenarioSampler(), {KEY: ["STAY_OUT"] * scenario.laps})
    environment = RaceEnvironment()
    seen = environment.begin(scenario)
    for turn in turns:
        assert turn.prompt == seen.text
        seen = environment.step("STAY_OUT").observation
    assert any(turn.completion.startswith("PIT_NOW") for turn in turns), "the stop that the student omits"


def test_student_outputs_that_do_not_parse_are_relabelled_too():
    scenario = ScenarioSampler().scenario(*KEY)
    [turns] = relabel_with_expert(ScenarioSampler(), {KEY: ["I think we should box"] * scenario.laps})
    assert len(turns) == scenario.laps


def test_a_round_drives_training_races_and_a_resumed_run_reads_the_stored_round(tmp_path):
    lines, sleeper = [], Sleeper()
    first_round = dagger_round(sleeper, ScenarioSampler(), 1, 1, tmp_path, Reporter(lines.append))
    turns = first_round.demonstrations
    assert {(turn.family, turn.seed) for turn in turns} == set(dagger_races(1, 1))
    assert {split_of(turn.family, turn.seed) for turn in turns} == {"train"}
    assert {turn.family for turn in turns} == set(TRAINED_FAMILIES)
    assert turns == [without_needless_call(turn) for turn in turns]
    assert "round 1: the student scores 0." in lines[0]
    n_batches = sleeper.n_batches
    assert len(first_round.scores) == len(TRAINED_FAMILIES)
    assert all(0.0 <= score <= 1.0 for score in first_round.scores)
    assert dagger_round(sleeper, ScenarioSampler(), 1, 1, tmp_path, SILENT) == first_round
    assert turns == read_demonstrations(tmp_path / "round-1.jsonl")
    assert sleeper.n_batches == n_batches
