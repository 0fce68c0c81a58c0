"""Hill climbing over schedules, one command per lap: `hill_climb(...)`."""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from f1_pipelines.sim.engine.compiled import Records, compiled
from f1_pipelines.sim.engine.drive import FUEL_SAVE, RACE
from f1_pipelines.sim.engine.parameters import SC, VSC
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring import dimensions
from f1_pipelines.sim.scoring.announcements import STOP_WITHIN, can_announce, event_windows
from f1_pipelines.sim.scoring.neighbours import neighbours_of
from f1_pipelines.sim.scoring.schedules import MODE, NOTHING, PIT, ScenarioReplays, is_stop

ROUNDS, SURVIVORS = 6, 3  # rounds; plans that continue after the first
SAFE_LAPS = 0.10  # of fuel at the flag
SAVED_SHARE = 0.12  # of the fuel of a lap in mode fuel_save
Stops = tuple[tuple[int, int], ...]  # (lap, compound), laps from 1


def with_fuel(scenario: Scenario, sets: list[Stops]) -> np.ndarray:
    """Schedules (K, L) with these stops, saving fuel from the first lap for as long as needed."""
    burn = np.where(scenario.status == SC, 0.5, np.where(scenario.status == VSC, 0.65, 1.0))
    short = SAFE_LAPS - scenario.fuel_laps[0] - np.sum(1.0 - burn)
    codes = np.full((len(sets), scenario.laps), NOTHING)
    for row, stops in zip(codes, sets, strict=True):
        for lap, compound in stops:
            row[lap - 1] = PIT + compound
    if short > 0:
        _fill_saving(codes, SAVED_SHARE * burn, short)
    return codes


@compiled
def _fill_saving(codes: np.ndarray, saves: np.ndarray, short: float) -> None:
    """Add mode fuel_save from the first free lap of each schedule until `short` laps of fuel are saved."""
    for k in range(len(codes)):
        begins, saved = False, 0.0
        for row in range(codes.shape[1]):
            if codes[k, row] == NOTHING and not begins:
                codes[k, row], begins = MODE + FUEL_SAVE, True
            elif codes[k, row] == NOTHING and saved >= short:
                codes[k, row] = MODE + RACE
                break
            if begins:
                saved += saves[row]


def worth_of(outcome: Records, void: np.ndarray, message_share: np.ndarray, fastest_s: float, rival: bool,
             strategy: np.ndarray | float, length: float) -> np.ndarray:
    """(K,) approximate scores of plans, up to a constant.

    Args:
        outcome: Recordss of the plans, (K,) each.
        void: (K,) number of void commands.
        message_share: (K,) share of due messages that fit into free laps.
        fastest_s: Fastest race time of all plans [s].
        rival: Whether there is a rival.
        strategy: (K,) dimension strategy.
        length: Length of the race [sprints].
    """
    weight, d = dimensions.WEIGHTS, dimensions
    late = np.nan_to_num(outcome["time_s"] - fastest_s, nan=50.0 * length) / length
    lost = d.PLACE_COST * outcome["position"] + d.SECOND_COST * late
    lost = lost + d.RIVAL_SHARE * (outcome["beaten_by_rival"] & rival) + 1.0 * ~outcome["finished"]
    return (weight["fuel"] * _fuel_score(outcome) - weight["race"] * lost + weight["strategy"] * strategy
            + weight["comms"] * message_share - weight["operations"] * d.VOID_COST * void
            - weight["tyres"] * outcome["tyre_loss_s"] / length / d.TYRE_SPAN_S)


def plan_scores(outcome: Records, void: np.ndarray, message_share: np.ndarray, strategy: np.ndarray, best: int,
                rival: bool, length: float) -> np.ndarray:
    """(K,) scores of plans, with plan `best` as the reference. For other arguments see `worth_of`."""
    weight, d = dimensions.WEIGHTS, dimensions
    places = np.maximum(outcome["position"] - outcome["position"][best], 0)
    seconds = np.maximum(np.nan_to_num(outcome["time_s"] - outcome["time_s"][best], nan=0.0) / length - d.LUCK_S, 0.0)
    race = np.clip(1.0 - d.PLACE_COST * places - d.SECOND_COST * seconds, 0.0, 1.0)
    if rival:
        ahead = np.where(outcome["beaten_by_rival"][best], race, 0.0)
        race = (1.0 - d.RIVAL_SHARE) * race + d.RIVAL_SHARE * np.where(outcome["beaten_by_rival"], ahead, 1.0)
    tyres = 1.0 - np.clip((outcome["tyre_loss_s"] / length - d.TYRE_FREE_S) / d.TYRE_SPAN_S, 0.0, 1.0)
    return (weight["race"] * race * outcome["finished"] + weight["strategy"] * strategy + weight["tyres"] * tyres
            + weight["fuel"] * _fuel_score(outcome) + weight["comms"] * message_share
            - weight["operations"] * d.VOID_COST * void)


def _fuel_score(outcome: Records) -> np.ndarray:
    """(K,) dimension fuel; -1 for plans that run dry, which costs operations as well."""
    d = dimensions
    needless = np.maximum(d.SPARE_LAPS + outcome["fuel_slow_laps"], outcome["fuel_natural_laps"])
    waste = outcome["fuel_left_laps"] - needless
    return np.where(outcome["ran_dry"], -1.0, 1.0 - np.clip(waste / d.WASTE_SPAN_LAPS, 0.0, 1.0))


def message_coverage(scenario: Scenario, codes: np.ndarray) -> np.ndarray:
    """Share of due messages that fit into the free laps of each plan, (K,). `codes`: schedules, (K, L)."""
    (announceable, events), shares, laps = _due(scenario), np.empty(len(codes)), codes.shape[1]
    _fill_coverage(codes, announceable, events, np.empty((laps + len(events) + 1, 2), dtype=np.int64),
                   np.empty(laps, dtype=np.bool_), shares)
    return shares


@lru_cache(maxsize=64)
def _due(scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Whether a stop in each lap can be announced, (L,), and first and last laps of the `event_windows`, (M, 2)."""
    return (np.array([can_announce(scenario, lap) for lap in range(1, scenario.laps + 1)]),
            np.array([window[:2] for window in event_windows(scenario)], dtype=np.int64).reshape(-1, 2))


@compiled
def _fill_coverage(codes: np.ndarray, announceable: np.ndarray, events: np.ndarray, windows: np.ndarray,
                   free: np.ndarray, shares: np.ndarray) -> None:
    """As `assign_messages` for the windows of `message_windows`, counting only."""
    laps = codes.shape[1]
    for k in range(len(codes)):
        due = stops = sent = 0
        for row in range(laps):
            free[row] = codes[k, row] == NOTHING
            if is_stop(codes[k, row]):
                stops += 1
                if announceable[row]:
                    due = _add_window(windows, due, max(row + 1 - STOP_WITHIN, 1), row)
        for event in range(len(events)):
            due = _add_window(windows, due, events[event, 0], events[event, 1])
        if not stops:
            due = _add_window(windows, due, 1, laps)
        for window in range(due):
            for lap in range(windows[window, 0], min(windows[window, 1], laps) + 1):
                if free[lap - 1]:
                    free[lap - 1] = False
                    sent += 1
                    break
        shares[k] = sent / due if due else 1.0


@compiled
def _add_window(windows: np.ndarray, due: int, first: int, last: int) -> int:
    """Insert a window, earliest deadline first, equal ones in the order of insertion. Returns their number."""
    at = due
    while at and windows[at - 1, 1] > last:
        windows[at, 0], windows[at, 1] = windows[at - 1, 0], windows[at - 1, 1]
        at -= 1
    windows[at, 0], windows[at, 1] = first, last
    return due + 1


def stops_of(row: np.ndarray) -> Stops:
    """The stops of a schedule."""
    return tuple((lap, code - PIT) for lap, code in enumerate(row.tolist(), 1) if is_stop(code))


def hill_climb(scenario: Scenario, replays: ScenarioReplays, plans: np.ndarray, strategy: np.ndarray,
               fastest_s: float) -> np.ndarray:
    """Improve each plan (K, L) by its best neighbour until none helps. Returns the plans.

    Args:
        scenario: The scenario.
        replays: Its replays.
        plans: Schedules (K, L) to start from; their stops stay.
        strategy: (K,) dimension strategy of their stops.
        fastest_s: Fastest race time of all candidates [s].
    """
    plans, rival = plans.copy(), replays.rival > 0

    def merit(codes: np.ndarray, driven: tuple[np.ndarray, np.ndarray], strategy: np.ndarray | float) -> np.ndarray:
        return worth_of(*driven, message_coverage(scenario, codes), fastest_s, rival, strategy, scenario.length)

    worth = merit(plans, replays.drive(plans), strategy)
    for turn in range(1, ROUNDS + 1):
        least, better = np.sort(worth)[-min(SURVIVORS, len(worth))] if turn > 1 else -np.inf, False
        for k in np.flatnonzero(worth >= least):
            codes = neighbours_of(plans[k], turn)
            worths = merit(codes, replays.drive(codes), strategy[k])
            top = int(worths.argmax())
            if worths[top] > worth[k] + 1e-4:
                plans[k], worth[k], better = codes[top], worths[top], True
        if not better:
            break
    return plans
