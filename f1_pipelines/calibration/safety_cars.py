"""Safety cars, VSCs and red flags of real races: frequency, length, pace, closing up (docs/physics.md#safety-car)."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from f1_pipelines.calibration.real_race import lap_status
from f1_pipelines.calibration.stage import CAR
from f1_pipelines.sim.engine.parameters import GREEN, RED, SC, STATUSES, VSC

OUT_OF_QUEUE_S = 45.0  # a car this far behind the leader at the start of a lap can't catch the queue within the lap
CARS_OF_A_KIND = 5  # ratios of the cars of one lap are correlated: this many count as one
LEAST_CARS = 6  # on the lead lap, to measure the spread of the field
RATIO_SD = 0.12  # sd between laps of a kind (quartiles of docs/physics.md#safety-car)
RATIO_SANE = (0.95, 2.6)


def status_by_race(staged: pd.DataFrame, distance: Mapping[str, int]) -> dict[str, np.ndarray]:
    """(L,) status of each lap of each race."""
    return {weekend: lap_status(laps, distance[weekend]) for weekend, laps in staged.groupby("weekend")}


def periods(statuses: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """One row per neutralisation: `weekend`, `kind`, `first_lap`, `laps`, `share` (of the race driven at its start).

    A VSC that becomes a safety car or red flag counts only as the latter.
    """
    rows = []
    for weekend, status in statuses.items():
        starts = np.flatnonzero(np.diff(np.r_[GREEN, status]) != 0)
        ends = np.r_[starts[1:], len(status)][:len(starts)]
        for start, end in zip(starts, ends, strict=True):
            kind, following = status[start], status[end] if end < len(status) else GREEN
            if kind == GREEN or (kind == VSC and following in (SC, RED)):
                continue
            rows.append((weekend, STATUSES[kind], start + 1, end - start, start / len(status)))
    return pd.DataFrame(rows, columns=["weekend", "kind", "first_lap", "laps", "share"])


def event_rates(periods_by_race: pd.DataFrame, circuits: Mapping[str, str], kind: str,
                strength: float = 4.0) -> pd.DataFrame:
    """Events per race by circuit, shrunk to the pooled rate as by `strength` races (docs/physics.md#circuits).

    Args:
        periods_by_race: Rows of `periods`.
        circuits: Circuit of each observed race, with or without an event.

    Returns:
        `value` [1/race], `se`, `races` on the circuit, and on `""` for the pooled rate.
    """
    count = periods_by_race[periods_by_race["kind"] == kind].groupby("weekend").size()
    per_race = pd.Series({weekend: float(count.get(weekend, 0)) for weekend in circuits})
    pooled = max(float(per_race.mean()), 0.5 / len(per_race))
    by_circuit = per_race.groupby(pd.Series(circuits)).agg(["sum", "size"])
    races = by_circuit["size"] + strength
    value = (by_circuit["sum"] + strength * pooled) / races
    frame = pd.DataFrame({"value": value, "se": np.sqrt(value / races), "races": by_circuit["size"]})
    frame.loc[""] = (pooled, np.sqrt(pooled / strength), 0)
    return frame


def lap_ratios(staged: pd.DataFrame) -> pd.DataFrame:
    """One row per neutralised lap without a stop: `weekend`, `driver`, `lap`, `kind`, `ratio`.

    The ratio is to the driver's median clean lap of that race. Kinds: `vsc` and `sc` (that status all lap),
    `vsc_ending`, `sc_first_leader` and `sc_first_catch` (lap of deployment; leader, and cars more than 45 s behind),
    `sc_leader` and `sc_catch` (the same in later laps). A lap can have two kinds.
    """
    clean_s = staged["lap_time_s"].where(staged["clean"])
    usual = clean_s.groupby([staged["weekend"], staged["driver"]]).transform("median")
    frame = staged[[*CAR, "lap", "position"]].assign(ratio=staged["lap_time_s"] / usual)
    line = staged.groupby(CAR)["session_time_s"].shift()
    leader = line.groupby([staged["weekend"], staged["lap"]]).transform("min")
    sc_before = staged.groupby(CAR)["sc"].shift(fill_value=False)
    sc_after = staged.groupby(CAR)["sc"].shift(-1, fill_value=False).astype(bool)
    only = staged["sc"] & ~staged["red"]
    first, later = only & ~sc_before & sc_after, only & ~staged["vsc"] & sc_before & sc_after
    ahead, back = line == leader, line - leader > OUT_OF_QUEUE_S
    plain = (staged["lap"] > 1) & ~staged["pit_in"] & ~staged["pit_out"] & frame["ratio"].between(*RATIO_SANE) \
        & staged["dry"]
    kinds = {
        "vsc": staged["vsc"] & ~staged["sc"] & ~staged["red"] & ~staged["vsc_ending"] & staged["before_slow"],
        "vsc_ending": staged["vsc_ending"] & ~staged["sc"] & ~staged["red"] & staged["before_slow"],
        "sc": later & ~staged["yellow"], "sc_first_leader": first & ahead, "sc_first_catch": first & back,
        "sc_leader": later & ahead, "sc_catch": later & back}
    return pd.concat([frame[mask & plain].assign(kind=kind)[[*CAR, "lap", "kind", "ratio"]]
                      for kind, mask in kinds.items()], ignore_index=True)


def ratio_by_race(ratios: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Lap ratio of one kind by race: `weekend`, `value`, `se`, `n`.

    The value is the median, but the mean for cars that catch the queue: they start slowly and continue at nearly racing
    speed once race control permits, and the mean gives how far they close up.
    """
    by_race = ratios[ratios["kind"] == kind].groupby("weekend")["ratio"]
    value, n = by_race.mean() if kind.endswith("catch") else by_race.median(), by_race.size()
    independent = np.sqrt((n / CARS_OF_A_KIND).clip(lower=1.0))
    return pd.DataFrame({"value": value, "n": n, "se": RATIO_SD / independent}).reset_index()


def spread_under_sc(staged: pd.DataFrame, sc_periods: pd.DataFrame) -> pd.DataFrame:
    """Measure how the field closes up in safety car periods of at least 4 laps that start after lap 3.

    Returns:
        `weekend`; `lap_of_sc` (0: last green lap, 1: lap of deployment, -1: last SC lap, 99: next green lap);
        `spread_s` from the leader to the last car on the lead lap; `median_gap_s` between cars on the lead lap.
    """
    rows = []
    by_race = dict(list(staged.groupby("weekend")))
    long_periods = sc_periods[(sc_periods["kind"] == "sc") & (sc_periods["laps"] >= 4) & (sc_periods["first_lap"] > 3)]
    for event in long_periods.itertuples():
        laps = by_race[event.weekend]
        for k in range(event.laps + 2):
            lap = event.first_lap - 1 + k
            at_line = np.sort(laps.loc[laps["lap"] == lap, "session_time_s"].dropna().to_numpy())
            next_lap = np.nan_to_num(laps.loc[laps["lap"] == lap + 1, "session_time_s"].min(), nan=np.inf)
            if not len(at_line):
                continue
            # Cars on the lead lap, up to 110 s as in docs/physics.md#safety-car.
            at_line = at_line[at_line < min(next_lap, at_line[0] + 110.0)]
            if len(at_line) < LEAST_CARS:
                continue
            lap_of_sc = k if k < event.laps else (-1 if k == event.laps else 99)
            rows.append((event.weekend, lap_of_sc, at_line[-1] - at_line[0], float(np.median(np.diff(at_line)))))
    return pd.DataFrame(rows, columns=["weekend", "lap_of_sc", "spread_s", "median_gap_s"])
