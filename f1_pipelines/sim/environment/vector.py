"""A batch of sprints stepped together, for training without text: `VectorEnvironment(scenarios)`.

Engine, opponents, answers and rules are those of `RaceEnvironment`. An action is an index into `ACTIONS`, which covers
all `VERBS`: opponents by their index in the sorted list of car numbers, texts of messages passed beside the actions.
`NO_COMMAND` stands for output that does not parse: it is counted and the car stays out. Observations and answers are
computed on request, race by race.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from f1_pipelines.sim.engine.classification import used_one_slick
from f1_pipelines.sim.engine.compiled import Records, compiled
from f1_pipelines.sim.engine.drive import MODES, RACE, TEMP_NORMAL, TEMPS, drive_code
from f1_pipelines.sim.engine.lap import CALL
from f1_pipelines.sim.engine.parameters import COMPOUNDS, SC, STATUSES, VSC
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.state import RaceState, new_state
from f1_pipelines.sim.engine.tables import Tables
from f1_pipelines.sim.environment.answers import NOT_UNDERSTOOD, answer_of
from f1_pipelines.sim.environment.commands import CAR, GRAMMAR, TEXT, VERBS, BadCommand, Command, parse
from f1_pipelines.sim.environment.inspections import Answer
from f1_pipelines.sim.environment.notes import Notes
from f1_pipelines.sim.environment.observation import Observation, observe
from f1_pipelines.sim.environment.pit_wall import PitWallState, drivers_choice
from f1_pipelines.sim.scenarios import EGO, ENV_VERSION, Scenario, plans_of, setup_of
from f1_pipelines.sim.scenarios.opponents import last_wetness, step_field
from f1_pipelines.sim.scoring.score import potential, score_batch

OPPONENTS = 5
FAR_S = 99.0  # largest gap in the features
FEATURES = ("lap_share", "laps_to_go", "vsc", "sc", "position", "gap_ahead_s", "gap_behind_s", "soft", "medium", "hard",
            "inter", "wet", "age_laps", "stops", "rule_kept", "wetness", "rain", "tyre_temp_c", "mode", "wear_scale")


def _actions() -> tuple[tuple[str, str | int], ...]:
    """(verb, word or opponent's index) of each action, messages last."""
    actions: list[tuple[str, str | int]] = []
    for verb in VERBS:
        kind = GRAMMAR[verb]
        if kind != TEXT:
            actions += [(verb, k) for k in range(OPPONENTS)] if kind == CAR else [(verb, w) for w in (kind or ("",))]
    return (*actions, *((verb, "") for verb in VERBS if GRAMMAR[verb] == TEXT))


ACTIONS = _actions()
TEXT_FREE = sum(GRAMMAR[verb] != TEXT for verb, _ in ACTIONS)  # number of actions without text, which come first
NO_COMMAND = -1
_VERB = np.array([VERBS.index(verb) for verb, _ in ACTIONS])
_CAR = np.array([word if isinstance(word, int) else -1 for _, word in ACTIONS])


def _table(verb: str, words: Sequence[str]) -> np.ndarray:
    """(A,) index of each action's word, -1 for actions of other verbs."""
    return np.array([words.index(word) if v == verb else -1 for v, word in ACTIONS])


_PIT, _MODE = _table("PIT_NOW", COMPOUNDS), _table("SET_MODE", MODES)
_TEMP, _DRS = _table("MANAGE_TYRE_TEMP", TEMPS), _table("DRS_PERMISSION", ("off", "on"))
_ATTACK, _DEFEND, _HOLD, _LET, _DONE, _RECOMMEND = (np.equal(VERBS.index(v), _VERB) for v in (
    "ATTACK_AHEAD", "DEFEND_POSITION", "HOLD_GAP", "LET_BY", "DONE", "RECOMMEND_PIT"))


def action_of(command: Command, scenario: Scenario) -> int:
    """The action of a command in a race."""
    others = sorted(scenario.numbers[1:])
    word = others.index(command.car) if command.car else command.word
    return ACTIONS.index((command.verb, word))


def command_of(action: int, scenario: Scenario, text: str = "") -> Command:
    """The command of an action in a race; `text` is the text of a message.

    Raises:
        BadCommand: The text of a message is missing or invalid.
    """
    verb, word = ACTIONS[action]
    if action >= TEXT_FREE:
        return parse(f'{verb} "{text}"')
    if isinstance(word, int):
        return Command(verb, car=sorted(scenario.numbers[1:])[word])
    return Command(verb, word=word)


class VectorEnvironment:
    """E sprints stepped together until the longest is over. Arrays are (E,).

    `step(actions, texts)` returns features (E, F), rewards and done. A finished race ignores its actions and has reward
    0. `observation(row)` and `answer(row)` equal those of `RaceEnvironment`.
    Rewards are differences of the potential of `RaceEnvironment`. After the flag, `scores()` returns the scores and
    `last_rewards()` the remainder that makes the rewards sum to them. Scoring searches the best race of each scenario
    (tens of milliseconds, cached), so it is separate from stepping.
    """

    env_version = ENV_VERSION

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        if any(s.weekend for s in scenarios):
            raise ValueError("a batch holds sprints; race a grand_prix in RaceEnvironment.")
        self.scenarios = list(scenarios)
        self._plans, self._race = plans_of(scenarios), prepare(setup_of(scenarios))
        self._columns = np.array([[s.column(n) for n in sorted(s.numbers[1:])] for s in scenarios])
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
        self._mode = np.full(count, RACE)
        self._temp, self._drs = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64)
        self._hold, self._handover_lap = np.full(count, -1), np.zeros(count, dtype=np.int64)
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
        actions = np.where(self._handover_lap > 0, _STAY, np.asarray(actions))
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
        actions = np.where(actions < 0, _STAY, actions)
        self._handover_lap = np.where(_DONE[actions] & (self._handover_lap == 0), state.lap + 1, self._handover_lap)
        self._state = step_field(race, state, self._plans, self._drive_calls(actions))
        self.history.append(self._state)
        now = potential(race, self._state, self._illegal)
        reward, self._potential_paid = now - self._potential_paid, now
        return self.features(), reward, self._state.lap >= race.race_laps

    def features(self) -> np.ndarray:
        """(E, F) public facts of our car, in the order of `FEATURES`."""
        features = np.empty((len(self.scenarios), len(FEATURES)))
        state = self._state
        _fill_features(self._race.tables, state.lap, state.cars, state.races, self._rule, self._rain, self._mode,
                       features)
        return features

    def observation(self, row: int) -> Observation:
        """The observation of one race, with the answer to its last command."""
        scenario = self.scenarios[row]
        wall = PitWallState(int(self._mode[row]), int(self._temp[row]), bool(self._drs[row]))
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
                mode = mode if _MODE[actions[row]] < 0 else int(_MODE[actions[row]])
                temp = temp if _TEMP[actions[row]] < 0 else int(_TEMP[actions[row]])
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

    def _drive_calls(self, actions: np.ndarray) -> np.ndarray:
        """Apply commands to the lasting settings. Returns our calls, (E,) CALL."""
        mode, temp, drs = _MODE[actions], _TEMP[actions], _DRS[actions]
        self._mode = np.where(mode >= 0, mode, self._mode)
        self._temp, self._drs = np.where(temp >= 0, temp, self._temp), np.where(drs >= 0, drs, self._drs)
        free = (mode >= 0) | _ATTACK[actions]
        self._hold = np.where(_HOLD[actions], self._car(actions), np.where(free, -1, self._hold))
        calls = np.empty(len(actions), CALL)
        calls["pit"], calls["hold_gap"] = _PIT[actions], self._hold
        calls["let_by"] = np.where(_LET[actions], self._car(actions), -1)
        calls["drive"] = drive_code(self._mode, self._temp, self._drs, _ATTACK[actions], _DEFEND[actions])
        for k in np.flatnonzero(_RECOMMEND[actions]):
            calls["pit"][k] = drivers_choice(self.scenarios[k], self._race, self._state, int(k))
        return calls

    def _car(self, actions: np.ndarray) -> np.ndarray:
        return np.take_along_axis(self._columns, np.maximum(_CAR[actions], 0)[:, None], axis=1)[:, 0]

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
    """Fill the features of every race.

    Args:
        tables: Tables of the batch.
        lap: Laps driven.
        cars, races: State of the batch.
        rule: Whether the two-compound rule holds, (E,).
        rain: Rain by lap, (E, L).
        mode: Mode of our car, (E,).
        features: Filled, (E, F).
    """
    for episode in range(len(features)):
        t, car, out = tables.row_of[episode], cars[episode, EGO], features[episode]
        race, state = tables.of_race[t], races[episode]
        position, behind_s = 1, FAR_S
        for k in range(1, cars.shape[1]):
            gap_s = cars[episode, k].elapsed_s - car.elapsed_s
            position += gap_s < 0
            if gap_s > 0:
                behind_s = min(behind_s, gap_s)
        out[0], out[1] = min(lap / race.race_laps, 1.0), max(race.race_laps - lap, 0)
        out[2], out[3], out[4] = state.status == VSC, state.status == SC, position
        out[5], out[6] = min(car.gap_ahead_s, FAR_S), behind_s
        for compound in range(len(COMPOUNDS)):
            out[7 + compound] = car.compound == compound
        out[12], out[13], out[14] = car.age_laps, car.stops, not rule[episode] or not used_one_slick(car.used)
        out[15], out[16] = last_wetness(tables, t, lap + 1), rain[episode, max(lap - 1, 0)]
        out[17], out[18], out[19] = round(car.temp_c), mode[episode], race.wear_scale


_STAY = ACTIONS.index(("STAY_OUT", ""))
