"""Candidate sets of stops: `stop_sets(scenario)`, `race_stop_sets(scenario, replays)`."""
from __future__ import annotations

import itertools

import numpy as np

from f1_pipelines.sim.engine.compiled import Records
from f1_pipelines.sim.engine.parameters import GREEN, HARD, INTER, MEDIUM, SOFT, WET
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring.schedules import ScenarioReplays
from f1_pipelines.sim.scoring.search import Stops, with_fuel

PLACE_S, RIVAL_S, LOST_S = 5.0, 8.0, 100.0  # cost of a place, the rival and a retirement [s of a sprint]
DRY = (SOFT, MEDIUM, HARD)
MAX_RACED_SETS, ALIKE_LAPS = 36, 6  # of a Grand Prix: sets raced; sets closer than this count as one


def cost_s(outcome: Records, rival: bool, length: float) -> np.ndarray:
    """(K,) results in seconds: race time, places, rival, retirement. Comparable within one race only."""
    slowest = np.nanmax(outcome["time_s"]) if np.isfinite(outcome["time_s"]).any() else 0.0
    time_s = np.where(np.isfinite(outcome["time_s"]), outcome["time_s"], slowest)
    return time_s + length * (PLACE_S * outcome["position"] + RIVAL_S * (outcome["beaten_by_rival"] & rival)
                              + LOST_S * ~outcome["finished"])


def stop_sets(scenario: Scenario) -> list[Stops]:
    """Candidate stops of a sprint."""
    laps, dry = scenario.laps, DRY
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


def race_stop_sets(scenario: Scenario, replays: ScenarioReplays) -> list[Stops]:
    """Candidate stops of a Grand Prix: of thousands driven without other cars, the best of each kind."""
    sets = list(dict.fromkeys([*_dry_sets(scenario), *_wet_sets(scenario)]))
    cost = cost_s(replays.drive_alone(with_fuel(scenario, sets)), False, scenario.length)
    distinct: dict[tuple[tuple[int, int], ...], Stops] = {}
    for k in cost.argsort(kind="stable"):
        distinct.setdefault(tuple((lap // ALIKE_LAPS, tyre) for lap, tyre in sets[k]), sets[k])
        if len(distinct) == MAX_RACED_SETS:
            break
    return list(distinct.values())


def moved(scenario: Scenario, stops: Stops) -> list[Stops]:
    """Variants with one stop one to three laps earlier or later."""
    neighbours = []
    for k, (lap, tyre) in enumerate(stops):
        low = stops[k - 1][0] + 2 if k else 1
        high = stops[k + 1][0] - 2 if k + 1 < len(stops) else scenario.laps - 1
        neighbours += [(*stops[:k], (other, tyre), *stops[k + 1:]) for other in range(lap - 3, lap + 4)
                       if other != lap and low <= other <= high]
    return neighbours


def _dry_sets(scenario: Scenario) -> list[Stops]:
    """Up to three stops on a grid of laps that includes the laps of a closed track."""
    laps = scenario.laps
    slow = (np.flatnonzero(scenario.status != GREEN) + 1).tolist()
    sets: list[Stops] = [()]
    for count, every in ((1, 2), (2, 4), (3, 8)):
        grid = sorted({*range(every, laps - 1, every), *(lap for lap in slow[:6] if lap < laps)})
        sets += [tuple(zip(when, tyres, strict=True)) for when in itertools.combinations(grid, count)
                 for tyres in itertools.product(DRY, repeat=count)]
    return sets


def _wet_sets(scenario: Scenario) -> list[Stops]:
    """Stops for rain tyres and back to slicks, with and without a dry stop before or after."""
    if scenario.shower is None:
        return []
    laps, first = scenario.laps, scenario.shower.onset_lap
    end = min(first + scenario.shower.length_laps, laps)
    kinds = (INTER, WET) if scenario.shower.peak > 0.75 else (INTER,)
    into = [(lap, c) for lap in range(max(first - 1, 1), min(first + 4, laps)) for c in kinds]
    out = [(lap, c) for lap in range(end, min(end + 6, laps)) for c in DRY]
    before = [()] + [((lap, c),) for lap in range(6, first - 4, 6) for c in (MEDIUM, HARD)]
    after = [()] + [((lap, c),) for lap in range(end + 12, laps - 4, 8) for c in DRY]
    back = [()] + [((lap, c),) for lap, c in out]
    return [(*early, stop, *slicks, *late) for early in before for stop in into for slicks in back for late in after
            if (slicks or not late) and (not slicks or slicks[0][0] > stop[0] + 1)]
