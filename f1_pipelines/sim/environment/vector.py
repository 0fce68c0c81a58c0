"""A batch of sprints stepped together, for training without text: `VectorEnvironment(scenarios)`.

Engine, opponents, answers and rules are those of `RaceEnvironment`. Observations and answers are computed on request,
race by race.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from f1_pipelines.sim.engine.compiled import Records, compiled
from f1_pipelines.sim.engine.drive import RACE, TEMP_NORMAL
from f1_pipelines.sim.engine.parameters import STATUSES
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.state import CAR_STATE, RACE_STATE, RaceState, new_state
from f1_pipelines.sim.engine.tables import Tables
from f1_pipelines.sim.environment.actions import (
    ACTIONS,
    IS_DONE,
    IS_RECOMMENDED,
    NO_COMMAND,
    SET_MODE,
    SET_TEMP,
    STAY_OUT,
    TEXT_FREE,
    Settings,
    command_of,
)
from f1_pipelines.sim.environment.answers import NOT_UNDERSTOOD, answer_of
from f1_pipelines.sim.environment.commands import BadCommand, Command
from f1_pipelines.sim.environment.features import FEATURES, fill_features
from f1_pipelines.sim.environment.inspections import Answer
from f1_pipelines.sim.environment.notes import Notes
from f1_pipelines.sim.environment.observation import Observation, observe
from f1_pipelines.sim.environment.pit_wall import PitWallState, drivers_choice
from f1_pipelines.sim.scenarios import EGO, ENV_VERSION, Scenario, plans_of, setup_of
from f1_pipelines.sim.scenarios.opponents import step_field
from f1_pipelines.sim.scoring.score import potential, score_batch


class VectorEnvironment:
    """E sprints stepped together until the longest is over. Arrays are (E,).

    `step(actions, texts)` returns features (E, F), rewards and done. A finished race ignores its actions and has reward
    0. `observation(row)` and `answer(row)` equal those of `RaceEnvironment`.
    Rewards are differences of the potential of `RaceEnvironment`. After the flag, `scores()` returns the scores and
    `last_rewards()` the remainder that makes the rewards sum to them. Scoring searches the best race of each scenario
    (about ten milliseconds, cached), so it is separate from stepping.
    """

    env_version = ENV_VERSION

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        if any(s.weekend for s in scenarios):
            raise ValueError("a batch holds sprints; race a grand_prix in RaceEnvironment.")
        self.scenarios = list(scenarios)
        self._plans, self._race = plans_of(scenarios), prepare(setup_of(scenarios))
        self._settings = Settings(self.scenarios)
        self._rule = np.array([s.rule for s in scenarios])
        self._rain = np.zeros((len(self.scenarios), self._race.laps))
        for row, s in enumerate(scenarios):
            self._rain[row, :s.laps] = s.rain
        self.reset()

    def reset(self) -> np.ndarray:
        """Return to the grid. Returns features (E, F)."""
        count = len(self.scenarios)
        self._state: RaceState = new_state(self._race)
        self.history = [self._state]
        # One array for all laps: the system maps it in large pages, which takes a quarter of the time of many arrays.
        shape = (self._race.laps, count, self._race.cars)
        self._memory = np.empty(shape, CAR_STATE), np.empty(shape[:2], RACE_STATE)
        self._settings.reset(np.arange(count))
        self._handover_lap = np.zeros(count, dtype=np.int64)
        self._potential_paid, self._illegal = np.zeros(count), np.zeros(count, dtype=np.int64)
        self._past_actions: list[np.ndarray] = []
        self._messages: list[dict[int, Command]] = []
        return self.features()

    def step(self, actions: np.ndarray, texts: Mapping[int, str] | None = None) -> tuple[np.ndarray, np.ndarray,
                                                                                       np.ndarray]:
        """Drive the next lap of every race. Returns features (E, F), rewards (E,), done (E,).

        Args:
            actions: (E,) indices into `ACTIONS`, or `NO_COMMAND`.
            texts: Texts of messages by row; an invalid one counts as `NO_COMMAND`.

        Raises:
            ValueError: An action is out of range.
        """
        race, state, texts = self._race, self._state, texts or {}
        actions = np.where(self._handover_lap > 0, STAY_OUT, np.asarray(actions))
        if actions.min() < NO_COMMAND or actions.max() >= len(ACTIONS):
            raise ValueError(f"actions must be {NO_COMMAND} to {len(ACTIONS) - 1}; got {actions.min()} to "
                             f"{actions.max()}.")
        messages = {}
        for row in np.flatnonzero(actions >= TEXT_FREE).tolist():
            try:
                messages[row] = command_of(int(actions[row]), self.scenarios[row], texts.get(row, ""))
            except BadCommand:
                actions[row] = NO_COMMAND
        self._messages.append(messages)
        self._illegal += (actions < 0) & (state.lap < race.race_laps) & (state.out[:, EGO] == 0)
        self._past_actions.append(actions)
        actions = np.where(actions < 0, STAY_OUT, actions)
        self._handover_lap = np.where(IS_DONE[actions] & (self._handover_lap == 0), state.lap + 1, self._handover_lap)
        calls = self._settings.calls(actions)
        for k in np.flatnonzero(IS_RECOMMENDED[actions]):
            calls["pit"][k] = drivers_choice(self.scenarios[k], race, state, int(k))
        memory = self._memory[0][state.lap], self._memory[1][state.lap]
        self._state = step_field(race, state, self._plans, calls, memory)
        self.history.append(self._state)
        now = potential(race, self._state, self._illegal)
        reward, self._potential_paid = now - self._potential_paid, now
        return self.features(), reward, self._state.lap >= race.race_laps

    def features(self) -> np.ndarray:
        """(E, F) public facts of our car, in the order of `FEATURES`."""
        features, state = np.empty((len(self.scenarios), len(FEATURES))), self._state
        _fill_features(self._race.tables, state.lap, state.cars, state.races, self._rule, self._rain,
                       self._settings.mode, features)
        return features

    def observation(self, row: int) -> Observation:
        """The observation of one race, with the answer to its last command."""
        scenario, settings = self.scenarios[row], self._settings
        wall = PitWallState(int(settings.mode[row]), int(settings.temp[row]), bool(settings.drs[row]))
        answer, over = self.answer(row), self._state.lap >= scenario.laps
        state = self.history[min(self._state.lap, scenario.laps)]
        return observe(scenario, self._race, state, wall, answer.text if answer else "", answer.facts if answer
                       else None, over, row, self._notes(row))

    def _notes(self, row: int) -> tuple[str, ...]:
        """The notes of one race, rebuilt lap by lap."""
        scenario, notes, mode, temp = self.scenarios[row], Notes(), RACE, TEMP_NORMAL
        for lap, (actions, state) in enumerate(zip(self._past_actions[:scenario.laps], self.history, strict=False), 1):
            if (0 < self._handover_lap[row] < lap) or state.out[row, EGO]:
                break
            if actions[row] != NO_COMMAND:
                command = self._command(lap, row)
                answer = answer_of(command, scenario, self._race, state, row)
                if answer is not None:
                    notes.write(lap, command, answer.facts)
                mode = mode if SET_MODE[actions[row]] < 0 else int(SET_MODE[actions[row]])
                temp = temp if SET_TEMP[actions[row]] < 0 else int(SET_TEMP[actions[row]])
            if lap < len(self.history):
                after = self.history[lap]
                notes.driven(mode, temp, STATUSES[state.status[row]], after.stops[row, EGO] > state.stops[row, EGO])
        return notes.latest()

    def answer(self, row: int) -> Answer | None:
        """The answer to the last command of one race; None for commands without an answer."""
        scenario, lap = self.scenarios[row], self._state.lap
        if not self._past_actions or lap > scenario.laps or 0 < self._handover_lap[row] < lap:
            return None
        action = int(self._past_actions[-1][row])
        if action == NO_COMMAND:
            return Answer(NOT_UNDERSTOOD, {})
        return answer_of(self._command(lap, row), scenario, self._race, self.history[-2], row)

    def scores(self) -> list[dict[str, float]]:
        """Score and dimensions of each race.

        Raises:
            ValueError: A race is not over.
        """
        if self._state.lap < self._race.laps:
            raise ValueError(f"the races are not over: lap {self._state.lap} of {self._race.laps}.")
        return [score.as_dict() for score in score_batch(self.scenarios, self._race, self.history, self._walls())]

    def last_rewards(self) -> np.ndarray:
        """(E,) score minus the rewards so far, due at the flag."""
        return np.array([s["score"] for s in self.scores()]) - self._potential_paid

    def _command(self, lap: int, row: int) -> Command:
        """The command of a lap of one race."""
        message = self._messages[lap - 1].get(row)
        return message or command_of(int(self._past_actions[lap - 1][row]), self.scenarios[row])

    def _walls(self) -> list[PitWallState]:
        """The pit-wall log of each race, rebuilt from its actions."""
        walls = []
        for k, scenario in enumerate(self.scenarios):
            wall = PitWallState()
            for lap, actions in enumerate(self._past_actions[:scenario.laps], 1):
                handover_lap = self._handover_lap[k]
                if (handover_lap and lap > handover_lap) or self.history[lap - 1].out[k, EGO]:
                    break
                if actions[k] == NO_COMMAND:
                    wall.illegal += 1
                else:
                    wall.call(self._command(lap, k), scenario, self._race, self.history[lap - 1], k)
            wall.left_laps = max(scenario.laps - self._handover_lap[k], 0) if self._handover_lap[k] else 0
            walls.append(wall)
        return walls


@compiled
def _fill_features(tables: Tables, lap: int, cars: Records, races: Records, rule: np.ndarray, rain: np.ndarray,
                   mode: np.ndarray, features: np.ndarray) -> None:
    for episode in range(len(features)):
        fill_features(tables, tables.row_of[episode], lap, cars, races, episode, rule[episode],
                      rain[episode, max(lap - 1, 0)], mode[episode], features[episode])
