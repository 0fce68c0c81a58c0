"""How a plan of calls is made better, one thought at a time: `improve(...)`. A lap holds one command here as well."""
from __future__ import annotations

import itertools

import numpy as np

from f1_pipelines.sim.engine.drive import CONSERVE, FUEL_SAVE, PUSH, RACE, TEMP_COOL, TEMP_WARM, TYRE_SAVE
from f1_pipelines.sim.engine.parameters import SC, VSC
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring import dimensions
from f1_pipelines.sim.scoring.announcements import placed, windows
from f1_pipelines.sim.scoring.outcome import Outcome
from f1_pipelines.sim.scoring.schedules import ATTACK, DEFEND, MODE, NOTHING, PIT, TEMP, Copies

ROUNDS, KEPT = 6, 3  # of climbing; plans that go on after the first
LONG_LAPS = 20
SAFE_LAPS = 0.10  # of fuel a plan keeps at the flag
Stops = tuple[tuple[int, int], ...]  # (lap, compound), laps from 1


def with_fuel(scenario: Scenario, sets: list[Stops]) -> np.ndarray:
    """Schedules (K, L) with these stops, saving fuel from the first lap on for as long as the tank asks for it."""
    burn = np.where(scenario.status == SC, 0.5, np.where(scenario.status == VSC, 0.65, 1.0))
    short = SAFE_LAPS - scenario.fuel_laps[0] - np.sum(1.0 - burn)
    saves = 0.12 * burn
    codes = np.full((len(sets), scenario.laps), NOTHING)
    for row, stops in zip(codes, sets, strict=True):
        for lap, compound in stops:
            row[lap - 1] = PIT + compound
        free = np.flatnonzero(row == NOTHING)
        if short <= 0 or not len(free):  # nothing to save, or a stop in every lap
            continue
        begin = int(free[0])
        row[begin] = MODE + FUEL_SAVE
        enough = np.flatnonzero(np.cumsum(saves[begin:]) >= short)
        after = free[free > begin + (enough[0] if len(enough) else scenario.laps)]
        if len(after):
            row[after[0]] = MODE + RACE
    return codes


def worth_of(facts: Outcome, void: np.ndarray, message_share: np.ndarray, fastest_s: float, rival: bool,
             strategy: np.ndarray, length: float) -> np.ndarray:
    """(K,) what plans are worth in points of the score, up to a constant.

    Args:
        void: Calls that could do nothing; `message_share` share of what was due that there is a lap for.
        strategy: Dimension of their stops.
        length: Of the race, in sprints.
    """
    weight, d = dimensions.WEIGHTS, dimensions
    late = np.nan_to_num(facts.time_s - fastest_s, nan=50.0 * length) / length
    lost = d.PLACE_COST * facts.position + d.SECOND_COST * late
    lost = lost + d.RIVAL_SHARE * (facts.beaten_by_rival & rival) + 1.0 * ~facts.finished
    waste = facts.fuel_left_laps - np.maximum(d.SPARE_LAPS + facts.fuel_slow_laps, facts.fuel_natural_laps)
    fuel = np.where(facts.ran_dry, -1.0, 1.0 - np.clip(waste / d.WASTE_SPAN_LAPS, 0.0, 1.0))  # operations as well
    return (weight["fuel"] * fuel - weight["race"] * lost + weight["strategy"] * strategy
            + weight["comms"] * message_share
            - weight["operations"] * d.VOID_COST * void - weight["tyres"] * facts.tyre_loss_s / length / d.TYRE_SPAN_S)


def points(facts: Outcome, void: np.ndarray, message_share: np.ndarray, strategy: np.ndarray, best: int,
           rival: bool, length: float) -> np.ndarray:
    """(K,) scores of finished plans, if the plan `best` is the race they are judged against."""
    weight, d = dimensions.WEIGHTS, dimensions
    places = np.maximum(facts.position - facts.position[best], 0)
    seconds = np.maximum(np.nan_to_num(facts.time_s - facts.time_s[best], nan=0.0) / length - d.LUCK_S, 0.0)
    race = np.clip(1.0 - d.PLACE_COST * places - d.SECOND_COST * seconds, 0.0, 1.0)
    if rival:
        ahead = np.where(facts.beaten_by_rival[best], race, 0.0)
        race = (1.0 - d.RIVAL_SHARE) * race + d.RIVAL_SHARE * np.where(facts.beaten_by_rival, ahead, 1.0)
    waste = facts.fuel_left_laps - np.maximum(d.SPARE_LAPS + facts.fuel_slow_laps, facts.fuel_natural_laps)
    fuel = np.where(facts.ran_dry, -1.0, 1.0 - np.clip(waste / d.WASTE_SPAN_LAPS, 0.0, 1.0))
    tyres = 1.0 - np.clip((facts.tyre_loss_s / length - d.TYRE_FREE_S) / d.TYRE_SPAN_S, 0.0, 1.0)
    return (weight["race"] * race * facts.finished + weight["strategy"] * strategy + weight["tyres"] * tyres
            + weight["fuel"] * fuel + weight["comms"] * message_share - weight["operations"] * d.VOID_COST * void)


def said_share(scenario: Scenario, codes: np.ndarray) -> np.ndarray:
    """(K,) share of what is due that the free laps of each plan have room for."""
    shares, known = np.empty(len(codes)), {}
    for k, row in enumerate(codes):
        stops = stops_of(row)
        if stops not in known:
            known[stops] = windows(scenario, stops)
        free = (np.flatnonzero(row == NOTHING) + 1).tolist()
        shares[k] = len(placed(known[stops], free)) / len(known[stops]) if known[stops] else 1.0
    return shares


def stops_of(row: np.ndarray) -> Stops:
    """The stops in a plan."""
    return tuple((int(lap) + 1, int(row[lap]) - PIT) for lap in np.flatnonzero((row >= PIT) & (row < PIT + 5)))


def changes(row: np.ndarray, turn: int = 0) -> list[np.ndarray]:
    """Plans with the same stops that differ from this one by one thought; in a long race some each turn."""
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
    for one, two in itertools.pairwise([*called, len(free)]):  # the same stretch, later
        for later in (1, 2):
            if one + later < min(two, len(free)):
                calls = [(free[one], NOTHING), (free[one + later], row[free[one]])]
                if two < len(free):
                    calls.insert(1, (free[two], NOTHING))
                if two + later < len(free):
                    calls.append((free[two + later], row[free[two]]))
                with_calls(*calls)
    return plans


def improve(scenario: Scenario, copies: Copies, plans: np.ndarray, strategy: np.ndarray,
            fastest_s: float) -> np.ndarray:
    """Climb from each plan, whose stops are worth `strategy`. Returns the plans."""
    plans, worth = plans.copy(), np.full(len(plans), -np.inf)
    for turn in range(ROUNDS + 1):
        rows, of = list(plans), list(range(len(plans)))
        for k, row in enumerate(plans):
            if turn == 1 or (turn and worth[k] >= np.sort(worth)[-min(KEPT, len(worth))]):
                new = changes(row, turn)
                rows += new
                of += [k] * len(new)
        owners, tried = np.array(of), np.stack(rows)
        facts, void = copies.drive(tried)
        merit = worth_of(facts, void, said_share(scenario, tried), fastest_s, copies.rival > 0, strategy[owners],
                         scenario.length)
        better = False
        for k in range(len(plans)):
            mine = np.flatnonzero(owners == k)
            top = mine[merit[mine].argmax()]
            if merit[top] > worth[k] + 1e-4:
                plans[k], worth[k], better = tried[top], merit[top], True
        if turn and not better:
            break
    return plans
