"""Hill climbing over schedules, one command per lap: `hill_climb(...)`."""
from __future__ import annotations

import itertools

import numpy as np

from f1_pipelines.sim.engine.drive import CONSERVE, FUEL_SAVE, PUSH, RACE, TEMP_COOL, TEMP_WARM, TYRE_SAVE
from f1_pipelines.sim.engine.parameters import SC, VSC
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring import dimensions
from f1_pipelines.sim.scoring.announcements import assign_messages, message_windows
from f1_pipelines.sim.scoring.outcome import Outcome
from f1_pipelines.sim.scoring.schedules import ATTACK, DEFEND, MODE, NOTHING, PIT, TEMP, ScenarioReplays

ROUNDS, SURVIVORS = 6, 3  # rounds; plans that continue after the first
LONG_LAPS = 20
SAFE_LAPS = 0.10  # of fuel at the flag
Stops = tuple[tuple[int, int], ...]  # (lap, compound), laps from 1


def with_fuel(scenario: Scenario, sets: list[Stops]) -> np.ndarray:
    """Schedules (K, L) with these stops, saving fuel from the first lap for as long as needed."""
    burn = np.where(scenario.status == SC, 0.5, np.where(scenario.status == VSC, 0.65, 1.0))
    short = SAFE_LAPS - scenario.fuel_laps[0] - np.sum(1.0 - burn)
    saves = 0.12 * burn
    codes = np.full((len(sets), scenario.laps), NOTHING)
    for row, stops in zip(codes, sets, strict=True):
        for lap, compound in stops:
            row[lap - 1] = PIT + compound
        free = np.flatnonzero(row == NOTHING)
        if short <= 0 or not len(free):  # enough fuel, or a stop in every lap
            continue
        begin = int(free[0])
        row[begin] = MODE + FUEL_SAVE
        enough = np.flatnonzero(np.cumsum(saves[begin:]) >= short)
        after = free[free > begin + (enough[0] if len(enough) else scenario.laps)]
        if len(after):
            row[after[0]] = MODE + RACE
    return codes


def worth_of(outcome: Outcome, void: np.ndarray, message_share: np.ndarray, fastest_s: float, rival: bool,
             strategy: np.ndarray, length: float) -> np.ndarray:
    """(K,) approximate scores of plans, up to a constant.

    Args:
        outcome: Outcomes of the plans, (K,) each.
        void: (K,) number of void commands.
        message_share: (K,) share of due messages that fit into free laps.
        fastest_s: Fastest race time of all plans [s].
        rival: Whether there is a rival.
        strategy: (K,) dimension strategy.
        length: Length of the race [sprints].
    """
    weight, d = dimensions.WEIGHTS, dimensions
    late = np.nan_to_num(outcome.time_s - fastest_s, nan=50.0 * length) / length
    lost = d.PLACE_COST * outcome.position + d.SECOND_COST * late
    lost = lost + d.RIVAL_SHARE * (outcome.beaten_by_rival & rival) + 1.0 * ~outcome.finished
    return (weight["fuel"] * _fuel_score(outcome) - weight["race"] * lost + weight["strategy"] * strategy
            + weight["comms"] * message_share - weight["operations"] * d.VOID_COST * void
            - weight["tyres"] * outcome.tyre_loss_s / length / d.TYRE_SPAN_S)


def plan_scores(outcome: Outcome, void: np.ndarray, message_share: np.ndarray, strategy: np.ndarray, best: int,
                rival: bool, length: float) -> np.ndarray:
    """(K,) scores of plans, with plan `best` as the reference. For other arguments see `worth_of`."""
    weight, d = dimensions.WEIGHTS, dimensions
    places = np.maximum(outcome.position - outcome.position[best], 0)
    seconds = np.maximum(np.nan_to_num(outcome.time_s - outcome.time_s[best], nan=0.0) / length - d.LUCK_S, 0.0)
    race = np.clip(1.0 - d.PLACE_COST * places - d.SECOND_COST * seconds, 0.0, 1.0)
    if rival:
        ahead = np.where(outcome.beaten_by_rival[best], race, 0.0)
        race = (1.0 - d.RIVAL_SHARE) * race + d.RIVAL_SHARE * np.where(outcome.beaten_by_rival, ahead, 1.0)
    tyres = 1.0 - np.clip((outcome.tyre_loss_s / length - d.TYRE_FREE_S) / d.TYRE_SPAN_S, 0.0, 1.0)
    return (weight["race"] * race * outcome.finished + weight["strategy"] * strategy + weight["tyres"] * tyres
            + weight["fuel"] * _fuel_score(outcome) + weight["comms"] * message_share
            - weight["operations"] * d.VOID_COST * void)


def _fuel_score(outcome: Outcome) -> np.ndarray:
    """(K,) dimension fuel; -1 for plans that run dry, which costs operations as well."""
    d = dimensions
    waste = outcome.fuel_left_laps - np.maximum(d.SPARE_LAPS + outcome.fuel_slow_laps, outcome.fuel_natural_laps)
    return np.where(outcome.ran_dry, -1.0, 1.0 - np.clip(waste / d.WASTE_SPAN_LAPS, 0.0, 1.0))


def message_coverage(scenario: Scenario, codes: np.ndarray) -> np.ndarray:
    """(K,) share of due messages that fit into the free laps of each plan."""
    shares, known = np.empty(len(codes)), {}
    for k, row in enumerate(codes):
        stops = stops_of(row)
        if stops not in known:
            known[stops] = message_windows(scenario, stops)
        free = (np.flatnonzero(row == NOTHING) + 1).tolist()
        shares[k] = len(assign_messages(known[stops], free)) / len(known[stops]) if known[stops] else 1.0
    return shares


def stops_of(row: np.ndarray) -> Stops:
    """The stops of a schedule."""
    return tuple((int(lap) + 1, int(row[lap]) - PIT) for lap in np.flatnonzero((row >= PIT) & (row < PIT + 5)))


def neighbours(row: np.ndarray, turn: int = 0) -> list[np.ndarray]:
    """Schedules with the same stops and one other change; in a long race a subset per turn."""
    free = np.flatnonzero((row < PIT) | (row >= PIT + 5))
    lengths, every = ((2, 4, len(row)), 1) if len(row) < LONG_LAPS else ((4, 10, len(row)), len(row) // 8)
    plans = []

    def with_calls(*calls: tuple[int, int]) -> None:
        new = row.copy()
        for lap, code in calls:
            new[lap] = code
        plans.append(new)

    for k, lap in enumerate(free.tolist()):
        if (lap + turn) % every and row[lap] == NOTHING:
            continue
        if row[lap] != NOTHING:
            with_calls((lap, NOTHING))
            for other in free[max(k - 2, 0):k + 3].tolist():
                if row[other] == NOTHING:
                    with_calls((lap, NOTHING), (other, row[lap]))
        with_calls((lap, ATTACK))
        with_calls((lap, DEFEND))
        if k < 4:
            with_calls((lap, TEMP + TEMP_WARM))
            with_calls((lap, TEMP + TEMP_COOL))
        for mode in (PUSH, FUEL_SAVE, CONSERVE, TYRE_SAVE):
            for length in lengths:
                back = free[free >= lap + length][:1].tolist()
                with_calls((lap, MODE + mode), *((end, MODE + RACE) for end in back))
        with_calls((lap, MODE + RACE))
    called = [k for k, lap in enumerate(free) if row[lap] != NOTHING]
    for start, end in itertools.pairwise([*called, len(free)]):  # the same stint of a command, later
        for later in (1, 2):
            if start + later < min(end, len(free)):
                calls = [(free[start], NOTHING), (free[start + later], row[free[start]])]
                if end < len(free):
                    calls.insert(1, (free[end], NOTHING))
                if end + later < len(free):
                    calls.append((free[end + later], row[free[end]]))
                with_calls(*calls)
    return plans


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
    plans, worth = plans.copy(), np.full(len(plans), -np.inf)
    for turn in range(ROUNDS + 1):
        rows, origins = list(plans), list(range(len(plans)))
        for k, row in enumerate(plans):
            if turn == 1 or (turn and worth[k] >= np.sort(worth)[-min(SURVIVORS, len(worth))]):
                new = neighbours(row, turn)
                rows += new
                origins += [k] * len(new)
        owners, candidates = np.array(origins), np.stack(rows)
        outcome, void = replays.drive(candidates)
        merit = worth_of(outcome, void, message_coverage(scenario, candidates), fastest_s, replays.rival > 0,
                         strategy[owners], scenario.length)
        better = False
        for k in range(len(plans)):
            mine = np.flatnonzero(owners == k)
            top = mine[merit[mine].argmax()]
            if merit[top] > worth[k] + 1e-4:
                plans[k], worth[k], better = candidates[top], merit[top], True
        if turn and not better:
            break
    return plans
