"""Compare simulated with real races by circuit: places, gaps, passes, stops, safety cars (`sim.distributions`).

Each dry race is replayed from its grid with fitted pace and its real stops, track status and retirements; the same
functions then measure its laps and the real ones. Frequencies of safety cars and retirements are compared with
simulated races that draw them at random.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from f1_pipelines.calibration import incidents, overtaking, safety_cars, stops, undercut
from f1_pipelines.calibration.races import dry_races, fit_races
from f1_pipelines.calibration.replay import replay
from f1_pipelines.calibration.simulated_laps import simulated_laps
from f1_pipelines.calibration.stage import stage_laps
from f1_pipelines.calibration.validation import ReplayCase, own_circuit, pace_of
from f1_pipelines.sim import CircuitParameters, EngineParameters, RaceSetup, new_state, prepare, step
from f1_pipelines.sim.engine.parameters import STATUSES
from f1_pipelines.sim.engine.state import ACCIDENT, MECHANICAL
from f1_pipelines.tables.sim import DISTRIBUTIONS

FREE_RACES = 400  # simulated per circuit, to count safety cars and retirements
CARS = 20
CLOSE_S = 1.0
GAP_PLACES = (2, 5, 10)
LEAST_RACES = 20  # with fewer, a quantity is compared over all circuits only


def distributions(races: Sequence[ReplayCase], results: pd.DataFrame, circuit: Mapping[str, str],
                  free: Mapping[str, CircuitParameters], events: pd.DataFrame, retired: pd.DataFrame,
                  engine: EngineParameters, episodes: int = 2) -> pd.DataFrame:
    """Build the rows of `sim.distributions`.

    Args:
        races: The races of `validation.replayable`.
        results: Rows of `race.results`.
        circuit: Track by weekend.
        free: Parameters by circuit for the races that draw their events.
        events, retired: Real neutralisations and retirements of the evidence, including wet races.
        engine: Engine parameters of the replays.
        episodes: Replays measured for each real race.
    """
    places = [grid_to_flag(race, np.arange(len(race.real.drivers)), race.real.finish) for race in races]
    real = pd.concat([measures(pd.concat([race.laps for race in races]), results),
                      *(flag_gaps(race.real.weekend, race.gap_s[race.real.finishers]) for race in races), *places])
    parts: list[pd.DataFrame] = []
    replayed_laps: dict[str, list[pd.DataFrame]] = {race.real.weekend: [] for race in races}
    for race in races:
        own = own_circuit(race.circuit, race.real, race.fit)
        result = replay(race.real, own, pace_of(race.real, race.fit), episodes, engine=engine)
        for episode in range(episodes):
            replayed_laps[race.real.weekend].append(simulated_laps(result, race.real, episode))
            end = result.line_s[-1, episode]
            parts.append(flag_gaps(race.real.weekend, (end - end.min())[race.real.finishers]))
            parts.append(grid_to_flag(race, np.arange(len(race.real.drivers)), result.place[episode]))
    for episode in range(episodes):
        laps = pd.concat([frames[episode] for frames in replayed_laps.values()], ignore_index=True)
        parts.append(measures(stage_laps(laps), results))
    simulated = pd.concat(parts)
    rows = [*compare(real, simulated, circuit), *compare_events(events, retired, circuit, free)]
    return DISTRIBUTIONS.conform(pd.DataFrame(rows, columns=DISTRIBUTIONS.column_names))


def measures(staged: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Measure staged laps: one row per race and quantity with `weekend`, `quantity`, `value`."""
    distance = staged.groupby("weekend")["lap"].max().to_dict()
    clean = dry_races(staged)
    pairs = overtaking.pairs(staged, fit_races(clean, distance))
    losses, ratios = stops.stop_losses(staged), safety_cars.lap_ratios(staged)
    first = undercut.undercuts(staged, losses)
    spread = safety_cars.spread_under_sc(staged, safety_cars.periods(safety_cars.status_by_race(staged, distance)))
    by_quantity = {
        "places changed in lap 1, mean": incidents.places_by_race(incidents.first_laps(staged, results)),
        "passes per race, gap < 1.5 s": _by_race(pairs[pairs["gap_s"] < overtaking.FIT_GAP_S], "passed", "sum"),
        "share of clean laps begun < 1 s behind": _by_race(
            clean.assign(close=(clean["gap_s"] < CLOSE_S).astype(float)), "close", "mean"),
        "median gap to the car ahead in pairs < 3 s, s": _by_race(pairs[pairs["gap_s"] < 3.0], "gap_s", "median"),
        "lap scatter, robust sd of pairs' loss, s": _by_race(pairs[pairs["gap_s"] > 3.0], "loss_s", _mad),
        "stop loss green, median, s": _by_race(losses[losses["kind"] == "green"], "loss_s", "median"),
        "stop loss green, robust sd, s": _by_race(losses[losses["kind"] == "green"], "loss_s", _mad),
        "stop loss VSC, s": _by_race(losses[losses["kind"] == "vsc"], "loss_s", "median"),
        "stop loss SC, s": _by_race(losses[losses["kind"] == "sc"], "loss_s", "median"),
        **{f"undercut net gain, stops {laps} apart, s": _by_race(first[first["laps"] == laps], "net_s", "mean")
           for laps in range(1, undercut.MOST_LAPS + 1)},
        "lap under SC, x green": _by_race(ratios[ratios["kind"] == "sc"], "ratio", "median"),
        "lap under VSC, x green": _by_race(ratios[ratios["kind"] == "vsc"], "ratio", "median"),
        **{f"spread of the lead lap, {name}, s": _by_race(spread[spread["lap_of_sc"] == lap], "spread_s", "median")
           for lap, name in ((0, "lap before SC"), (1, "SC lap 1"), (2, "SC lap 2"), (3, "SC lap 3"),
                             (-1, "last SC lap"), (99, "lap after SC"))}}
    return pd.concat([rows[["weekend", "value"]].assign(quantity=name) for name, rows in by_quantity.items()])


def flag_gaps(weekend: str, gap_s: np.ndarray) -> pd.DataFrame:
    """Gaps to the winner at the flag [s] of places 2, 5 and 10, among cars on the lead lap."""
    ranked = np.sort(gap_s[(gap_s < 120.0)])
    ranked = ranked if len(ranked) and ranked[0] == 0.0 else np.r_[0.0, ranked]
    rows = [(weekend, f"gap to the winner, P{place}, s", ranked[place - 1]) for place in GAP_PLACES
            if place <= len(ranked)]
    return pd.DataFrame(rows, columns=["weekend", "quantity", "value"])


def grid_to_flag(race: ReplayCase, grid: np.ndarray, finish: np.ndarray) -> pd.DataFrame:
    """Mean |places changed| from grid to flag among the real finishers."""
    finishers = race.real.finishers
    moved = np.abs(pd.Series(grid[finishers]).rank() - pd.Series(finish[finishers]).rank()).mean()
    return pd.DataFrame([(race.real.weekend, "places changed, grid to flag, mean", moved)],
                        columns=["weekend", "quantity", "value"])


def compare(real: pd.DataFrame, simulated: pd.DataFrame, circuit: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    """Mean of each quantity over races, for all circuits together and for each."""
    both = pd.DataFrame({name: rows.groupby(["quantity", "weekend"])["value"].mean()
                         for name, rows in (("real", real), ("simulated", simulated))}).dropna().reset_index()
    both["circuit"] = both["weekend"].map(circuit).str.split("/").str[0]
    for quantity, rows in both.groupby("quantity"):
        yield "all", quantity, *_means(rows)
        if len(rows) >= LEAST_RACES:
            for name, of_circuit in rows.groupby("circuit"):
                yield name, quantity, *_means(of_circuit)


def compare_events(events: pd.DataFrame, retired: pd.DataFrame, circuit: Mapping[str, str],
                   free: Mapping[str, CircuitParameters]) -> Iterator[tuple[Any, ...]]:
    """Compare neutralisations and retirements of real races with those of races that draw them."""
    weekends = pd.Series(sorted(retired["weekend"].unique()))
    track = weekends.map(circuit)
    real = {f"{kind} per race": weekends.map(events[events["kind"] == kind].groupby("weekend").size()).fillna(0.0)
            for kind in STATUSES[1:]}
    for kind in ("sc", "vsc"):
        real[f"laps of a {kind}"] = weekends.map(events[events["kind"] == kind].groupby("weekend")["laps"].mean())
    out = retired[["accident", "mechanical"]].any(axis=1).groupby(retired["weekend"]).mean()
    real["retirements per car"] = weekends.map(out)
    drawn = {name: free_events(parameters) for name, parameters in free.items() if (track == name).any()}
    races = track[track.isin(list(drawn))].value_counts()
    for quantity, values in real.items():
        compared = values[track.isin(list(drawn)) & values.notna()]
        simulated = sum(drawn[name][quantity] * n for name, n in races.items()) / races.sum()
        yield "all", quantity, float(compared.mean()), _se(compared), float(simulated), len(compared)
        for name in drawn:
            own = values[(track == name) & values.notna()]
            if len(own):
                yield name, quantity, float(own.mean()), _se(own), float(drawn[name][quantity]), len(own)


def free_events(circuit: CircuitParameters, races: int = FREE_RACES) -> dict[str, float]:
    """Neutralisations per race, their mean length [laps] and retirements per car in simulated races without stops."""
    setup = RaceSetup(circuits=(circuit,), seeds=np.arange(races), car_pace_s=np.linspace(-0.8, 0.8, CARS),
                      two_compound_rule=False, engine=EngineParameters(puncture_per_lap_past=0.0))
    race = prepare(setup)
    state, before = new_state(race), np.zeros(races, dtype=int)
    count, laps = dict.fromkeys(STATUSES[1:], 0), dict.fromkeys(STATUSES[1:], 0)
    vsc_before = np.zeros(races, dtype=bool)
    while state.lap < race.laps:
        state = step(race, state)
        now = np.asarray(state.status) if state.lap < race.laps else np.zeros(races, dtype=int)
        for code, name in enumerate(STATUSES[1:], start=1):
            count[name] += int(((now == code) & (before != code)).sum())
            laps[name] += int((now == code).sum())
        count["vsc"] -= int((vsc_before & (now > 1)).sum())  # a VSC that became an SC counts as SC
        before, vsc_before = now, now == 1
    out = np.isin(state.out, (ACCIDENT, MECHANICAL)).mean()
    return {**{f"{name} per race": n / races for name, n in count.items()},
            **{f"laps of a {name}": laps[name] / max(count[name], 1) for name in ("sc", "vsc")},
            "retirements per car": float(out)}


def _by_race(rows: pd.DataFrame, column: str, how: Any) -> pd.DataFrame:
    return rows.groupby("weekend")[column].agg(how).rename("value").dropna().reset_index()


def _mad(values: pd.Series) -> float:
    return float(1.4826 * (values - values.median()).abs().median())


def _se(values: pd.Series) -> float | None:
    return float(values.std() / np.sqrt(len(values))) if len(values) > 1 else None


def _means(rows: pd.DataFrame) -> tuple[float, float | None, float, int]:
    return float(rows["real"].mean()), _se(rows["real"]), float(rows["simulated"].mean()), len(rows)
