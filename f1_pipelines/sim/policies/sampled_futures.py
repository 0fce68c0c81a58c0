"""Futures sampled from a belief, and the outcomes of candidate plans in them.

A candidate is a plan with its own reactions (`Plan`). All candidates are driven in the same futures. Opponents have the
characters and plans known from inspections, else sampled ones.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np

from f1_pipelines.sim.engine.classification import used_one_slick
from f1_pipelines.sim.engine.compiled import Record, Records, compiled
from f1_pipelines.sim.engine.drive import ATTACK_BIT, DEFEND_BIT, RACE, TEMP_BIT
from f1_pipelines.sim.engine.lap import CALL
from f1_pipelines.sim.engine.parameters import GREEN, HARD, INTER, MEDIUM, SOFT, WET
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.state import RUNNING, RaceState, new_state
from f1_pipelines.sim.engine.tables import Tables, record
from f1_pipelines.sim.scenarios import EGO, OpponentPlans
from f1_pipelines.sim.scenarios.batch import single
from f1_pipelines.sim.scenarios.opponents import (
    TO_WET,
    RaceLog,
    begin_log,
    drive_logged,
    last_wetness,
    lasting_slick,
    race_log,
    rain_tyre,
    worn_out,
)
from f1_pipelines.sim.scenarios.plans import PlanTables
from f1_pipelines.sim.scenarios.scenario import MAX_LAPS
from f1_pipelines.sim.scoring.outcome import ran_dry, tyre_loss_s
from f1_pipelines.sim.scoring.stop_sets import LOST_S, PLACE_S, RIVAL_S

EGO_FIELDS = ("stops", "used", "wear_laps", "cliff_laps", "temp_c", "out", "fuel_kg", "compound", "offset_s", "slope_s",
              "age_laps")
DRY_S = 40.0  # cost of an empty tank beyond its time: dimensions fuel and operations
OUT_LOSS_S = 30.0  # time behind the leader that a car which is out is taken to have
TYRE_SHARE = 0.4  # of the time lost on tyres that costs beside the race time


@dataclass(frozen=True)
class Plan:
    """A candidate plan of our car from the next lap on."""

    stop_lap: int = 0  # lap at whose end to stop, 0: stop only in reaction
    compound: int = MEDIUM
    closed: bool = False  # stop earlier if the track closes
    to_inter: float = 0.28  # wetness at which to leave slicks; 9: never
    to_slick: float = 0.19
    mode: int = RACE
    mode_laps: int = 0  # laps in `mode`, then mode race
    temp: int = 0
    patience: int = 1  # minimum laps on rain tyres
    from_wet: float = 0.45  # wetness below which to change from wets to intermediates
    to_wet: float = TO_WET  # wetness above which to change from intermediates to wets
    attack: bool = False  # in the next lap
    defend: bool = False
    second_stop_lap: int = 0  # lap at whose end to stop again, 0: not
    second_compound: int = MEDIUM


_VALUES_OF = attrgetter(*(f.name for f in fields(Plan)))
PLAN = np.dtype([(f.name, {"int": "i8", "float": "f8", "bool": "?"}[str(f.type)]) for f in fields(Plan)])
FUTURE_OUTCOME = record("cost_s", "stop_lap stop_compound")  # as in `Outcomes`


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of K candidates in F futures, (K, F) each."""

    cost_s: np.ndarray
    stop_lap: np.ndarray  # lap of the next stop, 0: none
    stop_compound: np.ndarray  # compound of the next stop, -1: none


@dataclass(frozen=True, eq=False)
class SampledFutures:
    """F sampled races from the current lap on."""

    race: Race
    state: RaceState
    plans: OpponentPlans
    rival: np.ndarray  # (F,) column, 0 for none
    first: int
    water: float  # observed wetness of the last lap

    def head(self, count: int) -> SampledFutures:
        """The first `count` futures."""
        return self._take(np.arange(min(count, len(self.rival))))

    def tail(self, count: int) -> SampledFutures:
        """All but the first `count` futures."""
        return self._take(np.arange(count, len(self.rival)))

    def _take(self, episodes: np.ndarray) -> SampledFutures:
        return SampledFutures(self.race.take(episodes), self.state.take(episodes), self.plans.take(episodes),
                              self.rival[episodes], self.first, self.water)

    def alone(self) -> SampledFutures:
        """The same futures without other cars: fast, but without traffic and positions."""
        race = prepare(single(self.race.setup), first=self.first)
        ours = {name: getattr(self.state, name)[:, :1] for name in EGO_FIELDS}
        state = new_state(race).after(**ours, status_age=self.state.status_age)
        return SampledFutures(race, state, self.plans.alone, np.zeros_like(self.rival), self.first, self.water)

    def outcomes(self, candidates: Sequence[Plan]) -> Outcomes:
        """Drive each of K candidates in each of F futures."""
        race, laps = self.race, self.race.laps - self.race.first
        plans = np.array([_VALUES_OF(candidate) for candidate in candidates], PLAN)
        outcomes = np.empty((len(plans), race.episodes), FUTURE_OUTCOME)
        # Nobody reacts to water that dries up for good.
        is_wet = race.tables.lap_of_race["wetness"].any() or (self.state.compound > HARD).any()
        _drive_plans(race.tables, self.plans.tables, self.state.cars, self.state.races, self.rival,
                     self.water if is_wet else 0.0, max(race.laps / MAX_LAPS, 1.0), plans, race_log(laps, race.cars),
                     np.empty(1, CALL), np.empty(laps + 1), outcomes)
        return Outcomes(outcomes["cost_s"], outcomes["stop_lap"], outcomes["stop_compound"])


@compiled
def _drive_plans(tables: Tables, opponents: PlanTables, start: Records, start_races: Records, rivals: np.ndarray,
                 water: float, length: float, plans: Records, log: RaceLog, calls: Records, losses_s: np.ndarray,
                 outcomes: Records) -> None:
    """Drive each plan in each future. A race begins in the lap in which it departs from that of the plan before.

    Args:
        tables: Tables of the futures.
        opponents: The opponents' plans.
        start, start_races: State of the futures before the next lap.
        rivals: Column of the rival by future, 0 for none.
        water: Observed wetness of the last lap.
        length: Length of the race [sprints].
        plans: (K,) PLAN.
        log: Scratch, the last race driven.
        calls: Scratch, (1,) CALL.
        losses_s: Scratch, time lost before each lap of that race, (L + 1,).
        outcomes: Filled, (K, F) FUTURE_OUTCOME.
    """
    last, call = len(log.cars) - 1, calls[0]
    for future in range(len(start)):
        t, p = tables.row_of[future], opponents.row_of[future]
        race, losses_s[0] = tables.of_race[t], 0.0
        begin_log(log, start, start_races, future)
        for k in range(len(plans)):
            outcome, shared = outcomes[k, future], k > 0
            outcome.stop_lap, outcome.stop_compound = 0, -1
            for row in range(last + 1):
                lap, car, state = tables.first + row + 1, log.cars[row, EGO], log.races[row]
                wetness = water if row == 0 else last_wetness(tables, t, lap)
                _our_call(tables, t, opponents.full, lap, car, state, plans[k], start[future, EGO].stops, wetness, call)
                if call.pit >= 0 and outcome.stop_compound < 0:
                    outcome.stop_lap, outcome.stop_compound = lap, call.pit
                shared = shared and call.pit == log.ours[row].pit and call.drive == log.ours[row].drive
                if not shared:
                    log.ours[row] = call
                    drive_logged(tables, t, opponents, p, row, wetness, log)
                    losses_s[row + 1] = losses_s[row] + tyre_loss_s(
                        car, state.status, tables.lap_of_race[row, t].wetness, race, tables.engine[0])
                    if ran_dry(car, state.status, log.new_cars[row, EGO], race.fuel_burn):
                        losses_s[row + 1] += DRY_S * length
            outcome.cost_s = _cost_s(tables, t, log.new_cars, log.new_races, last, rivals[future], losses_s[last + 1],
                                     length)


@compiled
def _cost_s(tables: Tables, t: int, cars: Records, races: Records, row: int, rival: int, loss_s: float,
            length: float) -> float:
    """Cost of a finished race, close to the score [s].

    Args:
        tables: Tables of the futures.
        t: Row of the race in the tables.
        cars, races: Its final state, in row `row`.
        row: Row of the race in the states.
        rival: Column of the rival, 0 for none.
        loss_s: Time lost on tyres and for lack of fuel [s].
        length: Length of the race [sprints], by which places and retirements weigh more.
    """
    car = cars[row, EGO]
    out = car.out != RUNNING
    lost = out or (tables.of_race[t].two_compounds and used_one_slick(car.used))
    place = rival_place = cars.shape[1]
    for at in range(cars.shape[1]):
        if cars[row, at].order == EGO and not lost:
            place = at + 1
        if cars[row, at].order == rival:
            rival_place = at + 1
    beaten = rival > 0 and (lost or rival_place < place)
    ours_s = races[row].leader_s + OUT_LOSS_S if out else car.elapsed_s
    return ours_s + length * (PLACE_S * place + RIVAL_S * beaten + LOST_S * lost) + TYRE_SHARE * loss_s


@compiled
def _our_call(tables: Tables, t: int, full: bool, lap: int, car: Record, race_state: Record, plan: Record,
              stops_before: int, wetness: float, ours: Record) -> None:
    """Our call in the next lap by a plan."""
    ours.pit = _our_stop(tables, t, full, lap, car, race_state, plan, stops_before, wetness)
    ahead = lap - tables.first - 1
    mode = plan.mode if plan.mode_laps > ahead else RACE
    ours.drive = mode + plan.temp * TEMP_BIT
    if ahead == 0:
        ours.drive += plan.attack * ATTACK_BIT + plan.defend * DEFEND_BIT
    ours.hold_gap = ours.let_by = -1


@compiled
def _our_stop(tables: Tables, t: int, full: bool, lap: int, car: Record, race_state: Record, plan: Record,
              stops_before: int, wetness: float) -> int:
    """Compound to change to in the next lap by a plan, -1 for none."""
    left, open_stop = tables.of_race[t].race_laps - lap, car.stops == stops_before and plan.stop_lap > 0
    pit = -1
    closed = plan.closed and race_state.status != GREEN and race_state.status_age <= 1
    if open_stop and (plan.stop_lap == lap or closed):
        pit = plan.compound
    if full:
        if pit < 0 and worn_out(car, tables.tyres[t, car.compound], left):
            pit = lasting_slick(tables, t, car.compound, left)
        if car.stops == stops_before + 1 and plan.second_stop_lap == lap:
            pit = plan.second_compound
    rested = car.age_laps >= plan.patience
    if car.compound <= HARD:
        return rain_tyre(wetness) if wetness >= plan.to_inter and left >= 2 else pit
    if car.compound == INTER and wetness > plan.to_wet and left >= 2:
        return WET
    if car.compound == WET and plan.to_slick <= wetness < plan.from_wet and left >= 2 and rested:
        return INTER
    if wetness < plan.to_slick and left >= 1 and rested:
        return plan.compound if plan.compound <= HARD else SOFT
    return pit
