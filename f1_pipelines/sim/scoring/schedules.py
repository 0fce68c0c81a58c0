"""Calls of our car for a whole race as one small integer a lap, and the races that many such schedules give."""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from f1_pipelines.sim.engine.drive import RACE, drive_code
from f1_pipelines.sim.engine.hashing import stable_hash
from f1_pipelines.sim.engine.parameters import GREEN
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.state import RaceState, new_state
from f1_pipelines.sim.engine.step import step
from f1_pipelines.sim.scenarios import OpponentPlans, Scenario, plans_of, repeat, setup_of, with_other_luck
from f1_pipelines.sim.scenarios.batch import single
from f1_pipelines.sim.scenarios.opponents import calls_with
from f1_pipelines.sim.scoring.outcome import Outcome, concatenate, outcome_of

MOST_CAR_LAPS = 200_000  # of a batch: 16 MB a table
NEAR_S = 2.0  # to attack or defend; further away there is nobody
NOTHING, PIT, MODE, TEMP, ATTACK, DEFEND = 0, 1, 10, 20, 30, 31  # PIT + compound, MODE + mode, TEMP + temperature


def laid_out(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Schedules (K, L) -> compound to change to or -1, drive of each lap; (K, L) both."""
    pit = np.where((codes >= PIT) & (codes < PIT + 5), codes - PIT, -1)
    mode, temp = np.full(len(codes), RACE), np.zeros(len(codes), dtype=np.int64)
    drive = np.empty(codes.shape, dtype=np.int64)
    for lap in range(codes.shape[1]):
        code = codes[:, lap]
        mode = np.where((code >= MODE) & (code < MODE + 6), code - MODE, mode)
        temp = np.where((code >= TEMP) & (code < TEMP + 3), code - TEMP, temp)
        drive[:, lap] = drive_code(mode, temp, True, code == ATTACK, code == DEFEND)
    return pit, drive


class Copies:
    """One scenario, raced again and again with other calls of ours."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.setup, self.plans = scenario, setup_of([scenario]), plans_of([scenario])
        self.rival = max(scenario.column(scenario.rival), 0)
        self._race = prepare(self.setup)

    def drive(self, codes: np.ndarray) -> tuple[Outcome, np.ndarray]:
        """The facts of each schedule (K, L) in the race as it was, and how many of its calls were void, (K,)."""
        facts, void = zip(*(self._driven(self._race, self.plans, part, np.zeros(len(part), dtype=int))
                            for part in self._parts(codes, self._race.cars)), strict=True)
        return concatenate(facts), np.concatenate(void)

    def drive_alone(self, codes: np.ndarray) -> Outcome:
        """The facts of each schedule with nobody else on track."""
        race = prepare(single(self.setup))
        return concatenate([self._driven(race, self.plans.alone, part, np.zeros(len(part), dtype=int))[0]
                            for part in self._parts(codes, 1)])

    def drive_again(self, codes: np.ndarray, times: int) -> Outcome:
        """The facts of each schedule with the luck of laps and stops drawn anew `times` times, (K * times,)."""
        seeds = [stable_hash("luck", self.scenario.race_seed, k) for k in range(times)]
        zeros = np.zeros(times, dtype=int)
        drawn = prepare(self.setup.take(zeros, seeds=np.array(seeds)))
        lucky = with_other_luck(repeat(self._race, zeros), drawn)
        return concatenate([self._driven(lucky, self.plans, np.repeat(part, times, axis=0),
                                         np.tile(np.arange(times), len(part)))[0]
                            for part in self._parts(codes, self._race.cars * times)])

    def _driven(self, race: Race, plans: OpponentPlans, codes: np.ndarray, of: np.ndarray) -> tuple[Outcome,
                                                                                                    np.ndarray]:
        race = repeat(race, of)
        history = drive_out(race, plans.take(0 * of), *laid_out(codes))
        return outcome_of(race, history, np.full(len(codes), self.rival)), void_calls(codes, history)

    def _parts(self, codes: np.ndarray, cars: int) -> list[np.ndarray]:
        """Schedules in pieces that keep the tables of a batch in bounds."""
        step = max(1, MOST_CAR_LAPS // (cars * codes.shape[1]))
        return [codes[at:at + step] for at in range(0, len(codes), step)]


def void_calls(codes: np.ndarray, history: list[RaceState]) -> np.ndarray:
    """(K,) calls that could do nothing: to attack nobody, to set what is set."""
    void, mode, temp = np.zeros(len(codes), dtype=int), np.full(len(codes), MODE + RACE), np.full(len(codes), TEMP)
    for lap, before in enumerate(history[:-1]):
        code = codes[:, lap]
        modes, temps = (code >= MODE) & (code < MODE + 6), (code >= TEMP) & (code < TEMP + 3)
        nobody = (before.status != GREEN) | ((before.gap_ahead_s[:, 0] > NEAR_S) & (lap > 0))
        void += (modes & (code == mode)) | (temps & (code == temp)) | ((code == ATTACK) & nobody)
        if (code == DEFEND).any():
            behind = before.elapsed_s - before.elapsed_s[:, :1]
            far = np.where(behind > 0, behind, 999.0).min(axis=1) > NEAR_S
            void += (code == DEFEND) & ((before.status != GREEN) | (far & (lap > 0)))
        mode, temp = np.where(modes, code, mode), np.where(temps, code, temp)
    return void


def drive_out(race: Race, plans: OpponentPlans, pit: np.ndarray, drive: np.ndarray) -> list[RaceState]:
    """States of races driven with given calls, (K, L) both."""
    state = new_state(race)
    history = [state]
    while state.lap < race.laps:
        at = state.lap
        state = step(race, state, calls_with(race, state, plans, pit[:, at], drive[:, at]))
        history.append(state)
    return history


@lru_cache(maxsize=64)
def copies_of(scenario: Scenario) -> Copies:
    """The copies of a scenario, kept for a while."""
    return Copies(scenario)
