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

from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring import dimensions
from f1_pipelines.sim.scoring.schedules import Copies, copies_of
from f1_pipelines.sim.scoring.search import Stops, improve, points, said_share, stops_of, with_fuel, worth_of
from f1_pipelines.sim.scoring.stop_sets import cost_s, moved, race_stop_sets, stop_sets

FINALISTS, FAVOURITES, LUCKS = 5, 3, 6  # plans by this race's luck, plans by any luck, other lucks
NEIGHBOURS = 3  # of a Grand Prix: sets of stops that are moved about


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
    return cost_s(facts, copies.rival > 0, scenario.length).reshape(-1, LUCKS).mean(axis=1)


def _race_sets(scenario: Scenario, copies: Copies) -> list[Stops]:
    """Stops of a Grand Prix: the screened ones, and the best of them by this race a few laps earlier or later."""
    sets = race_stop_sets(scenario, copies)
    real, _ = copies.drive(with_fuel(scenario, sets))
    best = cost_s(real, False, scenario.length).argsort(kind="stable")[:NEIGHBOURS]
    return list(dict.fromkeys([*sets, *(other for k in best for other in moved(scenario, sets[k]))]))


@lru_cache(maxsize=4096)
def reference_of(scenario: Scenario) -> Reference:
    """The best race found. Tens of milliseconds a scenario, kept."""
    copies = copies_of(scenario)
    sets = _race_sets(scenario, copies) if scenario.weekend else stop_sets(scenario)
    codes = with_fuel(scenario, sets)
    real, void = copies.drive(codes)
    rival = copies.rival > 0
    mean_s = _mean_costs(scenario, codes)
    span = ((mean_s - mean_s.min()) / scenario.length - dimensions.REGRET_FREE_S) / dimensions.REGRET_SPAN_S
    strategy = 1.0 - np.clip(span, 0.0, 1.0)
    fastest = float(np.nanmin(real.time_s)) if np.isfinite(real.time_s).any() else 0.0
    worth = worth_of(real, void, said_share(scenario, codes), fastest, rival, strategy,
                     scenario.length)
    finalists, favourites = (FINALISTS, FAVOURITES) if not scenario.weekend else (2, 1)  # a plan takes seconds there
    finalists_at = worth.argsort(kind="stable")[::-1][:finalists]
    finalists_at = np.unique(np.append(finalists_at, mean_s.argsort(kind="stable")[:favourites]))
    plans = np.concatenate([improve(scenario, copies, codes[finalists_at], strategy[finalists_at], fastest),
                            codes[finalists_at]])
    final, void = copies.drive(plans)
    top = int(cost_s(final, rival, scenario.length).argmin())
    worth = points(final, void, said_share(scenario, plans), np.tile(strategy[finalists_at], 2), top, rival,
                   scenario.length)
    best = int(worth.argmax())
    return Reference(
        position=int(final.position[top]), time_s=float(np.nan_to_num(final.time_s[top], nan=1e9)),
        finished=bool(final.finished[top]), rival_beaten=not bool(final.beaten_by_rival[top]),
        tyre_loss_s=float(final.tyre_loss_s[best]), codes=plans[best], stops=stops_of(plans[best]),
        mean_cost_s=dict(zip(sets, mean_s.tolist(), strict=True)), best_mean_s=float(mean_s.min()))
