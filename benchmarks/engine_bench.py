"""How the race engine's cost grows, and whether its races look like real ones.

    python -m benchmarks.engine_bench            cost by episodes, cars and laps (CPU seconds, peak memory)
    python -m benchmarks.engine_bench --races    races on priors against what real laps say

One core: run with OMP_NUM_THREADS=1. CPU time, not wall time. Peak memory is that of numpy's own allocations.
"""
from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings

import numpy as np

from f1_pipelines.sim.engine.drive import Calls
from f1_pipelines.sim.engine.parameters import HARD, MEDIUM, RED, SC, VSC
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.results import FINISHED, check_race, classify
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.state import RaceState, new_state
from f1_pipelines.sim.engine.step import run, step


def field(episodes: int, cars: int, laps: int | None, circuit: str = "spa-francorchamps", **more) -> RaceSetup:
    """A batch of races with a pace spread of .64 s, even as in real fields, and a grid that follows it loosely."""
    rng = np.random.default_rng(7)
    pace = np.linspace(-1.04, 1.04, cars) + rng.normal(0.0, 0.15, (episodes, cars))
    grid = (pace + rng.normal(0.0, 0.45, pace.shape)).argsort(axis=1).argsort(axis=1) + 1
    return RaceSetup(circuits=(circuit_prior(circuit),), seeds=np.arange(episodes), car_pace_s=pace, grid=grid,
                     race_laps=laps, **more)


def planned(plan_laps: np.ndarray, plan_compounds: np.ndarray, sc_share: float = 0.0, vsc_share: float = 0.0):
    """A policy that stops on given laps, and earlier when a safety car comes along.

    Args:
        plan_laps: (S, E, N) lap of each stop, 0 for none; `plan_compounds` what is put on.
    """
    rng = np.random.default_rng(11)

    def policy(race: Race, state: RaceState) -> Calls:
        nth = np.minimum(state.stops, len(plan_laps) - 1)[None]
        lap = np.take_along_axis(plan_laps, nth, axis=0)[0]
        compound = np.take_along_axis(plan_compounds, nth, axis=0)[0]
        left = (state.stops < len(plan_laps)) & (lap > 0)
        status = state.status[:, None]
        chance = np.where(status == SC, sc_share, np.where(status == VSC, vsc_share, 0.0))
        chance = np.where(state.status_age[:, None] == 1, chance, 0.0)
        now = left & ((state.lap + 1 >= lap) | ((state.age_laps > 6) & (rng.random(lap.shape) < chance)) |
                      (status == RED))
        return Calls(pit=np.where(now, compound, -1))

    return policy


def stop_plans(episodes: int, cars: int, laps: int, stops: int) -> tuple[np.ndarray, np.ndarray]:
    """Laps and compounds of `stops` stops, scattered as in real races (robust sd about 5 % of the distance)."""
    rng = np.random.default_rng(3)
    at = laps * np.arange(1, stops + 1)[:, None, None] / (stops + 1)
    at = at + rng.normal(0, 0.055 * laps, (stops, episodes, cars))
    compounds = np.broadcast_to(np.array([HARD, MEDIUM, HARD])[:stops, None, None], at.shape)
    return np.sort(np.clip(at, 3, laps - 3), axis=0).astype(int), compounds


def cost_table() -> None:
    """CPU time and memory by size, each with opponents that push, save and stop now and then."""
    print(f"{'episodes':>8} {'cars':>5} {'laps':>5} {'prepare ms':>11} {'run ms':>9} {'us/lap':>9} "
          f"{'episode-laps/s':>15} {'incl. prepare':>14} {'peak MB':>8}")
    sizes = [(1, 6, 12), (16, 6, 12), (256, 6, 12), (4096, 6, 12), (1, 20, 44), (64, 20, 44), (1000, 6, 44),
             (1000, 20, 11), (1000, 20, 22), (1000, 20, 44), (1000, 22, 78)]
    for episodes, cars, laps in sizes:
        setup = field(episodes, cars, laps)
        policy = planned(*stop_plans(episodes, cars, laps, 1))
        repeat = max(1, 400 // episodes)
        start = time.process_time()
        for _ in range(repeat):
            race = prepare(setup)
        prepared = time.process_time()
        calls = [[] for _ in range(repeat)]
        state = new_state(race)
        while state.lap < race.laps:
            calls[0].append(policy(race, state))
            state = step(race, state, calls[0][-1])
        ready = time.process_time()
        for _ in range(repeat):
            state = new_state(race)
            for call in calls[0]:
                state = step(race, state, call)
        end = time.process_time()
        tracemalloc.start()
        run(setup, policy)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        make, drive_s = (prepared - start) / repeat, (end - ready) / repeat
        print(f"{episodes:8d} {cars:5d} {laps:5d} {1e3 * make:11.2f} {1e3 * drive_s:9.2f} {1e6 * drive_s / laps:9.1f} "
              f"{episodes * laps / drive_s:15,.0f} {episodes * laps / (drive_s + make):14,.0f} {peak:8.1f}")


def races(count: int) -> None:
    """Distributions of races on priors, beside the ranges that real ones show (physics.md)."""
    warnings.simplefilter("ignore", RuntimeWarning)  # medians over races in which nobody was left to take them of
    rows = {}
    for circuit, stops in (("bahrain", 2), ("monaco", 1), ("spa-francorchamps", 2)):
        rows[circuit] = race_figures(circuit, stops, count)
    print(f"{'':34}" + "".join(f"{c:>18}" for c in rows) + f"{'real':>24}")
    for name, real in REAL.items():
        print(f"{name:34}" + "".join(f"{rows[c][name]:18.2f}" for c in rows) + f"{real:>24}")
    fit = pass_table(count)
    print("\nP(pass in the lap) by gap and advantage, pooled circuit; real in brackets")
    for gap, line in fit.items():
        print(f"  {gap:10}" + "  ".join(line))


REAL = {
    "P2 behind winner, s (median)": "5-7", "P3": "10-21", "P5": "25-35", "P10": "50-70", "cars on the lead lap": "8-16",
    "passes (gap < 2 s)": "24-35", "share of laps within 1 s": ".20-.24", "grid to flag, Spearman": ".76",
    "SC per race": ".75 (by circuit)", "P(SC)": ".57 (by circuit)", "VSC per race": ".50 (by circuit)",
    "red flags": ".13", "retired per car": ".11", "lap 1: mean places": "1.78", "lap 1: Spearman": ".87",
    "gap P2 after lap 1": "1.1", "gap P5 after lap 1": "3.7", "gap P10 after lap 1": "7.0",
    "gap P20 after lap 1": "13.3",
    "gap P10 after lap 10": "22.8", "spread before SC, s": "90", "spread SC lap 1": "76", "spread SC lap 2": "50",
    "spread SC lap 3": "28", "spread SC lap 4": "22", "spread last SC lap": "10",
    "green stop loss": "18.6-24.2", "SC stop, places lost": "1.3", "green stop, places lost": "4.0",
    "disqualified per race": "0",
}


def race_figures(circuit: str, stops: int, count: int) -> dict[str, float]:
    """The figures of one circuit over `count` races of 20 cars."""
    laps, cars = circuit_prior(circuit).race_laps, 20
    setup = field(count, cars, None, circuit)
    plans, compounds = stop_plans(count, cars, laps, stops)
    compounds = compounds.copy()
    race = prepare(setup)
    history = run(race, planned(plans, compounds, 0.4, 0.12), record=True)
    faults = check_race(race, history)
    assert not faults, faults
    end = history[-1]
    result = classify(race, end)
    out = {}
    order = result.position.argsort(axis=1)
    time_s = np.where(result.laps == laps, result.time_s, np.nan)
    by_place = np.take_along_axis(time_s, order, axis=1)
    for place, name in ((2, "P2 behind winner, s (median)"), (3, "P3"), (5, "P5"), (10, "P10")):
        out[name] = np.nanmedian(by_place[:, place - 1] - by_place[:, 0])
    out["cars on the lead lap"] = ((result.laps == laps) & (result.status == FINISHED)).sum(axis=1).mean()
    passes, close, seen = 0, 0, 0
    for before, after in zip(history[2:], history[3:], strict=False):
        green = (before.status == 0)[:, None]
        free = before.running & after.running & green & (after.stops == before.stops)
        place = before.position
        ahead = np.take_along_axis(before.order, np.maximum(place - 2, 0), axis=1)
        both = free & np.take_along_axis(free, ahead, axis=1) & (place > 1)
        now = np.take_along_axis(after.position, ahead, axis=1)
        passes += (both & (before.gap_ahead_s < 2.0) & (after.position < now)).sum()
        close += (free & (before.gap_ahead_s < 1.0)).sum()
        seen += free.sum()
    out["passes (gap < 2 s)"] = passes / count
    out["share of laps within 1 s"] = close / seen
    finished = result.status == FINISHED
    grid = np.asarray(setup.grid)
    out["grid to flag, Spearman"] = np.mean([_rank_corr(g[f], p[f]) for g, p, f in
                                             zip(grid, result.position, finished, strict=True)])
    status = np.stack([s.status for s in history[:-1]])  # status of lap i + 1
    age = np.stack([s.status_age for s in history[:-1]])
    left = np.stack([s.status_left for s in history[:-1]])
    for code, name in ((SC, "SC per race"), (VSC, "VSC per race"), (RED, "red flags")):
        out[name] = ((status == code) & (age == 1)).sum() / count
    out["P(SC)"] = (status == SC).any(axis=0).mean()
    out["retired per car"] = (end.out > 0).mean()
    first = history[1]
    alive = first.running
    out["lap 1: mean places"] = np.abs(first.position - grid)[alive].mean()
    out["lap 1: Spearman"] = np.mean([_rank_corr(g[f], p[f]) for g, p, f in
                                      zip(grid, first.position, alive, strict=True)])
    for lap, places in ((1, (2, 5, 10, 20)), (10, (10,))):
        state = history[lap]
        line = np.take_along_axis(state.elapsed_s, state.order, axis=1)
        line[line > 1e8] = np.nan
        clean = (status[:lap] == 0).all(axis=0)
        for place in places:
            gap = (line[:, place - 1] - line[:, 0])[clean]
            out[f"gap P{place} after lap {lap}"] = np.nanmedian(gap)
    spread = np.stack([_spread(s, race, 110.0) for s in history])
    lap, episode = np.nonzero((status == SC) & (age == 1) & (np.arange(laps)[:, None] > 8))
    keep = (left[lap, episode] >= 5) & (lap + 4 < laps)
    out["spread before SC, s"] = np.median(spread[lap[keep], episode[keep]])
    for nth in range(1, 5):
        out[f"spread SC lap {nth}"] = np.median(spread[lap[keep] + nth, episode[keep]])
    last, episode = np.nonzero((status == SC) & (left == 1) & (age >= 4))  # the last lap is the row before the state
    out["spread last SC lap"] = np.median(spread[last + 1, episode])
    lost = {0: [], SC: []}
    costs = []
    for before, after in zip(history[5:-1], history[6:], strict=False):
        stopped = (after.stops > before.stops) & after.running & (before.age_laps > 4)
        for code in lost:
            rows = stopped & (before.status == code)[:, None]
            if code == SC:
                rows &= (before.status_age == 1)[:, None]
            lost[code].append((after.position - before.position)[rows])
        rows = stopped & (before.status == 0)[:, None]
        usual = np.nanmedian(np.where(~stopped & after.running, after.elapsed_s - before.elapsed_s, np.nan), axis=1)
        costs.append((after.elapsed_s - before.elapsed_s - usual[:, None])[rows])
    out["green stop loss"] = np.median(np.concatenate(costs))
    out["green stop, places lost"] = np.concatenate(lost[0]).mean()
    out["SC stop, places lost"] = np.concatenate(lost[SC]).mean()
    out["disqualified per race"] = (result.status == 2).sum() / count
    return out


PASSED = {  # docs/physics.md#overtaking, by the advantages below
    "< .5 s": (.07, .13, .21, .29, .39, .53, .71, .86, .93),
    ".5-1 s": (.01, .02, .04, .08, .15, .22, .36, .57, .73),
    "1-1.5 s": (.00, .00, .00, .01, .02, .08, .16, .35, .72),
    "1.5-2 s": (.00, .00, .00, .00, .01, .02, .06, .14, .41),
}
ADVANTAGE = (-2.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


def pass_table(count: int) -> dict[str, list[str]]:
    """Chance of a pass by gap and advantage (free laps without noise), from green laps of full races."""
    setup = field(count, 20, None, "unknown")
    race = prepare(setup)
    history = run(race, planned(*stop_plans(count, 20, race.laps, 2), 0.4, 0.12), record=True)
    gap_at, adv_at, passed = [], [], []
    for before, after in zip(history[2:], history[3:], strict=False):
        free_s = np.asarray(setup.car_pace_s) + before.slope_s * before.wear_laps + before.offset_s
        free = before.running & after.running & (before.status == 0)[:, None] & (after.stops == before.stops)
        place = before.position
        ahead = np.take_along_axis(before.order, np.maximum(place - 2, 0), axis=1)
        both = free & np.take_along_axis(free, ahead, axis=1) & (place > 1) & (before.gap_ahead_s < 2)
        gap_at.append(before.gap_ahead_s[both])
        adv_at.append((np.take_along_axis(free_s, ahead, axis=1) - free_s)[both])
        passed.append((after.position < np.take_along_axis(after.position, ahead, axis=1))[both])
    gap_at, adv_at, passed = (np.concatenate(x) for x in (gap_at, adv_at, passed))
    lines = {}
    for k, (name, real) in enumerate(PASSED.items()):
        inside = (gap_at >= 0.5 * k) & (gap_at < 0.5 * k + 0.5)
        lines[name] = [f"{passed[inside & (adv_at >= a) & (adv_at < b)].mean():.2f} ({r:.2f})"
                       for a, b, r in zip(ADVANTAGE, ADVANTAGE[1:], real, strict=False)]
    return lines


def _spread(state: RaceState, race: Race, limit_s: float) -> np.ndarray:
    """Seconds from the leader to the last car within `limit_s`, (E,)."""
    behind = state.elapsed_s - state.leader_s[:, None]
    return np.where(behind < limit_s, behind, 0.0).max(axis=1)


def _rank_corr(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.argsort().argsort(), b.argsort().argsort()
    return float(np.corrcoef(a, b)[0, 1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", action="store_true", help="distributions instead of cost")
    parser.add_argument("--count", type=int, default=300, help="races per circuit")
    arguments = parser.parse_args()
    if arguments.races:
        races(arguments.count)
    else:
        cost_table()
