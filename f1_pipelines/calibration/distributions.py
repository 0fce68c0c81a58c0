"""Simulated races against real ones by circuit: places, gaps, passes, stops, safety cars (`sim.distributions`).

Each dry race is replayed from its grid with fitted pace and its real stops, track status and retirements; its laps are
then measured by the very functions that measured the real ones. How often safety cars and retirements come is
compared with races that draw them.
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
from f1_pipelines.calibration.validation import RaceKnowledge, own_circuit, pace_of
from f1_pipelines.sim import CircuitParameters, EngineParameters, RaceSetup, new_state, prepare, step
from f1_pipelines.sim.engine.parameters import STATUSES
from f1_pipelines.sim.engine.state import ACCIDENT, MECHANICAL
from f1_pipelines.tables.sim import DISTRIBUTIONS

FREE_RACES = 400  # per circuit, to count safety cars and retirements in
CARS = 20
CLOSE_S = 1.0
AT_FLAG = (2, 5, 10)
LEAST_RACES = 20  # rarer quantities are compared over all circuits only


def distributions(races: Sequence[RaceKnowledge], results: pd.DataFrame, circuit: Mapping[str, str],
                  free: Mapping[str, CircuitParameters], events: pd.DataFrame, retired: pd.DataFrame,
                  engine: EngineParameters, episodes: int = 2) -> pd.DataFrame:
    """Rows of `sim.distributions`.

    Args:
        races: The replayable ones (`validation.replayable`).
        results: Rows of `race.results`.
        circuit: Track by weekend.
        free: Parameters by circuit for the races that draw their events.
        events, retired: Of the evidence: real neutralisations and retirements, wet races too.
        engine: Of the replays.
        episodes: Replays measured for each real race.
    """
    places = [grid_to_flag(known, np.arange(len(known.real.drivers)), known.real.finish) for known in races]
    real = pd.concat([measures(pd.concat([known.laps for known in races]), results),
                      *(flag_gaps(known.real.weekend, known.gap_s[known.real.finishers]) for known in races), *places])
    parts: list[pd.DataFrame] = []
    drawn: dict[str, list[pd.DataFrame]] = {known.real.weekend: [] for known in races}
    for known in races:
        own = own_circuit(known.circuit, known.real, known.fit)
        result = replay(known.real, own, pace_of(known.real, known.fit), episodes, engine=engine)
        for episode in range(episodes):
            drawn[known.real.weekend].append(simulated_laps(result, known.real, episode))
            end = result.line_s[-1, episode]
            parts.append(flag_gaps(known.real.weekend, (end - end.min())[known.real.finishers]))
            parts.append(grid_to_flag(known, np.arange(len(known.real.drivers)), result.place[episode]))
    for episode in range(episodes):
        laps = pd.concat([frames[episode] for frames in drawn.values()], ignore_index=True)
        parts.append(measures(stage_laps(laps), results))
    simulated = pd.concat(parts)
    rows = [*compare(real, simulated, circuit), *compare_events(events, retired, circuit, free)]
    return DISTRIBUTIONS.conform(pd.DataFrame(rows, columns=DISTRIBUTIONS.column_names))


def measures(staged: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """What is measured on laps, one row per race and quantity: `weekend`, `quantity`, `value`."""
    distance = staged.groupby("weekend")["lap"].max().to_dict()
    clean = dry_races(staged)
    pairs = overtaking.pairs(staged, fit_races(clean, distance))
    losses, ratios = stops.stop_losses(staged), safety_cars.lap_ratios(staged)
    first = undercut.undercuts(staged, losses)
    spread = safety_cars.spread_under_sc(staged, safety_cars.periods(safety_cars.status_by_race(staged, distance)))
    by_quantity = {
        "places changed in lap 1, mean": incidents.places_by_race(incidents.first_laps(staged, results)),
        "passes per race, gap < 1.5 s": _by_race(pairs[pairs["gap_s"] < overtaking.FIT_GAP_S], "passed", "sum"),
        "share of clean laps begun < 1 s behind": _share_close(clean),
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
    """Gaps to the winner at the flag of second, fifth and tenth, those on the lead lap."""
    ranked = np.sort(gap_s[(gap_s < 120.0)])
    ranked = ranked if len(ranked) and ranked[0] == 0.0 else np.r_[0.0, ranked]
    rows = [(weekend, f"gap to the winner, P{place}, s", ranked[place - 1]) for place in AT_FLAG
            if place <= len(ranked)]
    return pd.DataFrame(rows, columns=["weekend", "quantity", "value"])


def grid_to_flag(known: RaceKnowledge, grid: np.ndarray, finish: np.ndarray) -> pd.DataFrame:
    """Mean |places changed| from grid to flag among the real finishers."""
    among = known.real.finishers
    moved = np.abs(pd.Series(grid[among]).rank() - pd.Series(finish[among]).rank()).mean()
    return pd.DataFrame([(known.real.weekend, "places changed, grid to flag, mean", moved)],
                        columns=["weekend", "quantity", "value"])


def compare(real: pd.DataFrame, simulated: pd.DataFrame, circuit: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    """Means over races by quantity, of all circuits and of each."""
    ours = simulated.groupby(["quantity", "weekend"])["value"].mean()
    theirs = real.groupby(["quantity", "weekend"])["value"].mean()
    both = pd.DataFrame({"real": theirs, "simulated": ours}).dropna().reset_index()
    both["circuit"] = both["weekend"].map(circuit).str.split("/").str[0]
    for quantity, rows in both.groupby("quantity"):
        yield "all", quantity, *_means(rows)
        if len(rows) >= LEAST_RACES:
            for name, here in rows.groupby("circuit"):
                yield name, quantity, *_means(here)


def compare_events(events: pd.DataFrame, retired: pd.DataFrame, circuit: Mapping[str, str],
                   free: Mapping[str, CircuitParameters]) -> Iterator[tuple[Any, ...]]:
    """Neutralisations and retirements: real races against races that draw them."""
    weekends = pd.Series(sorted(retired["weekend"].unique()))
    here = weekends.map(circuit)
    real = {f"{kind} per race": weekends.map(events[events["kind"] == kind].groupby("weekend").size()).fillna(0.0)
            for kind in STATUSES[1:]}
    for kind in ("sc", "vsc"):
        real[f"laps of a {kind}"] = weekends.map(events[events["kind"] == kind].groupby("weekend")["laps"].mean())
    out = retired[["accident", "mechanical"]].any(axis=1).groupby(retired["weekend"]).mean()
    real["retirements per car"] = weekends.map(out)
    drawn = {name: free_events(parameters) for name, parameters in free.items() if (here == name).any()}
    shares = here[here.isin(list(drawn))].value_counts()
    for quantity, values in real.items():
        known = here.isin(list(drawn)) & values.notna()
        simulated = sum(drawn[name][quantity] * n for name, n in shares.items()) / shares.sum()
        yield ("all", quantity, float(values[known].mean()), _se(values[known]), float(simulated), int(known.sum()))
        for name in drawn:
            own = values[(here == name) & values.notna()]
            if len(own):
                yield name, quantity, float(own.mean()), _se(own), float(drawn[name][quantity]), len(own)


def free_events(circuit: CircuitParameters, races: int = FREE_RACES) -> dict[str, float]:
    """Neutralisations per race, their laps, and retirements per car of simulated races without a stop."""
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
        count["vsc"] -= int((vsc_before & (now > 1)).sum())  # one that turned into a safety car counts as that
        before, vsc_before = now, now == 1
    out = np.isin(state.out, (ACCIDENT, MECHANICAL)).mean()
    return {**{f"{name} per race": n / races for name, n in count.items()},
            **{f"laps of a {name}": laps[name] / max(count[name], 1) for name in ("sc", "vsc")},
            "retirements per car": float(out)}


def _share_close(clean: pd.DataFrame) -> pd.DataFrame:
    return _by_race(clean.assign(close=(clean["gap_s"] < CLOSE_S).astype(float)), "close", "mean")


def _by_race(rows: pd.DataFrame, column: str, how: Any) -> pd.DataFrame:
    return rows.groupby("weekend")[column].agg(how).rename("value").dropna().reset_index()


def _mad(values: pd.Series) -> float:
    return float(1.4826 * (values - values.median()).abs().median())


def _se(values: pd.Series) -> float | None:
    return float(values.std() / np.sqrt(len(values))) if len(values) > 1 else None


def _means(rows: pd.DataFrame) -> tuple[float, float | None, float, int]:
    return float(rows["real"].mean()), _se(rows["real"]), float(rows["simulated"].mean()), len(rows)
