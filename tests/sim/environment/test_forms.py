"""VectorEnvironment and the Gymnasium environment equal RaceEnvironment."""
from __future__ import annotations

import numpy as np
import pytest

from f1_pipelines.sim.environment import commands
from f1_pipelines.sim.environment.actions import ACTIONS, NO_COMMAND, TEXT_FREE, command_of
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.vector import VectorEnvironment
from f1_pipelines.sim.scenarios import CHARACTERS, FAMILIES, make_scenario

TEXTS = ("Box next lap for hards", "rain on lap 6", "Safety car is out", "Stay out, no stop", 'say "box"', "",
         "x" * 900)


def test_a_batch_equals_single_races():
    """Same commands, same races, rewards, scores, prompts and answers: in a batch of mixed families or alone."""
    scenarios = [make_scenario(family, seed) for family in FAMILIES for seed in range(6)]
    batch, rng, called, paid, shown = VectorEnvironment(scenarios), np.random.default_rng(0), [], 0.0, []
    done = np.zeros(len(scenarios), dtype=bool)
    while not done.all():
        actions = rng.integers(NO_COMMAND, len(ACTIONS), len(scenarios))
        actions = np.where(rng.random(len(scenarios)) < 0.2, rng.integers(TEXT_FREE, len(ACTIONS)), actions)
        texts = {row: TEXTS[rng.integers(len(TEXTS))] for row in range(len(scenarios))}
        called.append((actions, texts))
        features, rewards, done = batch.step(actions, texts)
        shown.append([batch.observation(row) for row in range(len(scenarios))])
        paid = paid + rewards
    verbs = {ACTIONS[a][0] for actions, _ in called for a in actions if a >= 0}
    assert verbs == set(commands.VERBS)
    scores, last = batch.scores(), batch.last_rewards()
    for k, scenario in enumerate(scenarios):
        env = RaceEnvironment()
        env.begin(scenario)
        total, over = 0.0, False
        for lap, (actions, texts) in enumerate(called):
            if over:
                break
            verb, _ = ACTIONS[actions[k]] if actions[k] >= 0 else ("", "")
            call = "" if actions[k] < 0 else f'{verb} "{texts[k]}"' if actions[k] >= TEXT_FREE else \
                str(command_of(int(actions[k]), scenario))
            step = env.step(call)
            total, over = total + step.reward, step.done
            if not over:
                assert step.observation == shown[lap][k]
        assert env.score.as_dict() == pytest.approx(scores[k], abs=1e-9)
        assert total == pytest.approx(paid[k] + last[k], abs=1e-9)
        assert (env.history[-1].elapsed_s[0] == batch.history[scenario.laps].elapsed_s[k]).all()
    with pytest.raises(ValueError, match="actions must be"):
        VectorEnvironment(scenarios[:1]).step(np.array([len(ACTIONS)]))


def test_other_races_in_the_batch_change_nothing():
    """A dry race with rain in its forecast is the same alone and beside a wet race: gamblers go by the forecast."""
    made = [make_scenario("weather_roulette", seed) for seed in range(120)]
    gambles = [s for s in made if not s.rain.any() and s.gamble_lap][:3]
    wet = next(s for s in made if s.rain.any())
    assert len(gambles) == 3
    for dry in gambles:
        alone, beside = VectorEnvironment([dry]), VectorEnvironment([dry, wet])
        for batch in (alone, beside):
            for _ in range(max(s.laps for s in batch.scenarios)):
                batch.step(np.full(len(batch.scenarios), ACTIONS.index(("STAY_OUT", ""))))
        ours, theirs = alone.history[dry.laps], beside.history[dry.laps]
        assert ours.elapsed_s[0].tobytes() == theirs.elapsed_s[0].tobytes()
        assert ours.stops[0, CHARACTERS.index("rain_gambler") + 1] > 0


def test_gymnasium_refuses_invalid_actions_and_hides_the_seed():
    pytest.importorskip("gymnasium")
    from f1_pipelines.sim.environment.gym import RaceEngineerEnv

    env = RaceEngineerEnv()
    _, info = env.reset(options={"scenario_seed": 4})
    assert "seed" not in info
    for action in (-1, 3.7, 999, "STAY_OUT"):
        with pytest.raises(ValueError, match="whole number from 0"):
            env.step(action)
    with pytest.raises(ValueError, match="scenario_seed and family"):
        env.reset(options={"scenario_sed": 4})


def test_gymnasium_makes_it_by_its_id():
    gymnasium = pytest.importorskip("gymnasium")
    name = "f1_pipelines.sim.environment.gym:F1RaceEngineer-v0"
    env = gymnasium.make(name, family="weather_roulette")
    assert env.reset(seed=1)[1]["observation"].family == "weather_roulette"
    envs = gymnasium.make_vec(name, num_envs=3, vectorization_mode="vector_entry_point", scenarios=4)
    assert envs.reset(seed=1)[0].shape == (3, env.observation_space.shape[0])


def test_sprints_in_a_vector_are_those_of_the_single_form():
    """Same features, up to the rounding of gaps and wetness, rewards and ends; each row begins anew by itself."""
    pytest.importorskip("gymnasium")
    from f1_pipelines.sim.environment.gym import RaceEngineerEnv
    from f1_pipelines.sim.environment.gym_vector import RaceEngineerVectorEnv

    vector, rng = RaceEngineerVectorEnv(4, "weather_roulette", scenarios=8), np.random.default_rng(1)
    singles = [RaceEngineerEnv("weather_roulette") for _ in range(4)]

    def begin(k: int) -> np.ndarray:
        return singles[k].reset(options={"scenario_seed": vector.scenario_of(k)[0].seed})[0]

    features, _ = vector.reset(seed=2)
    assert np.array_equal(features, [begin(k) for k in range(4)])
    over, ends = np.zeros(4, dtype=bool), 0
    while ends < 12:
        actions = rng.integers(0, TEXT_FREE, 4)
        features, rewards, now_over, truncated, _ = vector.step(actions)
        assert not truncated.any()
        for k in range(4):
            if over[k]:
                assert (rewards[k], now_over[k]) == (0.0, False) and np.array_equal(features[k], begin(k))
                continue
            expected, reward, ended, _, _ = singles[k].step(int(actions[k]))
            assert rewards[k] == pytest.approx(reward, abs=1e-12) and now_over[k] == ended
            assert ended or np.abs(features[k] - expected).max() < 0.11
            ends += ended
        over = now_over
    with pytest.raises(ValueError, match="4 whole numbers from 0"):
        vector.step(np.full(4, TEXT_FREE))


def test_gymnasium_accepts_it():
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    from f1_pipelines.sim.environment.gym import RaceEngineerEnv
    check_env(RaceEngineerEnv(), skip_render_check=True)
    env = RaceEngineerEnv("weather_roulette")
    _, info = env.reset(seed=4)
    assert info["text"] == info["observation"].text
    assert env.step(env.action("STAY_OUT"))[2] is False
    assert isinstance(env.call('RADIO_DRIVER "box next lap"')[1], float)
    assert isinstance(env.action_space, gymnasium.spaces.Discrete)
