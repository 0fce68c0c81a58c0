"""The sprint from one pit wall: commands do what they say, the score is the reward, nothing hidden is shown."""
from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from f1_pipelines.sim.environment import commands
from f1_pipelines.sim.environment.environment import EpisodeOver, RaceEnvironment
from f1_pipelines.sim.environment.inspections import FUEL_ERROR_LAPS, TYRE_ERROR_LAPS
from f1_pipelines.sim.environment.prompt import MAX_TOKENS, token_bound
from f1_pipelines.sim.environment.vector import ACTIONS, NO_COMMAND, WORDLESS, VectorEnvironment, command_of
from f1_pipelines.sim.environment.wall import gap_behind_s
from f1_pipelines.sim.parameters import COMPOUNDS, GREEN, SC, VSC
from f1_pipelines.sim.policies.scripted import Random
from f1_pipelines.sim.scenarios import CHARACTERS, ENV_VERSION, FAMILIES, make_scenario
from f1_pipelines.sim.scoring.dimensions import WEIGHTS


@pytest.fixture
def env() -> RaceEnvironment:
    return RaceEnvironment()


def drive(env: RaceEnvironment, family: str, seed: int, calls: dict[int, str]):
    """A race with calls by lap; STAY_OUT else. Returns the steps."""
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


def test_a_prompt_fits_and_shows_nothing_hidden(env):
    for family in FAMILIES:
        for seed in range(12):
            observation, player, over = env.reset(seed, family), Random(), False
            player.begin(observation)
            while not over:
                assert token_bound(observation.text) <= MAX_TOKENS, observation.text
                hidden = [*CHARACTERS, "cliff", "wear_laps", "fuel_kg", "optimal", "window"]
                if not observation.answer and not observation.notes:
                    shown = observation.text.replace(family, "")
                    assert not any(word in shown for word in hidden)
                step = env.step(player.decide(observation).command)
                observation, over = step.observation, step.done


def test_answers_are_kept_on_the_note_pad_as_long_as_they_fit(env):
    observation = env.reset(3, "weather_roulette")
    calls = ["REQUEST_FORECAST", "INSPECT_FUEL_MARGIN", 'RADIO_DRIVER "box lap 9 for inters"', "REQUEST_FORECAST",
             *(f"CHECK_OPPONENT_STRATEGY {car.number}" for car in observation.cars if car.number != observation.number)]
    for lap, call in enumerate(calls, 1):
        observation = env.step(call).observation
        assert observation.notes[-1].startswith(f"L{lap} ")
        assert f"L{lap} " in observation.text
        assert token_bound(observation.text) <= MAX_TOKENS
        assert lap != 4 or re.search(r"L2 fuel [+-]\.\d\d", observation.text)
    assert len([note for note in observation.notes if " rain " in note]) == 1  # the older forecast is crossed out
    assert any(note == 'L3 told "box lap 9 for inters"' for note in observation.notes)
    assert observation.text.splitlines()[-1].startswith("notes: L")  # the newest, where not all fit


def test_what_is_shown_does_not_depend_on_what_will_happen(env):
    """Same start, other future: until the futures differ on track, the observations are the same."""
    from dataclasses import replace
    a = make_scenario("late_safety_car", 2)
    b = replace(a, status=np.zeros_like(a.status), plan_lap=a.plan_lap * 0)
    first = int((a.status > 0).argmax()) or a.laps
    quiet = min([first - 1, *(a.plan_lap[a.plan_lap > 0] - 4)])
    texts = []
    for scenario in (a, b):
        env.begin(scenario)
        texts.append([env.step("STAY_OUT").observation.as_dict() for _ in range(max(quiet, 1))])
    assert texts[0] == texts[1]


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


def test_hold_gap_lasts_until_told_otherwise_and_let_by_gives_a_place(env):
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
    assert len(went_by) > 5 and np.mean(went_by) > 0.7  # a car that loses two seconds in that lap is not waited for


def test_done_hands_over_and_drives_to_the_flag(env):
    steps = drive(env, "dry_strategy_sprint", 3, {3: "DONE"})
    assert len(steps) == 3 and steps[-1].done
    assert env.history[-1].lap == env.scenario.laps
    assert env.score.operations < 1.0
    stay = drive(env, "dry_strategy_sprint", 3, {})[-1].info["position"]
    assert steps[-1].info["position"] == stay


def test_what_is_no_command_costs_what_staying_out_costs_and_is_counted(env):
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


def test_estimates_have_the_error_that_they_state(env):
    errors = {"tyre": [], "fuel": []}
    for seed in range(250):
        env.reset(seed, "tyre_cliff_management")
        scenario, state = env.scenario, env.history[-1]
        told = env.step("INSPECT_TYRE_DEGRADATION").observation.facts["tyre_laps_left"]
        errors["tyre"].append(told - (state.cliff_laps[0, 0] - state.wear_laps[0, 0]) / scenario.wear_scale)
        env.reset(seed, "tyre_cliff_management")
        facts = env.step("INSPECT_FUEL_MARGIN").observation.facts
        errors["fuel"].append(facts["fuel_margin_laps"] - scenario.fuel_laps[0])
    assert np.std(errors["tyre"]) == pytest.approx(TYRE_ERROR_LAPS, rel=0.15)
    assert np.std(errors["fuel"]) == pytest.approx(FUEL_ERROR_LAPS, rel=0.15)
    assert abs(np.mean(errors["tyre"])) < 0.1 and abs(np.mean(errors["fuel"])) < 0.02


def test_inspections_tell_the_truth(env):
    for seed in range(30):
        observation = env.reset(seed, "weather_roulette")
        scenario = env.scenario
        number = scenario.numbers[3]
        facts = env.step(f"CHECK_OPPONENT_STRATEGY {number}").observation.facts
        plan = zip(scenario.plan_lap[:, 3], scenario.plan_compound[:, 3], strict=True)
        stops = [(lap, tyre) for lap, tyre in plan if lap]
        assert facts == {"car": number, "character": CHARACTERS[2], "plan": stops}
        facts = env.step("REQUEST_FORECAST").observation.facts
        if facts["rain"] == "radar":
            assert scenario.shower.onset_lap == facts["onset_lap"] + (scenario.shower.onset_lap - facts["onset_lap"])
            assert scenario.shower.onset_lap <= 2 + 2
        if facts["rain"] == "none":
            assert scenario.shower is None
        assert observation.lap == 1


def test_asking_again_attacking_nobody_and_setting_what_is_set_are_void(env):
    steps = drive(env, "dry_strategy_sprint", 3, {
        1: "SET_MODE race", 2: "INSPECT_FUEL_MARGIN", 3: "INSPECT_FUEL_MARGIN", 4: "DRS_PERMISSION on",
        5: "MANAGE_TYRE_TEMP normal"})
    assert steps[-1].info["void"] == 4


SAID = ("Box next lap for hards", "rain on lap 6", "Safety car is out", "Stay out, no stop", 'say "box"', "", "x" * 900)


def test_the_vector_form_is_the_single_form():
    """Same calls, same races, same rewards, scores, prompts and answers: in a batch of mixed families or alone."""
    scenarios = [make_scenario(family, seed) for family in FAMILIES for seed in range(6)]
    batch, rng, called, paid, shown = VectorEnvironment(scenarios), np.random.default_rng(0), [], 0.0, []
    done = np.zeros(len(scenarios), dtype=bool)
    while not done.all():
        actions = rng.integers(NO_COMMAND, len(ACTIONS), len(scenarios))
        actions = np.where(rng.random(len(scenarios)) < 0.2, rng.integers(WORDLESS, len(ACTIONS)), actions)
        texts = {row: SAID[rng.integers(len(SAID))] for row in range(len(scenarios))}
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
            call = "" if actions[k] < 0 else f'{verb} "{texts[k]}"' if actions[k] >= WORDLESS else \
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


def test_who_else_is_in_the_batch_changes_nothing():
    """A dry race with rain in its forecast beside a wet one is the race that it is alone: the gambler goes by what he
    was told."""
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


def test_the_undercut_knows_nothing_of_laps_to_come(env):
    """Whatever closes the track or rains after the coming lap, the answer is the same."""
    for seed in (1, 5, 9):
        scenario = make_scenario("virtual_safety_car_window", seed)
        told = set()
        for status in (GREEN, SC, VSC):
            later = np.concatenate([scenario.status[:4], np.full(scenario.laps - 4, status)])
            rain = np.where(np.arange(scenario.laps) < 3, 0.0, 0.5 * (status == SC))
            env.begin(replace(scenario, status=later, rain=rain))
            for _ in range(3):
                env.step("STAY_OUT")
            told.add(env.step("ASSESS_UNDERCUT_WINDOW").observation.answer)
        assert len(told) == 1


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


def test_gymnasium_refuses_what_is_no_action_and_tells_no_seed():
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


def test_usage_names_every_command():
    assert all(verb in commands.usage() for verb in commands.VERBS)
