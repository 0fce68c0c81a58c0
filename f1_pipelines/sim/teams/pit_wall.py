"""The pit walls of a whole field: each follows a plan, and reacts to rain, safety cars and red flags.

They see what real ones see: the track in the previous lap, the status of the coming lap, the age of their own tyres
and how long such a set usually lasts. They never see coming rain, how long a period will last, or when a set will fail.
"""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim import Calls, Race, RaceState
from f1_pipelines.sim.engine.parameters import HARD, INTER, MEDIUM, RED, SC, SOFT, VSC, WET
from f1_pipelines.sim.engine.weather import DAMP, INTER_WET_CROSSOVER, SLICK_INTER_CROSSOVER

# docs/physics.md#safety-car: share of cars that stop, by laps on the set (0-4, 5-8, 9-12, 13-16, more).
STOP_UNDER_SC = np.array([0.10, 0.43, 0.52, 0.66, 0.70])
STOP_UNDER_VSC = np.array([0.01, 0.02, 0.19, 0.11, 0.20])
LATER_UNDER_SC = 0.25  # factor in the second lap of a period; 0 later, when the queue has formed
WORN, STILL_GOOD = 0.93, 0.45  # shares of the usual cliff: a set is worn; too good for an unplanned stop
INTER_TO_WET, WET_TO_INTER, INTER_TO_SLICK = INTER_WET_CROSSOVER + 0.02, INTER_WET_CROSSOVER - 0.08, \
    SLICK_INTER_CROSSOVER - 0.04  # wetness at which a change pays for the stop
FEEL = 0.07  # wetness by which teams differ in judging the track
PROMPT = 0.6  # chance per lap to react to the weather (docs/physics.md#rain: 80 % of a field within 2-5 laps)
_RAIN_TYRES = (1 << INTER) | (1 << WET)


class PitWall:
    """Calls for every car of a prepared batch, lap by lap in order."""

    def __init__(self, race: Race, plan_laps: np.ndarray, plan_compounds: np.ndarray, luck: np.ndarray,
                 feel: np.ndarray, two_compounds: np.ndarray):
        """
        Args:
            race: The batch.
            plan_laps: Lap of each planned stop, 0 for none, (stops, E, N).
            plan_compounds: Compound fitted at each planned stop, (stops, E, N).
            luck: Uniform draws for matters of opinion, (L, E, N).
            feel: How early a team calls the track wet, -1 to 1, (E, N).
            two_compounds: Whether the two-compound rule applies, (E,).
        """
        self._plan_laps, self._plan_compounds = plan_laps, plan_compounds
        self._luck, self._feel, self._rule = luck, FEEL * feel, two_compounds[:, None]
        self._planned = (plan_laps > 0).sum(axis=0)
        self._wet_so_far = np.logical_or.accumulate(race.wetness > DAMP, axis=0)

    def __call__(self, race: Race, state: RaceState) -> Calls:
        row = race.row(state.lap + 1)
        lap, left = state.lap + 1, race.race_laps[:, None] - (state.lap + 1)  # laps to go after the coming one
        water = self._water(race, row)
        usual_cliff = np.take_along_axis(race.tyre("cliff_laps"), state.compound, axis=1)
        worn = state.wear_laps > WORN * usual_cliff
        dry = ~self._wet_so_far[max(row - 1, 0)][:, None] & (state.used & _RAIN_TYRES == 0)

        nth = np.minimum(state.stops, len(self._plan_laps) - 1)[None]
        planned_lap = np.take_along_axis(self._plan_laps, nth, axis=0)[0]
        on_plan = dry & (state.stops < self._planned)
        planned = on_plan & (lap >= planned_lap) & (left >= 3)
        rain = self._rain_calls(state, water) & (self._luck[row] < PROMPT) & (left >= 2)
        opportune = self._opportune(race, state, row, on_plan, worn, usual_cliff) & (left >= 5)
        one_compound = dry & self._rule & (state.used == 1 << state.compound)
        last_chance = one_compound & (left >= 1) & (left <= 3)
        stop = planned | rain | opportune | last_chance | (worn & (left >= 4))

        compound = self._slick(race, state, left)
        planned_compound = np.take_along_axis(self._plan_compounds, nth, axis=0)[0]
        compound = np.where(on_plan, planned_compound, compound)
        other = np.where(compound == HARD, MEDIUM, HARD)
        compound = np.where(one_compound & (compound == state.compound), other, compound)
        compound = np.where(water > SLICK_INTER_CROSSOVER, INTER, compound)
        compound = np.where(water > INTER_TO_WET, WET, compound)
        return Calls(pit=np.where(stop & state.running, compound, -1))

    def _water(self, race: Race, row: int) -> np.ndarray:
        """Wetness that each team expects: the last two laps extrapolated, plus its own error, (E, N)."""
        now = race.wetness[max(row - 1, 0)]
        before = race.wetness[max(row - 2, 0)]
        return np.maximum(2.0 * now - before, 0.0)[:, None] + self._feel

    @staticmethod
    def _rain_calls(state: RaceState, water: np.ndarray) -> np.ndarray:
        slick = state.compound <= HARD
        return np.where(slick, water > SLICK_INTER_CROSSOVER, np.where(
            state.compound == INTER, (water > INTER_TO_WET) | (water < INTER_TO_SLICK), water < WET_TO_INTER))

    def _opportune(self, race: Race, state: RaceState, row: int, on_plan: np.ndarray, worn: np.ndarray,
                   usual_cliff: np.ndarray) -> np.ndarray:
        """Cheap stops on a closed track, by cars with a stop still to make or a half-worn set, (E, N) bool."""
        status, age = state.status[:, None], state.status_age[:, None]
        if not (status > 0).any():
            return np.zeros(state.out.shape, dtype=bool)
        band = np.clip((state.age_laps - 1) // 4, 0, len(STOP_UNDER_SC) - 1)
        early = np.where(age == 1, 1.0, np.where(age == 2, LATER_UNDER_SC, 0.0))
        chance = np.where(status == SC, STOP_UNDER_SC[band] * early,
                          np.where((status == VSC) & (age == 1), STOP_UNDER_VSC[band], 0.0))
        willing = on_plan | worn | (state.wear_laps > STILL_GOOD * usual_cliff)
        free = (status == RED) & (state.age_laps > 1)
        return free | (willing & (self._luck[row] < chance))

    @staticmethod
    def _slick(race: Race, state: RaceState, left: np.ndarray) -> np.ndarray:
        """The softest slick that lasts to the flag, soft only for the last quarter, (E, N)."""
        lasts = [WORN * race.tyre("cliff_laps")[:, compound:compound + 1] for compound in (SOFT, MEDIUM)]
        soft = (left <= lasts[0]) & (left <= 0.25 * race.race_laps[:, None])
        return np.where(soft, SOFT, np.where(left <= lasts[1], MEDIUM, HARD)) + np.zeros_like(state.compound)
