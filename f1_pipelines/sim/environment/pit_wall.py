"""Commands turned into calls of the engine, and counted: `PitWallState.call(command, ...)`.

A command is void if it cannot have an effect (attack without a car ahead, set a mode that is already set, repeat a
question too soon), harmful if it gives away a place or a fresh set. A void command still takes its lap.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from f1_pipelines.sim.engine.drive import MODES, RACE, TEMP_NORMAL, TEMPS, drive_code
from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN, HARD, INTER, MEDIUM, SOFT, WET
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import RaceState
from f1_pipelines.sim.engine.traffic import YIELD_WITHIN_S
from f1_pipelines.sim.engine.weather import INTER_WET_CROSSOVER, SLICK_INTER_CROSSOVER
from f1_pipelines.sim.environment.commands import BadCommand, Command
from f1_pipelines.sim.scenarios import EGO, Scenario
from f1_pipelines.sim.scenarios.opponents import wetness_now
from f1_pipelines.sim.scoring.messages import Message
from f1_pipelines.sim.scoring.schedules import NEAR_S

HOLD_NEAR_S = 15.0
REPEAT_AFTER_LAPS = {"REQUEST_FORECAST": 0, "INSPECT_TYRE_DEGRADATION": 2, "INSPECT_FUEL_MARGIN": 3,
                     "ASSESS_UNDERCUT_WINDOW": 2, "CHECK_OPPONENT_STRATEGY": 99, "REQUEST_INFO": 99,
                     "ESCALATE_TO_PRINCIPAL": 99, "RECOMMEND_PIT": 2}  # laps before the answer may have changed
MESSAGE_VERBS = ("RADIO_DRIVER", "DRAFT_PIT_WALL", "BRIEF_MEDIA")
WORN_WITHIN_LAPS = 0.6  # of the tyre's cliff: the driver comes in on RECOMMEND_PIT


class OnTrack(NamedTuple):
    """The engine's calls for our car in one lap."""

    pit: int = -1
    drive: int = RACE
    hold_gap: int = -1
    let_by: int = -1


@dataclass
class PitWallState:
    """Settings of one pit wall that last from lap to lap, and the log of its commands."""

    mode: int = RACE
    temp: int = TEMP_NORMAL
    drs: bool = True
    hold: int = -1
    illegal: int = 0
    void: int = 0
    harmful: int = 0
    left_laps: int = 0
    messages: list[Message] = field(default_factory=list)
    stops: list[tuple[int, int]] = field(default_factory=list)
    last_called: dict[tuple[str, object], int] = field(default_factory=dict)

    def call(self, command: Command, scenario: Scenario, race: Race, state: RaceState, row: int = 0) -> OnTrack:
        """Apply a command to the next lap of the race in row `row` of the batch, and log it.

        Raises:
            BadCommand: It names our own car, or a car that is not in this race.
        """
        verb, word, lap = command.verb, command.word, state.lap + 1
        if verb == "STAY_OUT":  # most laps
            return _on_track(-1, self.mode, self.temp, self.drs, False, False, self.hold, -1)
        car = scenario.column(command.car) if command.car else -1
        if command.car and car <= EGO:
            others = ", ".join(str(n) for n in sorted(scenario.numbers[1:]))
            raise BadCommand(f"{verb} {command.car}: no opponent has that number. Valid: {others}.")
        pit, attack, defend, let = -1, False, False, -1
        void = verb in REPEAT_AFTER_LAPS and lap - self.last_called.get((verb, word or car),
                                                                        -99) <= REPEAT_AFTER_LAPS[verb]
        self.last_called[verb, word or car] = lap
        if verb == "PIT_NOW":
            pit = COMPOUNDS.index(word)
        elif verb == "RECOMMEND_PIT":
            pit = drivers_choice(scenario, race, state, row)
        elif verb == "SET_MODE":
            void = self.mode == MODES.index(word) and self.hold < 0
            self.mode, self.hold = MODES.index(word), -1
        elif verb == "MANAGE_TYRE_TEMP":
            void = self.temp == TEMPS.index(word)
            self.temp = TEMPS.index(word)
        elif verb == "DRS_PERMISSION":
            void = self.drs == (word == "on")
            self.drs = word == "on"
        elif verb == "ATTACK_AHEAD":
            attack, self.hold = True, -1
            void = state.status[row] != GREEN or (state.gap_ahead_s[row, EGO] > NEAR_S and lap > 1)
        elif verb == "DEFEND_POSITION":
            defend = True
            void = state.status[row] != GREEN or (lap > 1 and gap_behind_s(state, row) > NEAR_S)
        elif verb == "HOLD_GAP":
            self.hold = car
            distance = state.elapsed_s[row, EGO] - state.elapsed_s[row, car]
            void = state.out[row, car] > 0 or not 0 <= distance < HOLD_NEAR_S
        elif verb == "LET_BY":
            let, behind_s = car, gap_behind_s(state, row)
            distance = state.elapsed_s[row, car] - state.elapsed_s[row, EGO]
            right_behind = behind_s < YIELD_WITHIN_S and distance == behind_s
            self.harmful += bool(right_behind)
            void = not right_behind
        elif verb in MESSAGE_VERBS:
            self.messages.append(Message(lap, verb, command.text))
        self.void += bool(void)
        if pit >= 0:
            self._stop(lap, pit, int(state.compound[row, EGO]))
        return self.on_track(pit, attack, defend, let)

    def on_track(self, pit: int = -1, attack: bool = False, defend: bool = False, let: int = -1) -> OnTrack:
        """The calls of a lap under the current settings."""
        return _on_track(pit, self.mode, self.temp, self.drs, attack, defend, self.hold, let)

    def _stop(self, lap: int, compound: int, old: int) -> None:
        again = bool(self.stops) and lap - self.stops[-1][0] <= 2
        self.harmful += again and (old > HARD) == (compound > HARD)
        self.stops.append((lap, compound))


@cache
def _on_track(pit: int, mode: int, temp: int, drs: bool, attack: bool, defend: bool, hold: int, let: int) -> OnTrack:
    return OnTrack(pit, int(drive_code(mode, temp, drs, attack, defend)), hold, let)


def gap_behind_s(state: RaceState, row: int = 0) -> float:
    """Gap to the next car behind ours at the line [s]; 999 without one."""
    gaps = state.elapsed_s[row] - state.elapsed_s[row, EGO]
    behind = gaps[(gaps > 0) & (state.out[row] == 0)]
    return float(behind.min()) if len(behind) else 999.0


def drivers_choice(scenario: Scenario, race: Race, state: RaceState, row: int = 0) -> int:
    """The driver's choice on RECOMMEND_PIT: the compound to stop for, or -1. The driver feels the true tyre wear."""
    water = float(wetness_now(race, state)[row])
    compound, left = int(state.compound[row, EGO]), scenario.laps - state.lap - 1
    if water >= SLICK_INTER_CROSSOVER:
        right = WET if water > INTER_WET_CROSSOVER else INTER
        return right if (compound <= HARD) != (right <= HARD) and left >= 2 else -1
    worn = state.wear_laps[row, EGO] > state.cliff_laps[row, EGO] - WORN_WITHIN_LAPS * scenario.wear_scale
    owed = scenario.rule and bin(int(state.used[row, EGO]) & 7).count("1") < 2 and not state.used[row, EGO] & 24
    wrong = compound > HARD
    if not (wrong or (worn and left >= 2) or (owed and (state.status[row] != GREEN or left <= 1))):
        return -1
    life = np.array(scenario.circuit.cliff_laps) / scenario.wear_scale
    lasting = [c for c in (SOFT, MEDIUM, HARD) if life[c] >= left] or [HARD]
    fit = [c for c in lasting if c != compound] if owed else lasting
    return (fit or [HARD if compound != HARD else MEDIUM])[0]
