"""Schedules: our commands for a whole race as one integer per lap, and batches of races driven by them."""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from f1_pipelines.sim.engine.classification import RESULT
from f1_pipelines.sim.engine.compiled import Record, Records, compiled
from f1_pipelines.sim.engine.drive import ATTACK_BIT, DEFEND_BIT, RACE, TEMP_BIT
from f1_pipelines.sim.engine.hashing import stable_hash
from f1_pipelines.sim.engine.lap import CALL, CAR_LAP, drive_lap
from f1_pipelines.sim.engine.parameters import GREEN
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.state import CAR_STATE, RACE_STATE, RaceState, copy_car, copy_race, new_state
from f1_pipelines.sim.engine.tables import Tables
from f1_pipelines.sim.engine.traffic import LINE
from f1_pipelines.sim.scenarios import EGO, OpponentPlans, Scenario, prepared, with_other_luck
from f1_pipelines.sim.scenarios.batch import single
from f1_pipelines.sim.scenarios.opponents import fill_calls, last_wetness
from f1_pipelines.sim.scenarios.plans import PlanTables
from f1_pipelines.sim.scoring.outcome import OUTCOME, add_lap, finish

NEAR_S = 2.0  # largest gap to attack or defend
NOTHING, PIT, MODE, TEMP, ATTACK, DEFEND = 0, 1, 10, 20, 30, 31  # PIT + compound, MODE + mode, TEMP + temperature
_COMPOUNDS, _MODES, _TEMPS = 5, 6, 3


class ScenarioReplays:
    """One scenario replayed with different schedules of our car."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.rival = scenario, max(scenario.column(scenario.rival), 0)
        self._race, self.plans, start = prepared(scenario)
        self._trunks = Trunks(start, self._race.laps + 1)
        self._lucky: dict[int, tuple[Race, Trunks]] = {}

    def drive(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Outcomes of schedules (K, L) in the race itself, (K,) OUTCOME, and their numbers of void commands, (K,)."""
        return _drive(self._race, self.plans, self._trunks, codes, np.zeros(len(codes), dtype=np.int64), self.rival)

    def drive_branches(self, trunk: np.ndarray, codes: np.ndarray, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `drive`, for schedules (K, L) that equal `trunk` (L,) before the laps `begins` (K,), from 0."""
        start = np.zeros(1, dtype=np.int64)
        _drive(self._race, self.plans, self._trunks, trunk[None], start, self.rival, record=True)
        return _drive(self._race, self.plans, self._trunks, codes, begins, self.rival)

    def drive_alone(self, codes: np.ndarray) -> np.ndarray:
        """Outcomes of schedules (K, L) without other cars, (K,) OUTCOME."""
        return drive_schedules(prepare(single(self._race.setup)), self.plans.alone, codes, 0)[0]

    def drive_again(self, codes: np.ndarray, times: int) -> np.ndarray:
        """Outcomes of schedules (K, L) with `times` new draws of lap and stop noise, (K * times,) OUTCOME."""
        zeros = np.zeros(times, dtype=np.int64)
        if times not in self._lucky:
            seeds = [stable_hash("luck", self.scenario.race_seed, k) for k in range(times)]
            lucky = with_other_luck(self._race, prepare(self._race.setup.take(zeros, seeds=np.array(seeds))))
            self._lucky[times] = lucky, Trunks(new_state(lucky), 1)
        race, trunks = self._lucky[times]
        return _drive(race, self.plans.take(zeros), trunks, codes, np.zeros(len(codes), dtype=np.int64), self.rival)[0]


class Trunks:
    """States of E races at each of R laps, and what they have cost by then: where schedules begin."""

    def __init__(self, start: RaceState, laps: int) -> None:
        """
        Args:
            start: State of the E races before their first lap.
            laps: R, 1 for the start alone.
        """
        episodes, cars = start.cars.shape
        shape = (episodes, laps)
        self.cars, self.races = np.empty((*shape, cars), CAR_STATE), np.empty(shape, RACE_STATE)
        self.outcomes, self.void = np.zeros(shape, OUTCOME), np.zeros(shape, dtype=np.int64)
        self.cars[:, 0], self.races[:, 0] = start.cars, start.races


def drive_schedules(race: Race, plans: OpponentPlans, codes: np.ndarray, rival: int) -> tuple[np.ndarray, np.ndarray]:
    """Drive each of K schedules in each of E races.

    Args:
        race: The E races.
        plans: Their opponents' plans.
        codes: Schedules, (K, L).
        rival: Column of the car to beat, 0 for none.

    Returns:
        Outcomes, (K * E,) OUTCOME, schedule by schedule, and numbers of void commands, (K * E,).
    """
    return _drive(race, plans, Trunks(new_state(race), 1), codes, np.zeros(len(codes), dtype=np.int64), rival)


def _drive(race: Race, plans: OpponentPlans, trunks: Trunks, codes: np.ndarray, begins: np.ndarray, rival: int,
           record: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """As `drive_schedules`, from the laps `begins` (K,) of `trunks`, whose later laps it fills with `record`."""
    count, one = len(codes) * race.episodes, (1, race.cars)
    outcomes, void = np.empty(count, OUTCOME), np.empty(count, dtype=np.int64)
    _drive_schedules(race.tables, plans.tables, trunks.cars, trunks.races, trunks.outcomes, trunks.void,
                     np.ascontiguousarray(codes, dtype=np.int64), begins, rival, record, np.empty(one, CAR_STATE),
                     np.empty(1, RACE_STATE), np.empty(one, CAR_STATE), np.empty(1, RACE_STATE), np.empty(1, CALL),
                     np.empty(one, CALL), np.empty(one, CAR_LAP), np.empty(race.cars, LINE),
                     np.empty((race.laps - race.first + 1, 1, race.cars)), np.empty(one, RESULT), outcomes, void)
    return outcomes, void


@compiled
def _drive_schedules(tables: Tables, plans: PlanTables, trunk_cars: Records, trunk_races: Records,
                     trunk_outcomes: Records, trunk_void: np.ndarray, codes: np.ndarray, begins: np.ndarray, rival: int,
                     record: bool, cars: Records, races: Records, new_cars: Records, new_races: Records, ours: Records,
                     calls: Records, laps: Records, line: Records, lines: Records, results: Records,
                     outcomes: Records, void: np.ndarray) -> None:
    for k in range(len(outcomes)):
        schedule, episode = k // len(trunk_cars), k % len(trunk_cars)
        t, p, begin = tables.row_of[episode], plans.row_of[episode], begins[schedule]
        for row in range(begin + 1):
            for car in range(lines.shape[2]):
                lines[row, 0, car] = trunk_cars[episode, row, car].elapsed_s
        for car in range(lines.shape[2]):
            copy_car(trunk_cars[episode, begin, car], cars[0, car])
        copy_race(trunk_races[episode, begin], races[0])
        outcomes[k], void[k] = trunk_outcomes[episode, begin], trunk_void[episode, begin]
        mode, temp = RACE, 0
        for row in range(begin):
            mode, temp = _lasting(codes[schedule, row], mode, temp)
        for row in range(begin, len(lines) - 1):
            lap, code = tables.first + row + 1, codes[schedule, row]
            void[k] += is_void(code, mode, temp, lap, cars, races[0].status)
            mode, temp = _lasting(code, mode, temp)
            _decode(code, mode, temp, ours[0])
            fill_calls(tables, t, plans, p, lap, cars, races, 0, last_wetness(tables, t, lap), ours[0], calls)
            drive_lap(tables, t, lap, cars, races, 0, calls, laps, line, new_cars, new_races)
            add_lap(tables, t, lap, cars[0, EGO], races[0].status, new_cars[0, EGO], outcomes[k])
            cars, new_cars, races, new_races = new_cars, cars, new_races, races
            for car in range(lines.shape[2]):
                lines[row + 1, 0, car] = cars[0, car].elapsed_s
            if record:
                for car in range(lines.shape[2]):
                    copy_car(cars[0, car], trunk_cars[episode, row + 1, car])
                copy_race(races[0], trunk_races[episode, row + 1])
                trunk_outcomes[episode, row + 1], trunk_void[episode, row + 1] = outcomes[k], void[k]
        finish(tables, t, tables.first + len(lines) - 1, lines, 0, trunk_cars[episode, 0, EGO].fuel_kg, cars, 0, rival,
               results, outcomes[k])


@compiled
def _lasting(code: int, mode: int, temp: int) -> tuple[int, int]:
    """Mode and temperature after a command."""
    if MODE <= code < MODE + _MODES:
        return code - MODE, temp
    return mode, code - TEMP if TEMP <= code < TEMP + _TEMPS else temp


@compiled
def is_stop(code: int) -> bool:
    """Whether a code is a stop."""
    return PIT <= code < PIT + _COMPOUNDS


@compiled
def _decode(code: int, mode: int, temp: int, ours: Record) -> None:
    """Our call for a code of a schedule, with the mode and temperature that hold."""
    ours.pit = code - PIT if is_stop(code) else -1
    ours.drive = mode + temp * TEMP_BIT + (code == ATTACK) * ATTACK_BIT + (code == DEFEND) * DEFEND_BIT
    ours.hold_gap = ours.let_by = -1


@compiled
def is_void(code: int, mode: int, temp: int, lap: int, cars: Records, status: int) -> bool:
    """Whether a command has no possible effect.

    Args:
        code: The command.
        mode, temp: What holds already.
        lap: The coming lap.
        cars: State before it, (1, N).
        status: Its track status.
    """
    if code == ATTACK:
        return bool(status != GREEN or (cars[0, EGO].gap_ahead_s > NEAR_S and lap > 1))
    if code == DEFEND:
        return bool(status != GREEN or (_gap_behind_s(cars) > NEAR_S and lap > 1))
    return code == MODE + mode or code == TEMP + temp


@compiled
def _gap_behind_s(cars: Records) -> float:
    gap_s = 999.0
    for k in range(1, cars.shape[1]):
        behind_s = cars[0, k].elapsed_s - cars[0, EGO].elapsed_s
        if behind_s > 0:
            gap_s = min(gap_s, behind_s)
    return gap_s


@lru_cache(maxsize=64)
def replays_of(scenario: Scenario) -> ScenarioReplays:
    """The replays of a scenario, cached."""
    return ScenarioReplays(scenario)
