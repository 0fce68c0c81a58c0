"""Only racing well wins. The full table is `f1 policies`."""
from __future__ import annotations

import inspect
import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from f1_pipelines.engineer.evaluation.episodes import SCRIPTED
from f1_pipelines.engineer.evaluation.policy_table import as_text, policy_table
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.environment.commands import BadCommand, Command, parse
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies import (
    DEGENERATE,
    POLICIES,
    Decision,
    UnknownPolicy,
    expert,
    foresight,
    play,
    played,
    policy_for,
)
from f1_pipelines.sim.policies import as_text as race_text
from f1_pipelines.sim.policies.belief import Belief
from f1_pipelines.sim.policies.episodes import all_episodes
from f1_pipelines.sim.policies.expert import Expert
from f1_pipelines.sim.policies.plan_diversity import as_text as as_text_of
from f1_pipelines.sim.policies.plan_diversity import plan_diversity
from f1_pipelines.sim.policies.registry import NON_ORACLE, ORACLE
from f1_pipelines.sim.policies.sampling import sample
from f1_pipelines.sim.scenarios import ENV_VERSION, FAMILIES, make_scenario
from f1_pipelines.sim.scoring.reference import reference_of
from f1_pipelines.tables.strategy import POLICIES as STORED_POLICIES
from f1_pipelines.tables.strategy import STAGES

CHEAP = [name for name in POLICIES if name not in ("expert", "oracle")]


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    """Races on unseen seeds of every family; expensive policies on fewer seeds."""
    return all_episodes(5, ["expert"]) + all_episodes(1, ["oracle"]) + all_episodes(12, CHEAP)


def test_no_degenerate_policy_comes_near_the_expert(rows):
    """The targets of the design, on a small sample. `f1 policies` runs 100 seeds per family."""
    table = policy_table(rows)
    mean = table.set_index(["policy", "family"])["score"].to_dict()
    assert all(mean[name, "all"] < 0.45 for name in DEGENERATE)
    assert all(mean[name, "all"] < mean["expert", "all"] - 0.25 for name in ("blind_list", "fixed_stop"))
    assert mean["expert", "all"] >= 0.90
    assert all(mean["expert", family] >= 0.85 for family in FAMILIES)
    assert mean["oracle", "all"] > 0.97
    assert as_text(table).count("\n") == 2 * len(POLICIES) + 3


@pytest.mark.parametrize("family", FAMILIES)
def test_nobody_beats_the_oracle(family):
    for seed in range(3):
        scenario = make_scenario(family, seed)
        score = {name: played(scenario, policy_for(name, scenario), name).score["score"] for name in POLICIES}
        assert max(score.values()) == score["oracle"], score


def test_the_oracle_improves_on_an_imperfect_reference(monkeypatch):
    """With a poor reference, the races of other policies are replayed and improved."""
    class Stays(foresight._ReferencePolicy):
        def decide(self, observation: Observation) -> Decision:
            return Decision(Command("STAY_OUT"), "")

    monkeypatch.setattr(foresight, "_ReferencePolicy", Stays)
    scenario = make_scenario("dry_strategy_sprint", 21)
    foresight.best_commands.cache_clear()
    commands = foresight.best_commands(scenario)
    foresight.best_commands.cache_clear()
    best = foresight._scores(scenario, [commands])[0]
    others = [played(scenario, policy_for(name, scenario), name).score["score"] for name in NON_ORACLE]
    assert best > max(others)
    assert best >= foresight._scores(scenario, foresight._neighbours(scenario, list(commands))).max() or best == 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_best_stops_differ_from_seed_to_seed(family):
    """A small sample; the module's command runs 200 seeds per family."""
    diversity = plan_diversity(family, 16)
    assert diversity["most"] <= 0.5 and len(diversity["laps"]) > 3 and len(diversity["compounds"]) > 2
    assert as_text_of(diversity).startswith(family)


@pytest.mark.parametrize("family", FAMILIES)
def test_stopping_is_right_in_some_races_and_wrong_in_others(family):
    free = (s for s in (make_scenario(family, seed) for seed in range(100)) if not s.rule)
    wants = [bool(reference_of(s).stops) for s in itertools.islice(free, 14)]
    assert 0 < sum(wants) < len(wants)


def test_the_plan_of_the_reference_can_be_called_as_it_stands():
    for seed in range(3):
        race = play("late_safety_car", seed, "oracle")
        assert race.info["position"] >= race.info["best_position"]
        assert [tuple(s) for s in race.info["stops"]] == [tuple(s) for s in race.info["best_stops"]]
        assert race.info["illegal"] == 0


def test_the_expert_sees_observations_only():
    """It has no access to the scenario, the race or the reference."""
    assert list(inspect.signature(Expert.decide).parameters) == ["self", "o"]
    assert not any(word in inspect.getsource(expert) for word in ("make_scenario", "reference_of", "scenario."))
    env = RaceEnvironment()
    observation = env.reset(5, "weather_roulette")
    player = Expert(futures=6)
    player.begin(observation)
    env.begin(make_scenario("dry_strategy_sprint", 1))  # its decision depends on the observation alone
    assert isinstance(player.decide(observation).command, Command)


def test_the_expert_plans_with_the_circuit_passed_to_it():
    name = make_scenario("dry_strategy_sprint", 4).circuit.circuit
    slow = replace(circuit_prior(name), stop_loss_green_s=60.0)
    scenario = make_scenario("dry_strategy_sprint", 4, circuits={name: slow})
    observation = RaceEnvironment().begin(scenario)
    assert Belief.of(observation, {name: slow}).circuit.stop_loss_green_s == 60.0
    assert Belief.of(observation).circuit.stop_loss_green_s == circuit_prior(name).stop_loss_green_s
    player = policy_for("expert", scenario)
    player.begin(observation)
    assert player._belief.circuit.stop_loss_green_s == 60.0


def test_the_expert_decides_alike_on_the_same_observations_and_says_why():
    first, second = (play("late_safety_car", 3, Expert(futures=8)) for _ in range(2))
    assert [d["command"] for d in first.decisions] == [d["command"] for d in second.decisions]
    assert all(d["reason"].endswith(".") and len(d["reason"]) < 160 for d in first.decisions)


def test_the_expert_reacts_to_observations():
    plans = {tuple(map(tuple, play(f, s, Expert(futures=8)).info["stops"])) for f in FAMILIES for s in range(3)}
    assert len(plans) > 9


def test_futures_agree_with_what_is_known():
    env = RaceEnvironment()
    observation = env.reset(12, "late_safety_car")
    belief = Belief.of(observation)
    last = None
    for _ in range(4):
        belief.see(observation, last)
        last, observation = observation, env.step("STAY_OUT").observation
    belief.see(observation, last)
    futures = sample(observation, belief, 40, np.random.default_rng(0))
    state = futures.state
    truth = env.history[-1]
    assert (state.compound[:, 0] == truth.compound[0, 0]).all()
    assert np.abs((state.elapsed_s - state.elapsed_s[:, :1]).min(axis=1)
                  - (truth.elapsed_s[0] - truth.elapsed_s[0, 0]).min()).max() < 0.2
    assert len({tuple(row) for row in np.asarray(futures.race.setup.status)}) > 3  # closures to come are unknown
    assert len(set(state.cliff_laps[:, 0])) == 40


@pytest.mark.parametrize("policy", [p for p in POLICIES if p != "expert"])
def test_a_race_can_be_played_and_read(policy):
    race = play("championship_decider", 7, policy)
    assert race.policy == policy and race.env_version == ENV_VERSION
    assert {row["car"] for row in race.laps} == set(make_scenario("championship_decider", 7).numbers)
    assert race.decisions[0]["lap"] == 1 and race.decisions[0]["observation"]
    first = [row["position"] for row in race.laps if row["lap"] == 1 and row["position"]]
    assert sorted(first) == list(range(1, len(first) + 1))
    assert f"P{race.info['position']}" in race_text(race) and race.decisions[-1]["command"] in race_text(race)


def test_output_that_does_not_parse_is_counted_and_not_repaired():
    class Babble:
        def begin(self, observation: Observation) -> None:
            pass

        def decide(self, observation: Observation) -> Decision:
            return Decision("I would stop now: PIT_NOW hard", "Free text.")

    race = play("dry_strategy_sprint", 3, Babble(), name="babble")
    assert race.info["illegal"] == len(race.decisions)
    assert race.info["stops"] == [] and race.score["operations"] == 0.0
    with pytest.raises(BadCommand):
        parse(race.decisions[0]["command"])


def test_other_lists_of_policies_keep_the_order_of_the_registry():
    assert SCRIPTED == tuple(POLICIES) == (*NON_ORACLE, ORACLE)
    assert [name for name in STORED_POLICIES if name not in STAGES] == list(POLICIES)
    assert set(DEGENERATE) < set(NON_ORACLE)


def test_an_unknown_policy_names_the_valid_ones():
    with pytest.raises(UnknownPolicy, match="expert, oracle"):
        play("dry_strategy_sprint", 1, "grpo")


def test_racing_needs_numpy_and_numba_only():
    extra = {"torch", "pandas", "gymnasium", "dagster", "duckdb", "openenv"}
    code = ("import sys, f1_pipelines.sim.policies, f1_pipelines.sim.environment.vector; "
            f"print(sorted({extra} & set(sys.modules)))")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "[]"
