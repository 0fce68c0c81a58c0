"""The best race our car could have had, found with full knowledge of what will happen: `reference_of(scenario)`.

First every sensible set of stops is raced, once as it was and a few times with other luck (scatter of laps and stops
drawn anew, the same events): the first says what could be achieved, the second which stops were right. Then
the driving of the few best is improved, one change of mode, temperature or attack at a time, as long as it helps.
A lap holds one command here as everywhere, so the plan that comes out can be called as it stands.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from f1_pipelines.sim.parameters import GREEN, HARD, INTER, MEDIUM, SOFT, WET
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring import dimensions
from f1_pipelines.sim.scoring.facts import Facts
from f1_pipelines.sim.scoring.schedules import copies_of
from f1_pipelines.sim.scoring.search import Stops, improve, points, said_share, stops_of, with_fuel, worth_of

PLACE_S, RIVAL_S, LOST_S = 5.0, 8.0, 100.0  # a place, the rival and the flag in seconds
FINALISTS, FAVOURITES, LUCKS = 5, 3, 6  # plans by this race's luck, plans by any luck, other lucks


@dataclass(frozen=True, eq=False)
class Reference:
    """What could be achieved, and how."""

    position: int
    time_s: float
    finished: bool
    rival_beaten: bool
    tyre_loss_s: float  # of the plan
    codes: np.ndarray  # (L,) the plan, as in `schedules`
    stops: Stops
    mean_cost_s: dict[Stops, float]  # of stops, over other luck
    best_mean_s: float

    def regret_s(self, scenario: Scenario, stops: Stops) -> float:
        """What these stops cost over the best ones, luck aside [s]; stops that were not tried yet are raced."""
        if stops not in self.mean_cost_s:
            self.mean_cost_s[stops] = float(_mean_costs(scenario, with_fuel(scenario, [stops]))[0])
        return self.mean_cost_s[stops] - self.best_mean_s


def _mean_costs(scenario: Scenario, codes: np.ndarray) -> np.ndarray:
    """(K,) cost of schedules over other luck [s]."""
    copies = copies_of(scenario)
    facts = copies.drive_again(codes, LUCKS)
    return cost_s(facts, copies.rival > 0).reshape(-1, LUCKS).mean(axis=1)


def cost_s(facts: Facts, rival: bool) -> np.ndarray:
    """A result in seconds: race time, places, the rival, the flag. Differences within one race count only."""
    slowest = np.nanmax(facts.time_s) if np.isfinite(facts.time_s).any() else 0.0
    time_s = np.where(np.isfinite(facts.time_s), facts.time_s, slowest)
    return (time_s + PLACE_S * facts.position + RIVAL_S * (facts.beaten_by_rival & rival)
            + LOST_S * ~facts.finished)


def stop_sets(scenario: Scenario) -> list[Stops]:
    """The stops worth trying."""
    laps, dry = scenario.laps, (SOFT, MEDIUM, HARD)
    sets: list[Stops] = [()]
    sets += [((lap, c),) for lap in range(1, laps) for c in dry]
    if scenario.shower is not None:
        first, end = scenario.shower.onset_lap, min(scenario.shower.onset_lap + scenario.shower.length_laps, laps)
        kinds = (INTER, WET) if scenario.shower.peak > 0.75 else (INTER,)
        into = [(lap, c) for lap in range(max(first - 2, 1), min(first + 6, laps)) for c in kinds]
        sets += [(stop,) for stop in into]
        sets += [(stop, (lap, c)) for stop in into for lap in range(max(stop[0] + 2, end - 1), min(end + 6, laps))
                 for c in (SOFT, MEDIUM)]
        sets += [((lap, c), stop) for stop in into if stop[1] == INTER for lap in (first - 5, first - 4, first - 3)
                 if lap > 0 and lap < stop[0] - 1 for c in (MEDIUM, HARD)]
    slow = np.flatnonzero(scenario.status != GREEN) + 1
    for lap in slow[:2]:
        sets += [((early, c), (int(lap), d)) for early in range(2, int(lap) - 1, 2) for c in dry for d in dry]
    return list(dict.fromkeys(sets))


@lru_cache(maxsize=4096)
def reference_of(scenario: Scenario) -> Reference:
    """The best race found. Tens of milliseconds a scenario, kept."""
    copies, sets = copies_of(scenario), stop_sets(scenario)
    codes = with_fuel(scenario, sets)
    real, void = copies.drive(codes)
    rival = copies.rival > 0
    mean_s = _mean_costs(scenario, codes)
    span = (mean_s - mean_s.min() - dimensions.REGRET_FREE_S) / dimensions.REGRET_SPAN_S
    strategy = 1.0 - np.clip(span, 0.0, 1.0)
    fastest = float(np.nanmin(real.time_s)) if np.isfinite(real.time_s).any() else 0.0
    worth = worth_of(real, void, said_share(scenario, codes), fastest, rival, strategy)
    few = worth.argsort(kind="stable")[::-1][:FINALISTS]
    few = np.unique(np.append(few, mean_s.argsort(kind="stable")[:FAVOURITES]))
    plans = np.concatenate([improve(scenario, copies, codes[few], strategy[few], fastest), codes[few]])
    final, void = copies.drive(plans)
    top = int(cost_s(final, rival).argmin())
    worth = points(final, void, said_share(scenario, plans), np.tile(strategy[few], 2), top, rival)
    best = int(worth.argmax())
    return Reference(
        position=int(final.position[top]), time_s=float(np.nan_to_num(final.time_s[top], nan=1e9)),
        finished=bool(final.finished[top]), rival_beaten=not bool(final.beaten_by_rival[top]),
        tyre_loss_s=float(final.tyre_loss_s[best]), codes=plans[best], stops=stops_of(plans[best]),
        mean_cost_s=dict(zip(sets, mean_s.tolist(), strict=True)), best_mean_s=float(mean_s.min()))
