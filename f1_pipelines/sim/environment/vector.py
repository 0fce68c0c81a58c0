"""Many sprints stepped together, for training without text: `VectorEnvironment(scenarios)`.

The same engine, opponents and rules as `RaceEnvironment`, which is the form for one race with text. An action is an
index into `ACTIONS`: every command without text; cars are meant by their place in the sorted list of opponents'
numbers. Questions are answered in the typed form only through `RaceEnvironment`; here they are laps on which the car
stays out. What is void or harmful is counted for driving and stops as there.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from f1_pipelines.sim.drive import MODES, RACE, TEMPS
from f1_pipelines.sim.engine import step as drive
from f1_pipelines.sim.environment.commands import CAR, GRAMMAR, TEXT, VERBS, Command
from f1_pipelines.sim.environment.wall import EGO, Wall, drivers_choice
from f1_pipelines.sim.parameters import COMPOUNDS
from f1_pipelines.sim.race import prepare
from f1_pipelines.sim.scenarios import ENV_VERSION, Scenario, plans_of, setup_of
from f1_pipelines.sim.scenarios.opponents import calls_with, wetness_now
from f1_pipelines.sim.scoring.judge import judge_batch, potential
from f1_pipelines.sim.state import RaceState, new_state

OPPONENTS = 5
FEATURES = ("lap_share", "laps_to_go", "vsc", "sc", "position", "gap_ahead_s", "gap_behind_s", "soft", "medium", "hard",
            "inter", "wet", "age_laps", "stops", "rule_kept", "wetness", "rain", "tyre_temp_c", "mode", "wear_scale")


def _actions() -> tuple[tuple[str, str | int], ...]:
    """(verb, word or opponent's index) of every action."""
    found: list[tuple[str, str | int]] = []
    for verb in VERBS:
        kind = GRAMMAR[verb]
        if kind == TEXT:
            continue
        found += [(verb, k) for k in range(OPPONENTS)] if kind == CAR else [(verb, w) for w in (kind or ("",))]
    return tuple(found)


ACTIONS = _actions()
_VERB = np.array([VERBS.index(verb) for verb, _ in ACTIONS])
_CAR = np.array([word if isinstance(word, int) else -1 for _, word in ACTIONS])


def _table(verb: str, words: Sequence[str]) -> np.ndarray:
    """Index of the word of each action of that verb, -1 for other actions."""
    return np.array([words.index(word) if v == verb else -1 for v, word in ACTIONS])


_PIT, _MODE = _table("PIT_NOW", COMPOUNDS), _table("SET_MODE", MODES)
_TEMP, _DRS = _table("MANAGE_TYRE_TEMP", TEMPS), _table("DRS_PERMISSION", ("off", "on"))
_ATTACK, _DEFEND, _HOLD, _LET, _DONE, _RECOMMEND = (VERBS.index(v) == _VERB for v in (
    "ATTACK_AHEAD", "DEFEND_POSITION", "HOLD_GAP", "LET_BY", "DONE", "RECOMMEND_PIT"))


def action_of(command: Command, scenario: Scenario) -> int:
    """The index of a command in a race."""
    others = sorted(scenario.numbers[1:])
    word = others.index(command.car) if command.car else command.word
    return ACTIONS.index((command.verb, word))


def command_of(action: int, scenario: Scenario) -> Command:
    """The command of an index in a race."""
    verb, word = ACTIONS[action]
    if isinstance(word, int):
        return Command(verb, car=sorted(scenario.numbers[1:])[word])
    return Command(verb, word=word)


class VectorEnvironment:
    """E sprints in step, until the longest is over. Arrays are (E,).

    `step(actions)` returns features (E, F), rewards, done. A race that is over ignores its actions and pays nothing.
    Rewards are differences of the potential of `RaceEnvironment` until the flag; `scores()` then gives what the whole
    race is worth, and `last_rewards()` what is still to pay so that the rewards add up to it. To score needs the best
    race of each scenario, milliseconds each the first time: it is kept apart from stepping for that reason.
    """

    env_version = ENV_VERSION

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        self.scenarios = list(scenarios)
        self._plans, self._race = plans_of(scenarios), prepare(setup_of(scenarios))
        self._columns = np.array([[s.column(n) for n in sorted(s.numbers[1:])] for s in scenarios])
        self._rule = np.array([s.rule for s in scenarios])
        self._wear = np.array([s.wear_scale for s in scenarios])
        self._rain = np.zeros((len(self.scenarios), self._race.laps))
        for row, s in enumerate(scenarios):
            self._rain[row, :s.laps] = s.rain
        self.reset()

    def reset(self) -> np.ndarray:
        """To the grid. Returns features."""
        count = len(self.scenarios)
        self._state: RaceState = new_state(self._race)
        self.history = [self._state]
        self._mode = np.full(count, RACE)
        self._temp, self._drs = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64)
        self._hold, self._handed = np.full(count, -1), np.zeros(count, dtype=np.int64)
        self._told = np.zeros(count)
        self._called: list[np.ndarray] = []
        return self.features()

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Call the coming lap of every race: features, rewards, done."""
        race, state = self._race, self._state
        actions = np.where(self._handed > 0, _STAY, np.asarray(actions))
        if actions.min() < 0 or actions.max() >= len(ACTIONS):
            raise ValueError(f"actions must be 0 to {len(ACTIONS) - 1}; got {actions.min()} to {actions.max()}.")
        self._handed = np.where(_DONE[actions] & (self._handed == 0), state.lap + 1, self._handed)
        pit = self._drive_calls(actions)
        let = np.where(_LET[actions], self._car(actions), -1)
        code = (self._mode + 8 * self._temp + 32 * (1 - self._drs) + 64 * _ATTACK[actions] + 128 * _DEFEND[actions])
        self._called.append(actions)
        self._state = drive(race, state, calls_with(race, state, self._plans, pit, code, self._hold, let))
        self.history.append(self._state)
        now = potential(race, self.history)
        reward, self._told = now - self._told, now
        return self.features(), reward, self._state.lap >= race.race_laps

    def features(self) -> np.ndarray:
        """(E, F) what timing shows of our car, `FEATURES` in order; nothing that is hidden."""
        race, state = self._race, self._state
        gap = state.elapsed_s - state.elapsed_s[:, :1]
        behind = np.where(gap > 0, gap, 99.0).min(axis=1)
        compound = state.compound[:, EGO]
        kinds = compound[:, None] == np.arange(5)
        slicks = state.used[:, EGO] & 7
        kept = ~self._rule | (slicks & (slicks - 1) > 0) | (state.used[:, EGO] > 7)
        lap = np.minimum(state.lap / race.race_laps, 1.0)
        return np.column_stack([
            lap, np.maximum(race.race_laps - state.lap, 0), state.status == 1, state.status == 2,
            (gap < 0).sum(axis=1) + 1, np.minimum(state.gap_ahead_s[:, EGO], 99.0), np.minimum(behind, 99.0), kinds,
            state.age_laps[:, EGO], state.stops[:, EGO], kept, wetness_now(race, state),
            self._rain[:, max(state.lap - 1, 0)], np.round(state.temp_c[:, EGO]), self._mode, self._wear])

    def scores(self) -> list[dict[str, float]]:
        """Score and dimensions of each race; all must be over."""
        if self._state.lap < self._race.laps:
            raise ValueError(f"the races are not over: lap {self._state.lap} of {self._race.laps}.")
        return [score.as_dict() for score in judge_batch(self.scenarios, self._race, self.history, self._walls())]

    def last_rewards(self) -> np.ndarray:
        """(E,) what remains to be paid at the flag."""
        return np.array([s["score"] for s in self.scores()]) - self._told

    def _drive_calls(self, actions: np.ndarray) -> np.ndarray:
        """Take over the settings that last. Returns (E,) compounds to change to."""
        pit, mode, temp, drs = _PIT[actions], _MODE[actions], _TEMP[actions], _DRS[actions]
        self._mode = np.where(mode >= 0, mode, self._mode)
        self._temp, self._drs = np.where(temp >= 0, temp, self._temp), np.where(drs >= 0, drs, self._drs)
        free = (mode >= 0) | _ATTACK[actions]
        self._hold = np.where(_HOLD[actions], self._car(actions), np.where(free, -1, self._hold))
        asked = np.flatnonzero(_RECOMMEND[actions])
        if len(asked):
            pit = pit.copy()
            for k in asked:
                pit[k] = drivers_choice(self.scenarios[k], self._race, self._state, int(k))
        return pit

    def _car(self, actions: np.ndarray) -> np.ndarray:
        return np.take_along_axis(self._columns, np.maximum(_CAR[actions], 0)[:, None], axis=1)[:, 0]

    def _walls(self) -> list[Wall]:
        """The logs of the pit walls, as `RaceEnvironment` would have kept them."""
        walls = []
        for k, scenario in enumerate(self.scenarios):
            wall = Wall()
            for lap, actions in enumerate(self._called[:scenario.laps], 1):
                handed = self._handed[k]
                if (handed and lap > handed) or self.history[lap - 1].out[k, EGO]:
                    break
                wall.call(command_of(int(actions[k]) if not handed or lap < handed else _DONE_ACTION, scenario),
                          scenario, self._race, self.history[lap - 1], k)
            wall.left_laps = max(scenario.laps - self._handed[k], 0) if self._handed[k] else 0
            walls.append(wall)
        return walls


_STAY, _DONE_ACTION = ACTIONS.index(("STAY_OUT", "")), ACTIONS.index(("DONE", ""))
