"""Lap times on rain tyres relative to a dry lap of the same circuit (docs/physics.md#rain)."""
from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from f1_pipelines.calibration.stage import RAIN_TYRES, SLICKS

QUANTILE = 0.25  # quantile of dry green laps that represents a dry lap


def wet_ratios(staged: pd.DataFrame, circuits: Mapping[str, str]) -> pd.DataFrame:
    """One row per green lap on rain tyres: `weekend`, `driver`, `lap`, `compound`, `ratio`.

    The ratio is to the 25 % quantile of green laps on slicks in that race if it has 100 (about a tenth of its laps),
    else in the circuit's dry race of the nearest season; races without either are left out.
    """
    plain = (staged["green"] & ~staged["pit_in"] & ~staged["pit_out"] & (staged["lap"] > 1)
             & staged["lap_time_s"].notna())
    slick = staged[plain & staged["compound"].isin(SLICKS)]
    dry_s = slick[slick["dry"]].groupby("weekend")["lap_time_s"].quantile(QUANTILE)
    rain = staged[plain & staged["compound"].isin(RAIN_TYRES) & ~staged["dry"]]
    reference = {}
    for weekend in rain["weekend"].unique():
        own = slick.loc[slick["weekend"] == weekend, "lap_time_s"]
        dry_races = [key for key in dry_s.index if circuits[key] == circuits[weekend]]
        if len(own) >= 100:
            reference[weekend] = own.quantile(QUANTILE)
        elif dry_races:
            reference[weekend] = dry_s[min(dry_races, key=lambda key: abs(int(key[:4]) - int(weekend[:4])))]
    ratio = rain["lap_time_s"] / rain["weekend"].map(reference)
    frame = rain[["weekend", "driver", "lap", "compound"]].assign(ratio=ratio)
    return frame[frame["ratio"].between(0.95, 1.8)].reset_index(drop=True)
