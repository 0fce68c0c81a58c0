"""Many sprints as a Gymnasium vector environment, driven by one compiled call a step.

    envs = gymnasium.make_vec("f1_pipelines.sim.environment.gym:F1RaceEngineer-v0", num_envs=64,
                              vectorization_mode="vector_entry_point")

A sprint that is over begins anew in the next step, with another scenario of the split (`AutoresetMode.NEXT_STEP`).
"""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from f1_pipelines.sim.engine.compiled import Records, compiled
from f1_pipelines.sim.engine.lap import CALL, CAR_LAP, drive_lap
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.state import CAR_STATE, RACE_STATE, RaceState, new_state
from f1_pipelines.sim.engine.tables import Tables
from f1_pipelines.sim.engine.traffic import LINE
from f1_pipelines.sim.environment.actions import (
    IS_DONE,
    IS_RECOMMENDED,
    STAY_OUT,
    TEXT_FREE,
    Settings,
    command_of,
)
from f1_pipelines.sim.environment.features import FEATURES, fill_features
from f1_pipelines.sim.environment.gym import LIMIT, MAX_SEEDS
from f1_pipelines.sim.environment.pit_wall import PitWallState, drivers_choice
from f1_pipelines.sim.scenarios import EGO, Scenario, make_scenario, plans_of, seeds_of, setup_of
from f1_pipelines.sim.scenarios.opponents import fill_calls, last_wetness
from f1_pipelines.sim.scenarios.plans import PlanTables
from f1_pipelines.sim.scoring.score import potential_of, score_batch


class RaceEngineerVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Sprints of a family, each in a row of its own: rewards and features of `RaceEngineerEnv`, with unrounded gaps.

    A finished sprint is judged against the best race of its scenario, which is searched for once (about ten
    milliseconds). With `judged=False` it is not, and rewards are differences of the potential alone. `info` is empty.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs: int = 1, family: str = "dry_strategy_sprint", split: str = "train",
                 judged: bool = True, scenarios: int = MAX_SEEDS) -> None:
        """
        Args:
            num_envs: Number of sprints raced at once.
            family: Scenario family.
            split: Split of the scenario seeds.
            judged: Whether rewards sum to the score.
            scenarios: Number of scenarios of the split to draw from.
        """
        self.num_envs, self.judged = num_envs, judged
        self.single_action_space = gymnasium.spaces.Discrete(TEXT_FREE)
        self.single_observation_space = gymnasium.spaces.Box(-LIMIT, LIMIT, (len(FEATURES),), np.float32)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._scenarios = [make_scenario(family, seed) for seed in seeds_of(family, split, scenarios)]
        self._race, self._plans = prepare(setup_of(self._scenarios)), plans_of(self._scenarios)
        self._start, longest, cars = new_state(self._race), self._race.laps, self._race.cars
        self._race_laps = self._race.race_laps
        self._rule = np.array([s.rule for s in self._scenarios])
        self._rain = np.zeros((len(self._scenarios), longest + 1))
        for row, s in enumerate(self._scenarios):
            self._rain[row, 1:s.laps + 1] = s.rain
            self._rain[row, 0] = s.rain[0]
        # States by lap and sprint; the state after a lap follows `num_envs` rows later.
        self._cars = np.empty(((longest + 1) * num_envs, cars), CAR_STATE)
        self._races = np.empty((longest + 1) * num_envs, RACE_STATE)
        self._actions = np.empty((longest, num_envs), dtype=np.int64)
        self._drawn, self._laps = np.zeros(num_envs, dtype=np.int64), np.zeros(num_envs, dtype=np.int64)
        self._paid, self._over = np.zeros(num_envs), np.ones(num_envs, dtype=np.bool_)
        self._columns = Settings(self._scenarios).columns
        self._settings = Settings([self._scenarios[0]] * num_envs)  # columns follow in `_begin`
        self._features = np.zeros((num_envs, len(FEATURES)))

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a sprint in every row, with scenarios drawn from Gymnasium's generator."""
        super().reset(seed=seed)
        self._begin(np.arange(self.num_envs))
        return self._observations(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Drive the next lap of every sprint; one that was over begins anew and ignores its action.

        Raises:
            ValueError: An action is not in the action space.
        """
        actions = np.array(actions, dtype=np.int64)
        if actions.shape != (self.num_envs,) or actions.min() < 0 or actions.max() >= TEXT_FREE:
            raise ValueError(f"actions are {self.num_envs} whole numbers from 0 to {TEXT_FREE - 1}; got shape "
                             f"{actions.shape}, {actions.min()} to {actions.max()}.")
        begun, driven, rewards = self._over.copy(), ~self._over, np.zeros(self.num_envs)
        self._begin(np.flatnonzero(begun))
        handed_over = IS_DONE[actions] & driven
        while driven.any():
            self._drive(actions, driven, rewards)
            # Handed over with DONE, or out of the race: no commands are left, so it goes on to the flag.
            out = self._cars["out"][self._rows(), EGO] > 0
            self._over = np.where(driven, self._laps >= self._race_laps[self._drawn], self._over)
            driven = driven & ~self._over & (handed_over | out)
            actions = np.full(self.num_envs, STAY_OUT)
        if self.judged:
            for row in np.flatnonzero(self._over):
                rewards[row] += self._score(int(row)) - self._paid[row]
        return self._observations(), rewards, self._over.copy(), np.zeros(self.num_envs, dtype=np.bool_), {}

    def _begin(self, rows: np.ndarray) -> None:
        """Begin a sprint of a newly drawn scenario in these rows."""
        self._drawn[rows] = self.np_random.integers(len(self._scenarios), size=len(rows))
        self._cars[rows], self._races[rows] = self._start.cars[self._drawn[rows]], self._start.races[self._drawn[rows]]
        self._settings.reset(rows)
        self._settings.columns[rows] = self._columns[self._drawn[rows]]
        self._laps[rows], self._paid[rows], self._over[rows] = 0, 0.0, False

    def _rows(self) -> np.ndarray:
        """Row of each sprint's current state, (E,)."""
        return np.asarray(self._laps * self.num_envs + np.arange(self.num_envs))

    def _drive(self, actions: np.ndarray, driven: np.ndarray, rewards: np.ndarray) -> None:
        """Drive the next lap of the sprints that are `driven`, and add their rewards."""
        calls = self._settings.calls(np.where(driven, actions, STAY_OUT))
        for k in np.flatnonzero(IS_RECOMMENDED[actions] & driven):
            scenario, race = self.scenario_of(int(k))
            calls["pit"][k] = drivers_choice(scenario, race, self._state(int(k)), 0)
        rows = np.flatnonzero(driven)
        self._actions[self._laps[rows], rows] = actions[rows]
        _drive(self._race.tables, self._plans.tables, self._drawn, self._laps, self._cars[:-self.num_envs],
               self._races[:-self.num_envs], calls, driven, np.empty((1, self._race.cars), CALL),
               np.empty((1, self._race.cars), CAR_LAP), np.empty(self._race.cars, LINE), self._cars[self.num_envs:],
               self._races[self.num_envs:], self._paid, rewards)

    def _observations(self) -> np.ndarray:
        """Features of every sprint, (E, F)."""
        _fill_all_features(self._race.tables, self._drawn, self._laps, self._cars, self._races, self._rule, self._rain,
                           self._settings.mode, self._features)
        return np.clip(self._features, -LIMIT, LIMIT).astype(np.float32)

    def _state(self, k: int, lap: int | None = None) -> RaceState:
        """The state of one sprint, as a batch of its own; after `lap` laps, or now."""
        lap = int(self._laps[k]) if lap is None else lap
        rows = [at * self.num_envs + k for at in range(lap + 1)]
        return RaceState(lap, self._cars[rows[-1:]], self._races[rows[-1:]],
                         tuple(self._cars["elapsed_s"][row:row + 1] for row in rows))

    def scenario_of(self, k: int) -> tuple[Scenario, Race]:
        """The scenario of a sprint and its race, as a batch of its own."""
        return self._scenarios[self._drawn[k]], self._race.take(self._drawn[k:k + 1])

    def _score(self, k: int) -> float:
        """The score of a finished sprint."""
        scenario, race = self.scenario_of(k)
        history = [self._state(k, lap) for lap in range(scenario.laps + 1)]
        wall = PitWallState()
        for lap, state in enumerate(history[:-1]):
            if state.out[0, EGO]:
                break
            action = int(self._actions[lap, k])
            wall.call(command_of(action, scenario), scenario, race, state)
            if IS_DONE[action]:
                wall.left_laps = scenario.laps - lap - 1
                break
        return score_batch([scenario], race, history, [wall])[0].total


@compiled
def _drive(tables: Tables, plans: PlanTables, drawn: np.ndarray, lap_numbers: np.ndarray, cars: Records, races: Records,
           ours: Records, driven: np.ndarray, calls: Records, laps: Records, line: Records, new_cars: Records,
           new_races: Records, paid: np.ndarray, rewards: np.ndarray) -> None:
    """Drive the next lap of some sprints.

    Args:
        tables, plans: Of all scenarios.
        drawn: Scenario of each sprint, (E,).
        lap_numbers: Laps of each sprint so far, (E,); counted on.
        cars, races: States, sprint k after l laps in row l * E + k.
        ours: Our calls, (E,) CALL.
        driven: Which sprints to drive, (E,) bool.
        calls, laps, line: Scratch for one race.
        new_cars, new_races: States as `cars` and `races`, one lap later.
        paid: Potential so far, (E,); brought up to date.
        rewards: Added to, (E,).
    """
    for k in range(len(drawn)):
        if not driven[k]:
            continue
        t, lap = drawn[k], lap_numbers[k] + 1
        row = lap_numbers[k] * len(drawn) + k
        fill_calls(tables, t, plans, t, lap, cars, races, row, last_wetness(tables, t, lap), ours[k], calls)
        drive_lap(tables, t, lap, cars, races, row, calls, laps, line, new_cars, new_races)
        now = potential_of(tables, t, lap, new_cars, row, 0)
        rewards[k] += now - paid[k]
        paid[k], lap_numbers[k] = now, lap


@compiled
def _fill_all_features(tables: Tables, drawn: np.ndarray, lap_numbers: np.ndarray, cars: Records, races: Records,
                       rule: np.ndarray, rain: np.ndarray, mode: np.ndarray, features: np.ndarray) -> None:
    for k in range(len(drawn)):
        t, lap = drawn[k], lap_numbers[k]
        fill_features(tables, t, lap, cars, races, lap * len(drawn) + k, rule[t], rain[t, lap], mode[k], features[k])
