"""Slices of an evaluation by season, circuit and weather: where the gain over grid order comes from."""
from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from f1_pipelines.evaluation.bootstrap import mean_interval
from f1_pipelines.identity.circuits import UnknownCircuit, circuit_of

WET_SHARE = 0.02  # share of laps on rain tyres from which a race counts as wet
RAIN_TYRES = ("INTERMEDIATE", "WET")


def kinds_of_race(calendar: pd.DataFrame, laps: pd.DataFrame) -> pd.DataFrame:
    """The slices that each weekend belongs to, as text.

    Args:
        calendar: Rows of `race.calendar`: weekend, season, circuit, layout.
        laps: Rows of `race.laps`: weekend, compound. The weather of a weekend without rows is unknown.

    Returns:
        Indexed by weekend: season; circuit (race, street or unknown); weather (dry, wet or unknown).
    """
    known = laps[laps["compound"].notna() & (laps["compound"] != "UNKNOWN")]
    rain = known["compound"].isin(RAIN_TYRES).groupby(known["weekend"]).mean()
    weather = calendar["weekend"].map((rain >= WET_SHARE).map({True: "wet", False: "dry"})).fillna("unknown")
    return pd.DataFrame({
        "season": calendar["season"].astype(str), "weather": weather.astype(str),
        "circuit": [_kind(row.circuit, row.layout) for row in calendar.itertuples()],
    }).set_index(calendar["weekend"].astype(str))


def by_slice(races: pd.DataFrame, kinds: pd.DataFrame, against: str = "grid") -> pd.DataFrame:
    """Mean Spearman of all starters in each slice, with paired intervals of the difference from another predictor.

    Args:
        races: Rows of `ranking.evaluation`.
        kinds: From `kinds_of_race`.
        against: Predictor to compare with.

    Returns:
        One row per (predictor, protocol, kind, slice): n_races, spearman, delta_spearman, delta_low, delta_high.
    """
    starters = races[races["population"] == "starters"]
    return pd.DataFrame([row for protocol, part in starters.groupby("protocol")
                         for row in _slices(part, str(protocol), kinds, against)])


def _slices(part: pd.DataFrame, protocol: str, kinds: pd.DataFrame, against: str) -> Iterable[dict[str, object]]:
    rho = part.set_index(["weekend", "predictor"])["spearman"].astype("float64").unstack()  # noqa: PD010
    for kind in kinds.columns:
        for name, races in rho.groupby(kinds[kind].reindex(rho.index).fillna("unknown")):
            for predictor in races.columns:
                deltas = (races[predictor] - races[against]).dropna()
                low, high = mean_interval(deltas)
                yield {"predictor": predictor, "protocol": protocol, "kind": kind, "slice": name,
                       "n_races": len(deltas), "spearman": races[predictor].mean(), "delta_spearman": deltas.mean(),
                       "delta_low": low, "delta_high": high}


def _kind(circuit: str, layout: str) -> str:
    try:
        return circuit_of(circuit, layout).kind
    except UnknownCircuit:
        return "unknown"
