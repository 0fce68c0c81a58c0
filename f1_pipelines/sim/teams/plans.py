"""The tyre plans of a field, made before the start: compounds, and laps of the stops."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim import CircuitParameters
from f1_pipelines.sim.engine.parameters import HARD, MEDIUM, SOFT
from f1_pipelines.sim.teams.seeded_draws import normal

CANDIDATES = (
    (MEDIUM, HARD), (HARD, MEDIUM), (SOFT, HARD), (SOFT, MEDIUM), (MEDIUM, HARD, MEDIUM), (MEDIUM, MEDIUM, HARD),
    (MEDIUM, HARD, HARD), (SOFT, HARD, MEDIUM), (SOFT, MEDIUM, HARD), (SOFT, MEDIUM, HARD, MEDIUM),
    (MEDIUM, HARD, MEDIUM, MEDIUM),
)
MAX_STOPS = max(map(len, CANDIDATES)) - 1
CLIFF_SHARE = 0.90  # share of the usual cliff that a plan uses of a set
START_COST_S = {SOFT: -1.0, MEDIUM: 0.0, HARD: 3.0}  # a softer tyre gets off the line better; assumption
OPINION_SD_S = 5.0  # sd by which teams differ in judging a plan
STOP_LAP_SD = 0.045  # share of the distance: docs/physics.md#lap-time, spread of stop laps
EARLIEST, LATEST = 5, 4  # no planned stop before this lap, or in this many last laps


@dataclass(frozen=True)
class StintPlans:
    """The plan of each car."""

    start: np.ndarray  # (N,) start compound
    laps: np.ndarray  # (stops, N) lap of each stop, 0 for none
    compounds: np.ndarray  # (stops, N) compound fitted at each stop


def race_plans(circuit: CircuitParameters, race_laps: int, key: str, drivers: list[str]) -> StintPlans:
    """Draw a plan for each car: the fastest one as its team judges it, with stops scattered around the best laps.

    Args:
        circuit: Parameters of the circuit.
        race_laps: Race distance [laps].
        key: Name of the race, the key of the draws.
        drivers: Driver id of each car.
    """
    stints = [stint_laps(circuit, race_laps, candidate) for candidate in CANDIDATES]
    costs = np.array([plan_cost_s(circuit, laps, candidate)
                      for laps, candidate in zip(stints, CANDIDATES, strict=True)])
    opinions = normal(f"{key}/plans", drivers, count=len(CANDIDATES))
    choice = (costs[:, None] + OPINION_SD_S * opinions).argmin(axis=0)
    moved = normal(f"{key}/stop laps", drivers, count=MAX_STOPS) * STOP_LAP_SD * race_laps
    laps = np.zeros((MAX_STOPS, len(drivers)), dtype=np.int64)
    compounds = np.full((MAX_STOPS, len(drivers)), HARD)
    for car, chosen in enumerate(choice):
        stops = np.cumsum(stints[chosen])[:-1] + moved[:len(stints[chosen]) - 1, car]
        laps[:len(stops), car] = np.clip(np.sort(np.rint(stops)), EARLIEST, race_laps - LATEST)
        compounds[:len(stops), car] = CANDIDATES[chosen][1:]
    return StintPlans(np.array([CANDIDATES[chosen][0] for chosen in choice]), laps, compounds)


def sprint_plans(circuit: CircuitParameters, race_laps: int, key: str, drivers: list[str]) -> StintPlans:
    """Draw a plan without stops for each car, on soft or medium tyres; arguments as in `race_plans`."""
    costs = np.array([plan_cost_s(circuit, np.array([float(race_laps)]), (compound,)) for compound in (SOFT, MEDIUM)])
    choice = (costs[:, None] + OPINION_SD_S * normal(f"{key}/plans", drivers, count=2)).argmin(axis=0)
    none = np.zeros((MAX_STOPS, len(drivers)), dtype=np.int64)
    return StintPlans(np.where(choice == 0, SOFT, MEDIUM), none, none + HARD)


def stint_laps(circuit: CircuitParameters, race_laps: int, compounds: tuple[int, ...]) -> np.ndarray:
    """Best length of each stint [laps]: every set ends equally slow, none near its cliff."""
    offset = np.array([circuit.compound_offset_s[c] for c in compounds])
    slope = np.maximum(np.array([circuit.degradation_s_per_lap[c] for c in compounds]), 0.005)
    most = CLIFF_SHARE * np.array([circuit.cliff_laps[c] for c in compounds])
    laps, free, left = np.zeros(len(compounds)), np.ones(len(compounds), dtype=bool), float(race_laps)
    while free.any():  # a set that would last too long gets its maximum; the others share the remaining laps
        end_s = (left + (offset / slope)[free].sum()) / (1.0 / slope)[free].sum()
        laps[free] = ((end_s - offset) / slope)[free]
        over = free & (laps > most)
        if not over.any():
            break
        laps[over], free = most[over], free & ~over
        left = race_laps - laps[~free].sum()
    return laps


def plan_cost_s(circuit: CircuitParameters, laps: np.ndarray, compounds: tuple[int, ...]) -> float:
    """Time that the tyres and stops of a plan cost [s]; each lap beyond the life of its sets costs 10 s more."""
    offset = np.array([circuit.compound_offset_s[c] for c in compounds])
    slope = np.array([circuit.degradation_s_per_lap[c] for c in compounds])
    cliff = CLIFF_SHARE * np.array([circuit.cliff_laps[c] for c in compounds])
    short = max(circuit.race_laps - laps.sum(), 0.0) if len(compounds) > 1 else 0.0
    beyond = np.maximum(laps - cliff, 0.0).sum() + short
    return float((offset * laps + slope * laps**2 / 2.0).sum() + circuit.stop_loss_green_s * (len(compounds) - 1)
                 + 10.0 * beyond + START_COST_S[compounds[0]])
