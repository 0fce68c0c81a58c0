"""Schedules: our commands for a whole race as one integer per lap, and batches of races driven by them."""
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

MOST_CAR_LAPS = 200_000  # of a batch: 16 MB per table
NEAR_S = 2.0  # largest gap to attack or defend
NOTHING, PIT, MODE, TEMP, ATTACK, DEFEND = 0, 1, 10, 20, 30, 31  # PIT + compound, MODE + mode, TEMP + temperature


def decode_schedules(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Schedules (K, L) -> (K, L) compounds to change to, -1 for none, and (K, L) drive codes."""
    pit = np.where((codes >= PIT) & (codes < PIT + 5), codes - PIT, -1)
    mode, temp = np.full(len(codes), RACE), np.zeros(len(codes), dtype=np.int64)
    drive = np.empty(codes.shape, dtype=np.int64)
    for lap in range(codes.shape[1]):
        code = codes[:, lap]
        mode = np.where((code >= MODE) & (code < MODE + 6), code - MODE, mode)
        temp = np.where((code >= TEMP) & (code < TEMP + 3), code - TEMP, temp)
        drive[:, lap] = drive_code(mode, temp, True, code == ATTACK, code == DEFEND)
    return pit, drive


class ScenarioReplays:
    """One scenario replayed with different schedules of our car."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.setup, self.plans = scenario, setup_of([scenario]), plans_of([scenario])
        self.rival = max(scenario.column(scenario.rival), 0)
        self._race = prepare(self.setup)

    def drive(self, codes: np.ndarray) -> tuple[Outcome, np.ndarray]:
        """Outcomes of schedules (K, L) in the race itself, and their numbers of void commands, (K,)."""
        outcome, void = zip(*(self._driven(self._race, self.plans, part, np.zeros(len(part), dtype=int))
                              for part in self._parts(codes, self._race.cars)), strict=True)
        return concatenate(outcome), np.concatenate(void)

    def drive_alone(self, codes: np.ndarray) -> Outcome:
        """Outcomes of schedules (K, L) without other cars."""
        race = prepare(single(self.setup))
        return concatenate([self._driven(race, self.plans.alone, part, np.zeros(len(part), dtype=int))[0]
                            for part in self._parts(codes, 1)])

    def drive_again(self, codes: np.ndarray, times: int) -> Outcome:
        """Outcomes of schedules (K, L) with `times` new draws of lap and stop noise, (K * times,)."""
        seeds = [stable_hash("luck", self.scenario.race_seed, k) for k in range(times)]
        zeros = np.zeros(times, dtype=int)
        drawn = prepare(self.setup.take(zeros, seeds=np.array(seeds)))
        lucky = with_other_luck(repeat(self._race, zeros), drawn)
        return concatenate([self._driven(lucky, self.plans, np.repeat(part, times, axis=0),
                                         np.tile(np.arange(times), len(part)))[0]
                            for part in self._parts(codes, self._race.cars * times)])

    def _driven(self, race: Race, plans: OpponentPlans, codes: np.ndarray, episodes: np.ndarray) -> tuple[Outcome,
                                                                                                          np.ndarray]:
        race = repeat(race, episodes)
        history = drive_schedules(race, plans.take(0 * episodes), *decode_schedules(codes))
        return outcome_of(race, history, np.full(len(codes), self.rival)), void_calls(codes, history)

    def _parts(self, codes: np.ndarray, cars: int) -> list[np.ndarray]:
        """Split schedules so that the tables of a batch stay within `MOST_CAR_LAPS`."""
        step = max(1, MOST_CAR_LAPS // (cars * codes.shape[1]))
        return [codes[at:at + step] for at in range(0, len(codes), step)]


def void_calls(codes: np.ndarray, history: list[RaceState]) -> np.ndarray:
    """(K,) number of commands without a possible effect."""
    void, mode, temp = np.zeros(len(codes), dtype=int), np.full(len(codes), MODE + RACE), np.full(len(codes), TEMP)
    for lap, before in enumerate(history[:-1]):
        code = codes[:, lap]
        modes, temps = (code >= MODE) & (code < MODE + 6), (code >= TEMP) & (code < TEMP + 3)
        out_of_reach = (before.status != GREEN) | ((before.gap_ahead_s[:, 0] > NEAR_S) & (lap > 0))
        void += (modes & (code == mode)) | (temps & (code == temp)) | ((code == ATTACK) & out_of_reach)
        if (code == DEFEND).any():
            behind = before.elapsed_s - before.elapsed_s[:, :1]
            far = np.where(behind > 0, behind, 999.0).min(axis=1) > NEAR_S
            void += (code == DEFEND) & ((before.status != GREEN) | (far & (lap > 0)))
        mode, temp = np.where(modes, code, mode), np.where(temps, code, temp)
    return void


def drive_schedules(race: Race, plans: OpponentPlans, pit: np.ndarray, drive: np.ndarray) -> list[RaceState]:
    """States of races driven with compounds `pit` and drive codes `drive`, (K, L) each."""
    state = new_state(race)
    history = [state]
    while state.lap < race.laps:
        at = state.lap
        state = step(race, state, calls_with(race, state, plans, pit[:, at], drive[:, at]))
        history.append(state)
    return history


@lru_cache(maxsize=64)
def replays_of(scenario: Scenario) -> ScenarioReplays:
    """The replays of a scenario, cached."""
    return ScenarioReplays(scenario)
