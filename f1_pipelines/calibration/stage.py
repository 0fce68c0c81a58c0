"""Prepare `race.laps` for fitting: plain floats, track status flags, tyre age, gaps at the line, clean laps.

docs/physics.md#the-data defines a clean lap: status 1, no SC, VSC or red flag in the lap before, no pit in or out, not
lap 1, timed, within 5 % of the driver's median in that race, not flagged inaccurate. Known faults need no special case:
the archive flags or blanks them, and a lap without a compound or tyre age is never clean.
"""
from __future__ import annotations

import numpy as np
import pandas as pd

from f1_pipelines.sim.engine.parameters import EngineParameters

SLICKS = ("SOFT", "MEDIUM", "HARD")
RAIN_TYRES = ("INTERMEDIATE", "WET")
WET_SHARE = 0.02  # share of laps on rain tyres from which a race is not dry
CLEAN_WITHIN = 0.05  # relative distance to the driver's median
CAR = ["weekend", "driver"]
NEEDED = ("weekend", "driver", "lap", "lap_time_s", "compound", "tyre_age_laps", "stint", "track_status", "position",
          "is_pit_in", "is_pit_out", "is_accurate", "session_time_s")
OLDEST_SET = 90  # laps: the longest race has 78, so a larger tyre age is a fault of the feed


class CannotFit(ValueError):
    """The laps are not enough for a fit."""


def stage_laps(laps: pd.DataFrame) -> pd.DataFrame:
    """Add the columns that the fits need.

    Args:
        laps: Rows of `race.laps`; extra columns are ignored.

    Returns:
        The laps by weekend, driver, lap, with plain dtypes and these columns added: `season`; `sc`, `vsc`,
        `vsc_ending`, `red`, `green` (status 1 all lap); `before_slow` (SC, VSC or red flag in the lap before);
        `age_laps` (laps on the set at the start of the lap, 0 on a new set; from the stint if the age is unknown);
        `wear_laps` and `fuel_laps` (age and lap number with slow laps counted as the engine does); `gap_s` and
        `gap_end_s` (to the next car on the road, lapped or not, at the start and end of the lap); `dry` (race);
        `clean`.

    Raises:
        CannotFit: Columns are missing, or there are no laps.
    """
    missing = [name for name in NEEDED if name not in laps.columns]
    if missing or laps.empty:
        raise CannotFit(f"laps to fit lack {missing or 'rows'}; wanted rows of race.laps")
    frame = laps[list(NEEDED)].sort_values(["weekend", "driver", "lap"], ignore_index=True)
    plain = pd.DataFrame({"weekend": frame["weekend"].astype(object), "driver": frame["driver"].astype(object)})
    plain["season"] = plain["weekend"].str[:4].astype(int)
    plain["lap"] = frame["lap"].astype(int)
    for name in ("lap_time_s", "tyre_age_laps", "stint", "position", "session_time_s"):
        plain[name] = frame[name].to_numpy("float64", na_value=np.nan)
    plain["compound"] = frame["compound"].astype(object).where(frame["compound"].notna(), "UNKNOWN")
    plain["pit_in"] = frame["is_pit_in"].astype("boolean").fillna(False).to_numpy(bool)
    plain["pit_out"] = frame["is_pit_out"].astype("boolean").fillna(False).to_numpy(bool)
    plain["accurate"] = frame["is_accurate"].astype("boolean").fillna(True).to_numpy(bool)
    _add_status(plain, frame["track_status"].astype(object).fillna("").astype(str))
    plain["age_laps"] = _age(plain)
    _add_burden(plain)
    _add_gaps(plain)
    rain = plain["compound"].isin(RAIN_TYRES).groupby(plain["weekend"]).transform("mean")
    plain["dry"] = rain < WET_SHARE
    plain["clean"] = clean_laps(plain)
    return plain


def _add_status(plain: pd.DataFrame, digits: pd.Series) -> None:
    for name, digit in (("sc", "4"), ("vsc", "6"), ("vsc_ending", "7"), ("red", "5"), ("yellow", "2")):
        plain[name] = digits.str.contains(digit, regex=False).to_numpy(bool)
    plain["green"] = (digits == "1").to_numpy(bool)
    plain["slow"] = plain["sc"] | plain["vsc"] | plain["vsc_ending"] | plain["red"]
    plain["before_slow"] = plain.groupby(CAR)["slow"].shift(fill_value=False)


def _age(plain: pd.DataFrame) -> pd.Series:
    """Laps on the set at the start of each lap; a set of unknown age counts as new."""
    in_stint = plain.groupby([*CAR, "stint"]).cumcount().where(plain["stint"].notna()).astype(float)
    known = plain["tyre_age_laps"].where(plain["tyre_age_laps"] <= OLDEST_SET)
    return (known - 1.0).clip(lower=0).fillna(in_stint)


def _add_burden(plain: pd.DataFrame) -> None:
    """Count wear and fuel as the engine does: laps behind the safety car use less of both.

    Compared with plain lap counts this changes errors on held-out laps by less than 1 %, and makes the fitted slopes
    comparable with the engine's.
    """
    engine, behind = EngineParameters(), plain["sc"] | plain["red"]
    wear = pd.Series(np.where(behind, engine.wear_sc, np.where(plain["vsc"], engine.wear_vsc, 1.0)), plain.index)
    fuel = pd.Series(np.where(behind, engine.fuel_sc, np.where(plain["vsc"], engine.fuel_vsc, 1.0)), plain.index)
    car = [plain["weekend"], plain["driver"]]
    total_wear = wear.groupby(car).cumsum() - wear
    new_set = plain["stint"] != plain.groupby(CAR)["stint"].shift()
    wear_at_change = (total_wear - plain["age_laps"]).where(new_set).groupby(car).ffill()
    plain["wear_laps"] = (total_wear - wear_at_change).where(plain["age_laps"].notna())
    plain["fuel_laps"] = fuel.groupby(car).cumsum() - fuel + 1.0


def _add_gaps(plain: pd.DataFrame) -> None:
    by_time = plain.sort_values(["weekend", "session_time_s"], kind="stable")
    gap = by_time.groupby("weekend")["session_time_s"].diff()
    plain["gap_end_s"] = gap.reindex(plain.index).fillna(np.inf)
    plain["gap_s"] = plain.groupby(CAR)["gap_end_s"].shift(fill_value=np.inf)


def clean_laps(plain: pd.DataFrame) -> pd.Series:
    """Mark the clean laps. Call it again for part of a race, so that the driver's median excludes later laps."""
    candidates = (plain["green"] & ~plain["before_slow"] & ~plain["pit_in"] & ~plain["pit_out"] & (plain["lap"] > 1)
                  & plain["lap_time_s"].notna() & plain["accurate"] & plain["compound"].isin(SLICKS)
                  & plain["age_laps"].notna())
    median = plain["lap_time_s"].where(candidates).groupby([plain["weekend"], plain["driver"]]).transform("median")
    return candidates & ((plain["lap_time_s"] / median - 1.0).abs() < CLEAN_WITHIN)
