"""Futures sampled from a belief, and the outcomes of candidate plans in them.

A candidate is a plan with its own reactions (`Plan`). All candidates are driven in the same futures. Opponents have the
characters and plans known from inspections, else sampled ones.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np

from f1_pipelines.sim.engine.arrays import any_of
from f1_pipelines.sim.engine.drive import RACE, drive_code
from f1_pipelines.sim.engine.parameters import GREEN, HARD, INTER, MEDIUM, SOFT, WET
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.state import RaceState, new_state
from f1_pipelines.sim.engine.step import step
from f1_pipelines.sim.scenarios import OpponentPlans, repeat
from f1_pipelines.sim.scenarios.batch import single
from f1_pipelines.sim.scenarios.opponents import TO_WET, calls_with, lasting, wetness_now, worn_out
from f1_pipelines.sim.scenarios.scenario import MAX_LAPS
from f1_pipelines.sim.scoring.outcome import ran_dry, tyre_loss_s
from f1_pipelines.sim.scoring.stop_sets import LOST_S, PLACE_S, RIVAL_S

EGO_FIELDS = ("stops", "used", "wear_laps", "cliff_laps", "temp_c", "out", "fuel_kg", "compound", "offset_s", "slope_s",
              "age_laps")
DRY_S = 40.0  # cost of an empty tank beyond its time: dimensions fuel and operations


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


_FIELDS = tuple(f.name for f in fields(Plan))
_FIELDS_OF = attrgetter(*_FIELDS)


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
        return SampledFutures(repeat(self.race, episodes), self.state.take(episodes), self.plans.take(episodes),
                              self.rival[episodes], self.first, self.water)

    def alone(self) -> SampledFutures:
        """The same futures without other cars: fast, but without traffic and positions."""
        race = prepare(single(self.race.setup), first=self.first)
        ours = {name: getattr(self.state, name)[:, :1] for name in EGO_FIELDS}
        state = new_state(race).after(**ours, status_age=self.state.status_age, any_out=bool(ours["out"].any()))
        return SampledFutures(race, state, self.plans.alone, np.zeros_like(self.rival), self.first, self.water)

    def outcomes(self, candidates: Sequence[Plan]) -> Outcomes:
        """Drive each of K candidates in each of F futures."""
        count, futures = len(candidates), len(self.rival)
        episode = np.tile(np.arange(futures), count)
        race = repeat(self.race, episode)
        state, plans, rival = self.state.take(episode), self.plans.take(episode), self.rival[episode]
        columns = zip(*map(_FIELDS_OF, candidates), strict=True)
        ours = {name: np.array(values).repeat(futures) for name, values in zip(_FIELDS, columns, strict=True)}
        loss = np.zeros(len(episode))
        stop_lap, stop_compound = np.zeros(len(episode), dtype=int), np.full(len(episode), -1)
        stops_before = state.stops[:, 0]
        length = max(race.laps / MAX_LAPS, 1.0)
        while state.lap < race.laps:
            water = wetness_now(race, state) if state.lap > self.first else np.full(len(episode), self.water)
            pit = _our_stop(race, state, ours, stops_before, water, plans.full)
            first = (pit >= 0) & (stop_compound < 0)
            stop_lap, stop_compound = np.where(first, state.lap + 1, stop_lap), np.where(first, pit, stop_compound)
            ahead = state.lap - self.first
            mode = np.where(ours["mode_laps"] > ahead, ours["mode"], RACE)
            drive = drive_code(mode, ours["temp"], True, ours["attack"] & (ahead == 0), ours["defend"] & (ahead == 0))
            loss += tyre_loss_s(race, state)
            after = step(race, state, calls_with(race, state, plans, pit, drive, wetness=water))
            loss += DRY_S * length * ran_dry(race, state, after)
            state = after
        shape = (count, futures)
        return Outcomes(cost_of(race, state, rival, loss, length).reshape(shape), stop_lap.reshape(shape),
                        stop_compound.reshape(shape))


def cost_of(race: Race, state: RaceState, rival: np.ndarray, loss_s: np.ndarray, length: float) -> np.ndarray:
    """(E,) cost of finished races in seconds, close to the score.

    Args:
        race: The batch.
        state: Its final state.
        rival: (E,) column of the rival, 0 for none.
        loss_s: (E,) time lost on tyres [s].
        length: Length of the race [sprints], by which places and retirements weigh more.
    """
    out = state.out[:, 0] > 0
    slicks = sum((state.used[:, 0] >> c) & 1 for c in (SOFT, MEDIUM, HARD))
    rule = np.broadcast_to(race.setup.two_compound_rule, (race.episodes,))
    broke = rule & (slicks < 2) & (state.used[:, 0] < 8) & ~(race.wetness > 0.1).any(axis=0)
    lost = out | broke
    place = np.where(lost, race.cars, state.position[:, 0])
    ours = np.where(out, state.leader_s[:, 0] + 30.0, state.elapsed_s[:, 0])
    beaten = (rival > 0) & ((state.position[np.arange(len(rival)), rival] < state.position[:, 0]) | lost)
    return ours + length * (PLACE_S * place + RIVAL_S * beaten + LOST_S * lost) + 0.4 * loss_s


def _our_stop(race: Race, state: RaceState, ours: dict[str, np.ndarray], before: np.ndarray,
              water: np.ndarray, full: bool) -> np.ndarray:
    """(K * F,) compound to change to in the next lap, -1 for none."""
    lap, compound = state.lap + 1, state.compound[:, 0]
    left, slick = race.race_laps - lap, compound <= HARD
    open_stop = (state.stops[:, 0] == before) & (ours["stop_lap"] > 0)
    due = open_stop & (ours["stop_lap"] == lap)
    if state.any_slow:
        due = due | (open_stop & ours["closed"] & (state.status != GREEN) & (state.status_age <= 1))
    pit = np.where(due, ours["compound"], -1)
    if full:
        again = (state.stops[:, 0] == before + 1) & (ours["second_stop_lap"] == lap)
        worn = worn_out(race, state, left[:, None])[:, 0] & (pit < 0)
        if any_of(worn):
            pit = np.where(worn, lasting(race, state, left[:, None])[:, 0], pit)
        pit = np.where(again, ours["second_compound"], pit)
    if race.wet or state.rain_tyres:
        wet_now = slick & (water >= ours["to_inter"]) & (left >= 2)
        pit = np.where(wet_now, np.where(water > TO_WET, WET, INTER), pit)
        dry_now = ~slick & (water < ours["to_slick"]) & (left >= 1) & (state.age_laps[:, 0] >= ours["patience"])
        fit = np.where(ours["compound"] <= HARD, ours["compound"], SOFT)
        pit = np.where(dry_now, fit, pit)
        pit = np.where((compound == INTER) & (water > ours["to_wet"]) & (left >= 2), WET, pit)
        pit = np.where((compound == WET) & (water < ours["from_wet"]) & (water >= ours["to_slick"]) & (left >= 2)
                       & (state.age_laps[:, 0] >= ours["patience"]), INTER, pit)
    return pit
