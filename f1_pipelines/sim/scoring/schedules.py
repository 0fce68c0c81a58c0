"""Schedules: our commands for a whole race as one integer per lap, and batches of races driven by them."""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from f1_pipelines.sim.engine.classification import RESULT
from f1_pipelines.sim.engine.compiled import Record, Records, compiled
from f1_pipelines.sim.engine.drive import ATTACK_BIT, DEFEND_BIT, MODES, RACE, TEMP_BIT, TEMP_NORMAL, TEMPS
from f1_pipelines.sim.engine.hashing import stable_hash
from f1_pipelines.sim.engine.parameters import COMPOUNDS, GREEN
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.state import RaceState, new_state
from f1_pipelines.sim.engine.tables import Tables, record
from f1_pipelines.sim.scenarios import EGO, OpponentPlans, Scenario, prepared, with_other_luck
from f1_pipelines.sim.scenarios.batch import single
from f1_pipelines.sim.scenarios.opponents import RaceLog, begin_log, drive_logged, last_wetness, race_log
from f1_pipelines.sim.scenarios.plans import PlanTables
from f1_pipelines.sim.scoring.outcome import OUTCOME, add_lap, finish

NEAR_S = 2.0  # largest gap to attack or defend
NOTHING, PIT, MODE, TEMP, ATTACK, DEFEND = 0, 1, 10, 20, 30, 31  # PIT + compound, MODE + mode, TEMP + temperature
COMMANDS = record("", "void mode temp")  # void commands so far, and what holds
_COMPOUNDS, _MODES, _TEMPS = len(COMPOUNDS), len(MODES), len(TEMPS)


class ScenarioReplays:
    """One scenario replayed with different schedules of our car."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.rival = scenario, max(scenario.column(scenario.rival), 0)
        self._race, self.plans, self._start = prepared(scenario)
        self._lucky: dict[int, tuple[Race, RaceState]] = {}

    def drive(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Outcomes of schedules (K, L) in the race itself, (K,) OUTCOME, and their numbers of void commands, (K,)."""
        return drive_schedules(self._race, self._start, self.plans, codes, self.rival)

    def drive_alone(self, codes: np.ndarray) -> np.ndarray:
        """Outcomes of schedules (K, L) without other cars, (K,) OUTCOME."""
        race = prepare(single(self._race.setup))
        return drive_schedules(race, new_state(race), self.plans.alone, codes, 0)[0]

    def drive_again(self, codes: np.ndarray, times: int) -> np.ndarray:
        """Outcomes of schedules (K, L) with `times` new draws of lap and stop noise, (K * times,) OUTCOME."""
        zeros = np.zeros(times, dtype=np.int64)
        if times not in self._lucky:
            seeds = [stable_hash("luck", self.scenario.race_seed, k) for k in range(times)]
            lucky = with_other_luck(self._race, prepare(self._race.setup.take(zeros, seeds=np.array(seeds))))
            self._lucky[times] = lucky, new_state(lucky)
        return drive_schedules(*self._lucky[times], self.plans.take(zeros), codes, self.rival)[0]


def drive_schedules(race: Race, start: RaceState, plans: OpponentPlans, codes: np.ndarray,
                    rival: int) -> tuple[np.ndarray, np.ndarray]:
    """Drive each of K schedules in each of E races.

    A schedule begins in the lap in which it departs from the one before it, so order them by their first laps.

    Args:
        race: The E races.
        start: Their state before the first lap.
        plans: Their opponents' plans.
        codes: Schedules, (K, L).
        rival: Column of the car to beat, 0 for none.

    Returns:
        Outcomes, (K * E,) OUTCOME, schedule by schedule, and numbers of void commands, (K * E,).
    """
    outcomes, void = np.empty((len(codes), race.episodes), OUTCOME), np.empty((len(codes), race.episodes), np.int64)
    laps = race.laps - race.first
    _drive_schedules(race.tables, plans.tables, start.cars, start.races, np.ascontiguousarray(codes, dtype=np.int64),
                     rival, race_log(laps, race.cars), np.empty((laps + 1, 1, race.cars)), np.empty(laps + 1, OUTCOME),
                     np.empty(laps + 1, COMMANDS), np.empty((1, race.cars), RESULT), outcomes, void)
    return outcomes.ravel(), void.ravel()


@compiled
def _drive_schedules(tables: Tables, plans: PlanTables, start: Records, start_races: Records, codes: np.ndarray,
                     rival: int, log: RaceLog, lines: np.ndarray, costs: Records, commands: Records, results: Records,
                     outcomes: Records, void: np.ndarray) -> None:
    """Fill `outcomes` and `void`, (K, E). The other arrays hold the last race driven, by lap."""
    last = codes.shape[1] - 1
    for episode in range(len(start)):
        t, p = tables.row_of[episode], plans.row_of[episode]
        begin_log(log, start, start_races, episode)
        _begin(costs[0], commands[0])
        _record_line(log.cars, 0, lines, 0)
        for schedule in range(len(codes)):
            for row in range(_shared_laps(codes, schedule), last + 1):
                lap, code, now, after = tables.first + row + 1, codes[schedule, row], commands[row], commands[row + 1]
                status, cost = log.races[row].status, costs[row + 1]
                after.void = now.void + is_void(code, now.mode, now.temp, lap, log.cars, row, status)
                after.mode = code - MODE if MODE <= code < MODE + _MODES else now.mode
                after.temp = code - TEMP if TEMP <= code < TEMP + _TEMPS else now.temp
                _decode(code, after.mode, after.temp, log.ours[row])
                drive_logged(tables, t, plans, p, row, last_wetness(tables, t, lap), log)
                costs[row + 1] = costs[row]
                add_lap(tables, t, lap, log.cars[row, EGO], status, log.new_cars[row, EGO], cost)
                _record_line(log.new_cars, row, lines, row + 1)
            outcomes[schedule, episode], void[schedule, episode] = costs[last + 1], commands[last + 1].void
            finish(tables, t, tables.first + last + 1, lines, 0, start[episode, EGO].fuel_kg, log.new_cars, last, rival,
                   results, outcomes[schedule, episode])


@compiled
def _record_line(cars: Records, row: int, lines: np.ndarray, at: int) -> None:
    """Copy the times of row `row` of the states to row `at` of the lines."""
    for k in range(cars.shape[1]):
        lines[at, 0, k] = cars[row, k].elapsed_s


@compiled
def _begin(cost: Record, command: Record) -> None:
    """Set what a race has cost before its first lap, and what holds then."""
    cost.tyre_loss_s, cost.fuel_slow_laps, cost.ran_dry = 0.0, 0.0, False
    command.void, command.mode, command.temp = 0, RACE, TEMP_NORMAL


@compiled
def _shared_laps(codes: np.ndarray, schedule: int) -> int:
    """Laps that a schedule shares with the one before it."""
    row = 0
    while schedule and row < codes.shape[1] and codes[schedule, row] == codes[schedule - 1, row]:
        row += 1
    return row


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
def is_void(code: int, mode: int, temp: int, lap: int, cars: Records, row: int, status: int) -> bool:
    """Whether a command has no possible effect.

    Args:
        code: The command.
        mode, temp: What holds already.
        lap: The coming lap.
        cars: State before it, in row `row`, (?, N).
        row: Row of the race in `cars`.
        status: Its track status.
    """
    if code == ATTACK:
        return bool(status != GREEN or (cars[row, EGO].gap_ahead_s > NEAR_S and lap > 1))
    if code == DEFEND:
        return bool(status != GREEN or (_gap_behind_s(cars, row) > NEAR_S and lap > 1))
    return code == MODE + mode or code == TEMP + temp


@compiled
def _gap_behind_s(cars: Records, row: int) -> float:
    gap_s = 999.0
    for k in range(1, cars.shape[1]):
        behind_s = cars[row, k].elapsed_s - cars[row, EGO].elapsed_s
        if behind_s > 0:
            gap_s = min(gap_s, behind_s)
    return gap_s


@lru_cache(maxsize=64)
def replays_of(scenario: Scenario) -> ScenarioReplays:
    """The replays of a scenario, cached."""
    return ScenarioReplays(scenario)
