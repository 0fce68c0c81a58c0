"""The best race of our car with full knowledge of the future: `reference_of(scenario)`.

First, candidate sets of stops are raced in this race (what is achievable) and in replays with other luck (which stops
are right): new noise of laps and stops, same events. Second, the driving of the best plans is improved by hill climbing
over modes, temperatures and attacks. Each lap has one command, so the plan can be played as it is.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring import dimensions
from f1_pipelines.sim.scoring.schedules import ScenarioReplays, replays_of
from f1_pipelines.sim.scoring.search import (
    Stops,
    hill_climb,
    message_coverage,
    plan_scores,
    stops_of,
    with_fuel,
    worth_of,
)
from f1_pipelines.sim.scoring.stop_sets import cost_s, moved, race_stop_sets, stop_sets

FINALISTS, FAVOURITES, LUCKS = 5, 3, 6  # plans best in this race, plans best over luck, draws of luck
NEIGHBOURS = 3  # of a Grand Prix: sets of stops whose laps are varied


@dataclass(frozen=True, eq=False)
class Reference:
    """The best result and its plan."""

    position: int
    time_s: float
    finished: bool
    rival_beaten: bool
    tyre_loss_s: float  # of the plan
    codes: np.ndarray  # (L,) the plan, as in `schedules`
    stops: Stops
    mean_cost_s: dict[Stops, float]  # cost of sets of stops, mean over luck [s]
    best_mean_s: float

    def regret_s(self, scenario: Scenario, stops: Stops) -> float:
        """Mean cost of these stops minus that of the best ones [s]. Races stops that are not cached."""
        if stops not in self.mean_cost_s:
            self.mean_cost_s[stops] = float(_mean_costs(scenario, with_fuel(scenario, [stops]))[0])
        return self.mean_cost_s[stops] - self.best_mean_s


def _mean_costs(scenario: Scenario, codes: np.ndarray) -> np.ndarray:
    """(K,) mean cost of schedules over luck [s]."""
    replays = replays_of(scenario)
    outcome = replays.drive_again(codes, LUCKS)
    return cost_s(outcome, replays.rival > 0, scenario.length).reshape(-1, LUCKS).mean(axis=1)


def _race_sets(scenario: Scenario, replays: ScenarioReplays) -> list[Stops]:
    """Candidate stops of a Grand Prix, and the best of them with laps varied."""
    sets = race_stop_sets(scenario, replays)
    real, _ = replays.drive(with_fuel(scenario, sets))
    best = cost_s(real, False, scenario.length).argsort(kind="stable")[:NEIGHBOURS]
    return list(dict.fromkeys([*sets, *(other for k in best for other in moved(scenario, sets[k]))]))


@lru_cache(maxsize=4096)
def reference_of(scenario: Scenario) -> Reference:
    """The best race found, cached. Takes about ten milliseconds for a sprint."""
    replays = replays_of(scenario)
    sets = _race_sets(scenario, replays) if scenario.weekend else stop_sets(scenario)
    codes = with_fuel(scenario, sets)
    real, void = replays.drive(codes)
    rival = replays.rival > 0
    mean_s = _mean_costs(scenario, codes)
    span = ((mean_s - mean_s.min()) / scenario.length - dimensions.REGRET_FREE_S) / dimensions.REGRET_SPAN_S
    strategy = 1.0 - np.clip(span, 0.0, 1.0)
    fastest = float(np.nanmin(real["time_s"])) if np.isfinite(real["time_s"]).any() else 0.0
    worth = worth_of(real, void, message_coverage(scenario, codes), fastest, rival, strategy,
                     scenario.length)
    # A plan of a Grand Prix takes seconds.
    finalists, favourites = (FINALISTS, FAVOURITES) if not scenario.weekend else (2, 1)
    finalists_at = worth.argsort(kind="stable")[::-1][:finalists]
    finalists_at = np.unique(np.append(finalists_at, mean_s.argsort(kind="stable")[:favourites]))
    plans = np.concatenate([hill_climb(scenario, replays, codes[finalists_at], strategy[finalists_at], fastest),
                            codes[finalists_at]])
    final, void = replays.drive(plans)
    top = int(cost_s(final, rival, scenario.length).argmin())
    worth = plan_scores(final, void, message_coverage(scenario, plans), np.tile(strategy[finalists_at], 2), top, rival,
                        scenario.length)
    best = int(worth.argmax())
    return Reference(
        position=int(final["position"][top]), time_s=float(np.nan_to_num(final["time_s"][top], nan=1e9)),
        finished=bool(final["finished"][top]), rival_beaten=not bool(final["beaten_by_rival"][top]),
        tyre_loss_s=float(final["tyre_loss_s"][best]), codes=plans[best], stops=stops_of(plans[best]),
        mean_cost_s=dict(zip(sets, mean_s.tolist(), strict=True)), best_mean_s=float(mean_s.min()))
