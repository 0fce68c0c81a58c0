"""What rain costs: lap times on rain tyres against a dry lap of the same circuit (docs/physics.md#rain)."""
from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from f1_pipelines.calibration.stage import RAIN_TYRES, SLICKS

QUANTILE = 0.25  # of dry green laps: the track at its best


def wet_ratios(staged: pd.DataFrame, circuits: Mapping[str, str]) -> pd.DataFrame:
    """One row per green lap on rain tyres: `weekend`, `driver`, `lap`, `compound`, `ratio`.

    The ratio is to the 25 % quantile of green laps on slicks in that race, or in the nearest season's dry race there;
    races without either are left out. In a race that dries, slick laps are quick enough once a tenth of its laps are.
    """
    plain = (staged["green"] & ~staged["pit_in"] & ~staged["pit_out"] & (staged["lap"] > 1)
             & staged["lap_time_s"].notna())
    slick = staged[plain & staged["compound"].isin(SLICKS)]
    dry_s = slick[slick["dry"]].groupby("weekend")["lap_time_s"].quantile(QUANTILE)
    rain = staged[plain & staged["compound"].isin(RAIN_TYRES) & ~staged["dry"]]
    reference = {}
    for weekend in rain["weekend"].unique():
        own = slick.loc[slick["weekend"] == weekend, "lap_time_s"]
        there = [key for key in dry_s.index if circuits[key] == circuits[weekend]]
        if len(own) >= 100:
            reference[weekend] = own.quantile(QUANTILE)
        elif there:
            reference[weekend] = dry_s[min(there, key=lambda key: abs(int(key[:4]) - int(weekend[:4])))]
    ratio = rain["lap_time_s"] / rain["weekend"].map(reference)
    frame = rain[["weekend", "driver", "lap", "compound"]].assign(ratio=ratio)
    return frame[frame["ratio"].between(0.95, 1.8)].reset_index(drop=True)
