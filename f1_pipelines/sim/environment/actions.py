"""Commands as numbers: `ACTIONS`, and what they do to the settings of many pit walls at once.

`ACTIONS` covers all `VERBS`: opponents by their index in the sorted list of car numbers, texts of messages passed
beside the actions. `NO_COMMAND` stands for output that does not parse: it is counted and the car stays out.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from f1_pipelines.sim.engine.drive import MODES, RACE, TEMP_NORMAL, TEMPS, drive_code
from f1_pipelines.sim.engine.lap import CALL
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.commands import CAR, GRAMMAR, TEXT, VERBS, Command, parse
from f1_pipelines.sim.scenarios import Scenario

OPPONENTS = 5


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


_PIT, SET_MODE = _table("PIT_NOW", COMPOUNDS), _table("SET_MODE", MODES)
SET_TEMP, _DRS = _table("MANAGE_TYRE_TEMP", TEMPS), _table("DRS_PERMISSION", ("off", "on"))
_ATTACK, _DEFEND, _HOLD, _LET, IS_DONE, IS_RECOMMENDED = (np.equal(VERBS.index(v), _VERB) for v in (
    "ATTACK_AHEAD", "DEFEND_POSITION", "HOLD_GAP", "LET_BY", "DONE", "RECOMMEND_PIT"))  # (A,) bool
STAY_OUT = ACTIONS.index(("STAY_OUT", ""))


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


class Settings:
    """Settings of E pit walls that last from lap to lap, (E,) each."""

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        count = len(scenarios)
        self.columns = np.array([[s.column(n) for n in sorted(s.numbers[1:])] for s in scenarios])  # (E, opponents)
        self.mode, self.temp, self.drs, self.hold = (np.empty(count, dtype=np.int64) for _ in range(4))
        self.reset(np.arange(count))

    def reset(self, rows: np.ndarray) -> None:
        """Begin a race in these rows."""
        self.mode[rows], self.temp[rows], self.drs[rows], self.hold[rows] = RACE, TEMP_NORMAL, 1, -1

    def calls(self, actions: np.ndarray) -> np.ndarray:
        """Apply actions (E,), none of them NO_COMMAND. Returns our calls, (E,) CALL, without recommended stops."""
        mode, temp, drs = SET_MODE[actions], SET_TEMP[actions], _DRS[actions]
        self.mode = np.where(mode >= 0, mode, self.mode)
        self.temp, self.drs = np.where(temp >= 0, temp, self.temp), np.where(drs >= 0, drs, self.drs)
        car = np.take_along_axis(self.columns, np.maximum(_CAR[actions], 0)[:, None], axis=1)[:, 0]
        free = (mode >= 0) | _ATTACK[actions]
        self.hold = np.where(_HOLD[actions], car, np.where(free, -1, self.hold))
        calls = np.empty(len(actions), CALL)
        calls["pit"], calls["hold_gap"] = _PIT[actions], self.hold
        calls["let_by"] = np.where(_LET[actions], car, -1)
        calls["drive"] = drive_code(self.mode, self.temp, self.drs, _ATTACK[actions], _DEFEND[actions])
        return calls
