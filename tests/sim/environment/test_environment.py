"""RaceEnvironment: effects of commands, one lap per command, rewards that sum to the score."""
from __future__ import annotations

import numpy as np
import pytest

from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment import commands
from f1_pipelines.sim.environment.environment import EpisodeOver, RaceEnvironment
from f1_pipelines.sim.environment.pit_wall import gap_behind_s
from f1_pipelines.sim.policies.scripted import Random
from f1_pipelines.sim.scenarios import ENV_VERSION, FAMILIES
from f1_pipelines.sim.scoring.dimensions import WEIGHTS


def drive(env: RaceEnvironment, family: str, seed: int, calls: dict[int, str]):
    """Drive a race with commands by lap, else STAY_OUT. Returns the steps."""
    env.reset(seed, family)
    steps = []
    while not steps or not steps[-1].done:
        steps.append(env.step(calls.get(len(steps) + 1, "STAY_OUT")))
    return steps


def states(env: RaceEnvironment, name: str, column: int = 0) -> np.ndarray:
    return np.array([getattr(s, name)[0, column] for s in env.history])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reward", ["shaped", "terminal"])
def test_rewards_add_up_to_the_score_and_each_lap_takes_one_command(family, reward):
    env = RaceEnvironment(reward)
    for seed in range(3):
        observation, player, rewards, over = env.reset(seed, family), Random(), [], False
        player.begin(observation)
        while not over:
            step = env.step(player.decide(observation).command)
            rewards.append(step.reward)
            observation, over = step.observation, step.done
        out = int(env.history[-1].out_lap[0, 0])
        assert len(rewards) == (out or env.scenario.laps)
        assert sum(rewards) == pytest.approx(env.score.total)
        assert 0.0 <= env.score.total <= 1.0
        assert step.info["score"] == env.score.total
        assert step.info["env_version"] == ENV_VERSION
        if reward == "terminal":
            assert rewards[-1] == env.score.total and not any(rewards[:-1])


def test_the_weights_are_those_of_the_design():
    assert WEIGHTS == {"race": 0.35, "strategy": 0.20, "tyres": 0.15, "fuel": 0.10, "comms": 0.10, "operations": 0.10}


def test_a_stop_changes_the_tyre_at_the_end_of_the_lap_and_costs_time(env):
    drive(env, "dry_strategy_sprint", 3, {})
    stay = states(env, "elapsed_s")
    drive(env, "dry_strategy_sprint", 3, {4: "PIT_NOW hard"})
    stopped = states(env, "elapsed_s")
    compound, age = states(env, "compound"), states(env, "age_laps")
    assert compound[3] == env.scenario.compound[0] and COMPOUNDS[compound[4]] == "hard" and age[4] == 0
    assert (stay[:4] == stopped[:4]).all()
    assert stopped[4] - stay[4] > env.scenario.circuit.stop_loss_green_s - 5


@pytest.mark.parametrize(("command", "name", "sign"), [
    ("SET_MODE push", "wear_laps", 1), ("SET_MODE tyre_save", "wear_laps", -1), ("SET_MODE conserve", "wear_laps", -1),
    ("SET_MODE fuel_save", "fuel_kg", 1), ("SET_MODE push", "fuel_kg", -1), ("MANAGE_TYRE_TEMP warm", "temp_c", 1),
    ("MANAGE_TYRE_TEMP cool", "temp_c", -1),
])
def test_driving_commands_do_what_they_say_and_last(env, command, name, sign):
    drive(env, "dry_strategy_sprint", 5, {})
    usual = states(env, name)
    drive(env, "dry_strategy_sprint", 5, {2: command})
    changed = states(env, name)
    assert (changed[:2] == usual[:2]).all()
    assert (np.sign(changed[2:7] - usual[2:7]) == sign).all()


def test_hold_gap_lasts_until_the_next_mode_and_let_by_gives_a_place(env):
    env.reset(5, "dry_strategy_sprint")
    env.step("STAY_OUT")
    order = env.history[-1].position[0]
    ahead = env.scenario.numbers[int(np.flatnonzero(order == order[0] - 1)[0])]
    for call in (f"HOLD_GAP {ahead}", "STAY_OUT"):
        env.step(call)
    assert env._wall.hold == env.scenario.column(ahead)
    env.step("SET_MODE push")
    assert env._wall.hold == -1
    went_by = []
    for seed in range(25):
        env.reset(seed, "championship_decider")
        env.step("STAY_OUT")
        state = env.history[-1]
        place = state.position[0]
        if place[0] < 6 and gap_behind_s(state) < 1.0:
            behind = int(np.flatnonzero(place == place[0] + 1)[0])
            env.step(f"LET_BY {env.scenario.numbers[behind]}")
            after = env.history[-1].position[0]
            went_by.append(after[behind] < after[0])
            assert env._wall.harmful == 1
    assert len(went_by) > 5 and np.mean(went_by) > 0.7  # not if the other car loses two seconds in that lap


def test_done_hands_over_and_drives_to_the_flag(env):
    steps = drive(env, "dry_strategy_sprint", 3, {3: "DONE"})
    assert len(steps) == 3 and steps[-1].done
    assert env.history[-1].lap == env.scenario.laps
    assert env.score.operations < 1.0
    stay = drive(env, "dry_strategy_sprint", 3, {})[-1].info["position"]
    assert steps[-1].info["position"] == stay


def test_an_invalid_command_stays_out_and_is_counted(env):
    drive(env, "dry_strategy_sprint", 3, {})
    stay = states(env, "elapsed_s")
    junk = {1: "", 2: "pit pit pit", 3: "x" * 2_000_000, 4: "PIT_NOW slick", 5: "HOLD_GAP 77", 6: None, 7: 3.5}
    steps = drive(env, "dry_strategy_sprint", 3, junk)
    assert (states(env, "elapsed_s") == stay).all()
    assert steps[-1].info["illegal"] == len(junk)
    assert all(steps[k - 1].info["error"] and steps[k - 1].info["command"] is None for k in junk)
    assert "Valid" in steps[4].info["error"] and str(env.scenario.numbers[1]) in steps[4].info["error"]
    assert len(steps[2].info["error"]) < 700 and len(steps[2].observation.text) < 1000


def test_calls_after_the_end_or_before_the_start_are_refused(env):
    with pytest.raises(EpisodeOver, match="reset"):
        env.step("STAY_OUT")
    drive(env, "dry_strategy_sprint", 3, {1: "DONE"})
    for call in (env.step, env.advance):
        with pytest.raises(EpisodeOver, match="reset"):
            call("STAY_OUT")
    with pytest.raises(ValueError, match="shaped, terminal"):
        RaceEnvironment("keywords")


def test_repeated_questions_and_commands_without_effect_are_void(env):
    steps = drive(env, "dry_strategy_sprint", 3, {
        1: "SET_MODE race", 2: "INSPECT_FUEL_MARGIN", 3: "INSPECT_FUEL_MARGIN", 4: "DRS_PERMISSION on",
        5: "MANAGE_TYRE_TEMP normal"})
    assert steps[-1].info["void"] == 4


def test_a_stop_in_every_lap_is_judged(env):
    for seed in range(6):
        env.reset(seed, "dry_strategy_sprint")
        step, calls = None, ("PIT_NOW soft", "PIT_NOW medium")
        while step is None or not step.done:
            step = env.step(calls[env.history[-1].lap % 2])
        assert env.score.strategy == 0.0
        assert step.info["time_lost_s"] is None or 30.0 < step.info["time_lost_s"] < 500.0  # also a lap down
        assert step.info["score"] < 0.3


def test_before_the_first_race_there_is_no_score(env):
    assert env.score is None
    assert env.history == []


def test_usage_names_every_command():
    assert all(verb in commands.usage() for verb in commands.VERBS)


def test_a_fork_is_the_same_race_driven_apart(env):
    env.reset(7, "dry_strategy_sprint")
    for _ in range(3):
        env.step("INSPECT_FUEL_MARGIN")
    twin = env.fork()
    other = twin.step("PIT_NOW hard").observation
    ours = env.step("STAY_OUT").observation
    assert (other.own.stops, ours.own.stops) == (1, 0)
    again = env.fork()
    assert again.step("STAY_OUT").observation == env.step("STAY_OUT").observation, "same state, same noise"
    assert env.history[:4] == twin.history[:4]
