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


def test_batched_races_equal_single_races():
    scenarios = [ScenarioSampler().scenario(*key) for key in KEYS]
    batch = batched_rollout(scenarios, always("STAY_OUT"))
    for scenario, race in zip(scenarios, batch, strict=True):
        [single] = batched_rollout([scenario], always("STAY_OUT"))
        assert single.info == race.info
        assert sum(race.rewards) == pytest.approx(race.info["score"])
        assert len(race.outputs) == scenario.laps


def test_a_hint_is_the_last_line_of_its_own_races_observations():
    batches = []
    batched_rollout([ScenarioSampler().scenario(*key) for key in KEYS], lambda texts: batches.append(texts)
                    or ["DONE"] * len(texts), ["Ask the fuel margin early.", ""])
    assert batches[0][0].endswith("\nAsk the fuel margin early.")
    assert "Ask" not in batches[0][1]


def test_the_return_of_a_call_is_the_score_of_its_race():
    scenario = ScenarioSampler().scenario(*KEYS[0])
    [states] = decision_states([scenario], always("STAY_OUT"))
    assert [state.observation.lap for state in states] == list(range(1, scenario.laps + 1))
    calls = ["STAY_OUT", "PIT_NOW hard", "STAY_OUT", "no command"]
    [outcomes] = counterfactual_returns([states[3]], [calls], always("STAY_OUT"))
    values = [outcome["score"] for outcome in outcomes]
    environment = RaceEnvironment()
    environment.begin(scenario)
    for lap in range(1, scenario.laps + 1):
        step = environment.step("PIT_NOW hard" if lap == 4 else "STAY_OUT")
    assert values[1] == step.info["score"]
    assert values[0] == values[2]
    assert values[3] <= values[0]
    assert counterfactual_returns([states[3]], [calls], always("STAY_OUT")) == [outcomes], "states can be reused"


def test_held_out_races_are_held_out():
    keys = held_out_races(3, unseen_circuits=2)
    assert Counter(split_of(*key) for key in keys) == {"test": 15, "unseen_family": 3, "unseen_circuit": 10}
    assert not set(keys) & set(held_out_races(3, unseen_circuits=2, skip=3))
    assert keys[:15] == held_out_races(3)[:15]


def test_renamed_races_have_other_names_on_the_same_grid():
    scenario = ScenarioSampler().scenario(*KEYS[0])
    renamed = ScenarioSampler().scenario(*KEYS[0], renamed=True)
    assert not set(renamed.numbers) & set(scenario.numbers)
    assert np.array_equal(renamed.grid, scenario.grid)
    text = RaceEnvironment().begin(renamed).text
    assert scenario.circuit.circuit not in text
    assert " ".join(text.split()[3:]) != " ".join(RaceEnvironment().begin(scenario).text.split()[3:])


@pytest.fixture(scope="module")
def results():
    policies = ("stay_out", "expert", "oracle")
    return [result for race in scripted_results(ScenarioSampler(), KEYS, policies) for result in race]


def test_every_call_is_stored_and_regret_is_relative_to_the_oracle(results):
    by_policy = {(result.episode["policy"], result.episode["family"]): result for result in results}
    for family, _ in KEYS:
        assert by_policy["oracle", family].episode["regret"] == 0.0
        assert by_policy["stay_out", family].episode["regret"] == pytest.approx(
            by_policy["oracle", family].episode["score"] - by_policy["stay_out", family].episode["score"])
        decisions = by_policy["stay_out", family].decisions
        assert {row["raw_output"] for row in decisions} == {"STAY_OUT"}
        assert max(row["regret"] for row in decisions) > 0
    assert all(result.episode["regret"] >= 0 for result in results)
    time = {"made_at": datetime.now(UTC)}
    versions = {"env_version": 2, "prompt_version": 2, "scenes_version": "x"}
    EPISODES.conform(pd.DataFrame([result.episode | versions | time for result in results]))
    DECISIONS.conform(pd.DataFrame([row for result in results for row in result.decisions]))
    POSTMORTEMS.conform(pd.DataFrame([result.postmortem | time for result in results]))


def test_engineers_are_evaluated_by_their_own_outputs(student_folder, results):
    oracle = {(result.episode["family"], result.episode["seed"]): [row["raw_output"] for row in result.decisions]
              for result in results if result.episode["policy"] == "oracle"}
    candidates = [Candidate("sft", "abc", student_folder, variant) for variant in ("plain", "renamed", "hints")]
    hints = {KEYS[0]: "Ask the fuel margin early."}
    by_race = list(engineer_results(ScenarioSampler(), candidates, KEYS, oracle, hints))
    assert by_race == list(engineer_results(ScenarioSampler(), candidates, KEYS, oracle, hints, workers=2))
    by_variant = {(result.episode["variant"], result.episode["family"]): result
                  for race in by_race for result in race}
    engineer = load_engineer(student_folder)
    for variant in ("plain", "renamed"):
        calls = run_episodes(engineer, ScenarioSampler(), KEYS, "sft", "abc", variant)
        for key in KEYS:
            result = by_variant[variant, key[0]]
            assert tuple(row["raw_output"] for row in result.decisions) == calls[key].outputs
            assert (result.episode["checkpoint"], result.episode["fallbacks"]) == ("abc", 0)
            assert (result.episode["regret"] is None) == (variant == "renamed")
    assert by_variant["hints", KEYS[1][0]].decisions == [
        row | {"variant": "hints"} for row in by_variant["plain", KEYS[1][0]].decisions], "no hint, no change"


def test_unparsed_outputs_are_counted_and_not_replaced():
    laps = ScenarioSampler().scenario(*KEYS[0]).laps
    unparsed = RaceCalls("grpo", "plain", ("I think we should box",) * laps)
    [result] = episode_results(ScenarioSampler(), KEYS[0], [unparsed], ["STAY_OUT"] * laps)
    assert result.episode["parse_failures"] == result.episode["laps_called"]
    assert all(row["command"] is None and "unknown command" in row["error"] for row in result.decisions)


def test_outputs_that_end_before_the_flag_are_refused():
    with pytest.raises(ValueError, match="3 calls do not reach the flag"):
        episode_results(ScenarioSampler(), KEYS[0], [RaceCalls("sft", "plain", ("STAY_OUT",) * 3)], ["STAY_OUT"] * 15)


def _episodes(policy, scores, split="test", families=tuple(FAMILIES), **fields):
    return [{"policy": policy, "variant": "plain", "family": family, "seed": seed, "checkpoint": None,
             "split": "unseen_family" if family == UNSEEN_FAMILY and split == "test" else split, "score": score,
             **dict.fromkeys(("race", "strategy", "tyres", "fuel", "comms", "operations"), score), "regret": 1 - score,
             "parse_failures": 0, "laps_called": 10, "env_version": 2, "prompt_version": 2, "scenes_version": "x",
             "made_at": datetime(2026, 11, 29, tzinfo=UTC), **fields}
            for family in families for seed, score in enumerate(scores)]


def test_the_leaderboard_pairs_races_and_computes_the_closed_gap():
    rng = np.random.default_rng(0)
    low = rng.uniform(0.1, 0.3, 30)
    board = leaderboard(pd.DataFrame([
        *_episodes("untrained", low), *_episodes("sft", low + 0.3), *_episodes("grpo", low + 0.35),
        *_episodes("expert", low + 0.6), *_episodes("stay_out", np.full(40, 0.2)),
        *_episodes("sft", [0.5, 0.5], "unseen_circuit", ("weather_roulette",), seed=900)[:1]]))
    LEADERBOARD.conform(board)
    by_policy = board.set_index(["policy", "family"])
    assert by_policy.loc[("grpo", "all"), "gap_closed"] == pytest.approx(0.35 / 0.6)
    assert by_policy.loc[("grpo", "all"), "over_sft"] == pytest.approx(0.05)
    assert by_policy.loc[("grpo", "all"), "over_sft_low"] == pytest.approx(0.05), "the same difference in every race"
    assert by_policy.loc[("sft", "unseen_circuit"), "n"] == 1
    assert by_policy.loc[("sft", "all"), "n"] == 180
    assert by_policy.loc[("stay_out", "all"), "constant_score"]
    assert not by_policy.loc[("sft", "all"), "constant_score"]
    assert pd.isna(by_policy.loc[("stay_out", "all"), "gap_closed"]), "the others lack its last ten seeds"


def test_families_have_equal_weight_for_any_number_of_races():
    board = leaderboard(pd.DataFrame([*_episodes("expert", [0.2] * 90, families=("weather_roulette",)),
                                      *_episodes("expert", [0.8] * 10, families=("dry_strategy_sprint",))]))
    overall = board[board["family"] == "all"].iloc[0]
    assert overall["mean"] == pytest.approx(0.5)
    assert SCRIPTED[-1] == "oracle"
