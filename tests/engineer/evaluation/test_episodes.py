"""Batched rollouts, counterfactual returns, episodes and their leaderboard."""
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.engineer.evaluation.episodes import (
    SCRIPTED,
    Candidate,
    RaceCalls,
    engineer_results,
    episode_results,
    run_episodes,
    scripted_results,
)
from f1_pipelines.engineer.evaluation.leaderboard import leaderboard
from f1_pipelines.engineer.inference.checkpoints import load_engineer
from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import held_out_races
from f1_pipelines.engineer.training.counterfactual_returns import counterfactual_returns, decision_states
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.scenarios import FAMILIES, UNSEEN_FAMILY, split_of
from f1_pipelines.tables.strategy import DECISIONS, EPISODES, LEADERBOARD, POSTMORTEMS

KEYS = [("dry_strategy_sprint", 47), ("weather_roulette", 10)]


def always(command):
    return lambda texts: [command] * len(texts)


def test_races_in_lockstep_are_the_races_alone():
    scenarios = [ScenarioSampler().scenario(*key) for key in KEYS]
    together = batched_rollout(scenarios, always("STAY_OUT"))
    for scenario, race in zip(scenarios, together, strict=True):
        [alone] = batched_rollout([scenario], always("STAY_OUT"))
        assert alone.info == race.info
        assert sum(race.rewards) == pytest.approx(race.info["score"])
        assert len(race.outputs) == scenario.laps


def test_hints_stand_under_the_observation_and_nowhere_else():
    read = []
    batched_rollout([ScenarioSampler().scenario(*key) for key in KEYS], lambda texts: read.append(texts)
                    or ["DONE"] * len(texts), ["Ask the fuel margin early.", ""])
    assert read[0][0].endswith("\nAsk the fuel margin early.")
    assert "Ask" not in read[0][1]


def test_a_call_is_worth_what_the_race_becomes():
    scenario = ScenarioSampler().scenario(*KEYS[0])
    [states] = decision_states([scenario], always("STAY_OUT"))
    assert [state.observation.lap for state in states] == list(range(1, scenario.laps + 1))
    calls = ["STAY_OUT", "PIT_NOW hard", "STAY_OUT", "no command"]
    [ends] = counterfactual_returns([states[3]], [calls], always("STAY_OUT"))
    values = [end["score"] for end in ends]
    environment = RaceEnvironment()
    environment.begin(scenario)
    for lap in range(1, scenario.laps + 1):
        step = environment.step("PIT_NOW hard" if lap == 4 else "STAY_OUT")
    assert values[1] == step.info["score"]
    assert values[0] == values[2]
    assert values[3] <= values[0]
    assert counterfactual_returns([states[3]], [calls], always("STAY_OUT")) == [ends], "states are not used up"


def test_held_out_races_are_held_out():
    keys = held_out_races(3, unseen_circuits=2)
    assert Counter(split_of(*key) for key in keys) == {"test": 15, "unseen_family": 3, "unseen_circuit": 10}
    assert not set(keys) & set(held_out_races(3, unseen_circuits=2, skip=3))
    assert keys[:15] == held_out_races(3)[:15]


def test_renamed_races_have_other_names_and_the_same_everything_else():
    scenario = ScenarioSampler().scenario(*KEYS[0])
    other = ScenarioSampler().scenario(*KEYS[0], renamed=True)
    assert not set(other.numbers) & set(scenario.numbers)
    assert np.array_equal(other.grid, scenario.grid)
    text = RaceEnvironment().begin(other).text
    assert scenario.circuit.circuit not in text
    assert " ".join(text.split()[3:]) != " ".join(RaceEnvironment().begin(scenario).text.split()[3:])


@pytest.fixture(scope="module")
def results():
    return [one for few in scripted_results(ScenarioSampler(), KEYS, ("stay_out", "expert", "oracle")) for one in few]


def test_every_call_is_kept_and_regret_is_to_the_oracle(results):
    by = {(one.episode["policy"], one.episode["family"]): one for one in results}
    for family, _ in KEYS:
        assert by["oracle", family].episode["regret"] == 0.0
        assert by["stay_out", family].episode["regret"] == pytest.approx(
            by["oracle", family].episode["score"] - by["stay_out", family].episode["score"])
        decisions = by["stay_out", family].decisions
        assert {row["raw_output"] for row in decisions} == {"STAY_OUT"}
        assert max(row["regret"] for row in decisions) > 0
    assert all(one.episode["regret"] >= 0 for one in results)
    made = {"made_at": datetime.now(UTC)}
    whole = {"env_version": 2, "prompt_version": 2, "scenes_version": "x", **made}
    EPISODES.conform(pd.DataFrame([one.episode | whole for one in results]))
    DECISIONS.conform(pd.DataFrame([row for one in results for row in one.decisions]))
    POSTMORTEMS.conform(pd.DataFrame([one.postmortem | made for one in results]))


def test_engineers_are_evaluated_by_their_own_outputs(student_folder, results):
    oracle = {(one.episode["family"], one.episode["seed"]): [row["raw_output"] for row in one.decisions]
              for one in results if one.episode["policy"] == "oracle"}
    candidates = [Candidate("sft", "abc", student_folder, variant) for variant in ("plain", "renamed", "hints")]
    hints = {KEYS[0]: "Ask the fuel margin early."}
    found = list(engineer_results(ScenarioSampler(), candidates, KEYS, oracle, hints))
    assert found == list(engineer_results(ScenarioSampler(), candidates, KEYS, oracle, hints, workers=2))
    by = {(one.episode["variant"], one.episode["family"]): one for few in found for one in few}
    engineer = load_engineer(student_folder)
    for variant in ("plain", "renamed"):
        said = run_episodes(engineer, ScenarioSampler(), KEYS, "sft", "abc", variant)
        for key in KEYS:
            one = by[variant, key[0]]
            assert tuple(row["raw_output"] for row in one.decisions) == said[key].outputs
            assert (one.episode["checkpoint"], one.episode["fallbacks"]) == ("abc", 0)
            assert (one.episode["regret"] is None) == (variant == "renamed")
    assert by["hints", KEYS[1][0]].decisions == [
        row | {"variant": "hints"} for row in by["plain", KEYS[1][0]].decisions], "a race without a hint is as before"


def test_what_does_not_parse_is_counted_and_nobody_calls_instead():
    laps = ScenarioSampler().scenario(*KEYS[0]).laps
    mute = RaceCalls("grpo", "plain", ("I think we should box",) * laps)
    [one] = episode_results(ScenarioSampler(), KEYS[0], [mute], ["STAY_OUT"] * laps)
    assert one.episode["parse_failures"] == one.episode["laps_called"]
    assert all(row["command"] is None and "unknown command" in row["error"] for row in one.decisions)


def test_a_sitting_that_ends_too_early_is_no_race():
    with pytest.raises(ValueError, match="3 calls do not reach the flag"):
        episode_results(ScenarioSampler(), KEYS[0], [RaceCalls("sft", "plain", ("STAY_OUT",) * 3)], ["STAY_OUT"] * 15)


def _episodes(policy, scores, split="test", families=tuple(FAMILIES), **more):
    return [{"policy": policy, "variant": "plain", "family": family, "seed": seed, "checkpoint": None,
             "split": "unseen_family" if family == UNSEEN_FAMILY and split == "test" else split, "score": score,
             **dict.fromkeys(("race", "strategy", "tyres", "fuel", "comms", "operations"), score), "regret": 1 - score,
             "parse_failures": 0, "laps_called": 10, "env_version": 2, "prompt_version": 2, "scenes_version": "x",
             "made_at": datetime(2026, 11, 29, tzinfo=UTC), **more}
            for family in families for seed, score in enumerate(scores)]


def test_the_leaderboard_pairs_races_and_closes_gaps():
    rng = np.random.default_rng(0)
    low = rng.uniform(0.1, 0.3, 30)
    board = leaderboard(pd.DataFrame([
        *_episodes("untrained", low), *_episodes("sft", low + 0.3), *_episodes("grpo", low + 0.35),
        *_episodes("expert", low + 0.6), *_episodes("stay_out", np.full(40, 0.2)),
        *_episodes("sft", [0.5, 0.5], "unseen_circuit", ("weather_roulette",), seed=900)[:1]]))
    LEADERBOARD.conform(board)
    by = board.set_index(["policy", "family"])
    assert by.loc[("grpo", "all"), "gap_closed"] == pytest.approx(0.35 / 0.6)
    assert by.loc[("grpo", "all"), "over_sft"] == pytest.approx(0.05)
    assert by.loc[("grpo", "all"), "over_sft_low"] == pytest.approx(0.05), "the same difference in every race"
    assert by.loc[("sft", "unseen_circuit"), "n"] == 1
    assert by.loc[("sft", "all"), "n"] == 180
    assert by.loc[("stay_out", "all"), "constant_score"]
    assert not by.loc[("sft", "all"), "constant_score"]
    assert pd.isna(by.loc[("stay_out", "all"), "gap_closed"]), "others have not raced its last ten seeds"


def test_families_weigh_alike_however_many_races_they_have():
    board = leaderboard(pd.DataFrame([*_episodes("expert", [0.2] * 90, families=("weather_roulette",)),
                                      *_episodes("expert", [0.8] * 10, families=("dry_strategy_sprint",))]))
    whole = board[board["family"] == "all"].iloc[0]
    assert whole["mean"] == pytest.approx(0.5)
    assert SCRIPTED[-1] == "oracle"
