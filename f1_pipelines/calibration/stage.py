"""`race.laps` made ready for fitting: plain floats, track status as flags, tyre age, gaps at the line, clean laps.

docs/physics.md#the-data defines a clean lap: status 1, the lap before free of SC, VSC and red, no pit in or out, not
lap 1, timed, within 5 % of the driver's median in that race, not flagged inaccurate. Known faults need no special case:
the archive flags or blanks them, and a lap without a compound or an age is never clean.
"""
from __future__ import annotations

import numpy as np
import pandas as pd

from f1_pipelines.sim.engine.parameters import EngineParameters

SLICKS = ("SOFT", "MEDIUM", "HARD")
RAIN_TYRES = ("INTERMEDIATE", "WET")
WET_SHARE = 0.02  # a race with more laps than this on rain tyres is no dry race
CLEAN_WITHIN = 0.05  # of the driver's median
CAR = ["weekend", "driver"]
NEEDED = ("weekend", "driver", "lap", "lap_time_s", "compound", "tyre_age_laps", "stint", "track_status", "position",
          "is_pit_in", "is_pit_out", "is_accurate", "session_time_s")


OLDEST_SET = 90  # laps: the longest race has 78; a set said to be older is a fault of the feed


class CannotFit(ValueError):
    """Laps that hold nothing to fit; one sentence: what came, what was wanted."""


def stage_laps(laps: pd.DataFrame) -> pd.DataFrame:
    """Laps with what the fits need.

    Args:
        laps: Rows of `race.laps`; extra columns are ignored.

    Returns:
        Sorted by weekend, driver, lap, with plain dtypes and in addition: `season`; `sc`, `vsc`, `vsc_ending`, `red`,
        `green` (status 1 all lap); `before_slow` (SC, VSC or red in the lap before); `age_laps` (laps on the set when
        the lap began, 0 on a new one; from the stint where the age is not known); `wear_laps` and `fuel_laps` (the
        same and the lap number, slow laps counted as the engine counts them); `gap_s` and `gap_end_s` (to the car
        before, lapped ones included, at the line when the lap began and ended); `dry` (race); `clean`.

    Raises:
        CannotFit: Columns are missing, or there is no lap.
    """
    absent = [name for name in NEEDED if name not in laps.columns]
    if absent or laps.empty:
        raise CannotFit(f"laps to fit lack {absent or 'rows'}; wanted rows of race.laps")
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
    """Laps on the set when the lap began; where its past is unknown it counts as new."""
    in_stint = plain.groupby([*CAR, "stint"]).cumcount().where(plain["stint"].notna()).astype(float)
    known = plain["tyre_age_laps"].where(plain["tyre_age_laps"] <= OLDEST_SET)
    return (known - 1.0).clip(lower=0).fillna(in_stint)


def _add_burden(plain: pd.DataFrame) -> None:
    """Wear and fuel as the engine counts them: a lap behind the safety car takes less out of either.

    Counting so instead of by plain laps leaves the errors on laps not fitted as they are, within 1 %, and makes the
    fitted slopes the engine's own.
    """
    engine, behind = EngineParameters(), plain["sc"] | plain["red"]
    wear = pd.Series(np.where(behind, engine.wear_sc, np.where(plain["vsc"], engine.wear_vsc, 1.0)), plain.index)
    fuel = pd.Series(np.where(behind, engine.fuel_sc, np.where(plain["vsc"], engine.fuel_vsc, 1.0)), plain.index)
    car = [plain["weekend"], plain["driver"]]
    worn = wear.groupby(car).cumsum() - wear
    put_on = plain["stint"] != plain.groupby(CAR)["stint"].shift()
    since = (worn - plain["age_laps"]).where(put_on).groupby(car).ffill()
    plain["wear_laps"] = (worn - since).where(plain["age_laps"].notna())
    plain["fuel_laps"] = fuel.groupby(car).cumsum() - fuel + 1.0


def _add_gaps(plain: pd.DataFrame) -> None:
    by_time = plain.sort_values(["weekend", "session_time_s"], kind="stable")
    gap = by_time.groupby("weekend")["session_time_s"].diff()
    plain["gap_end_s"] = gap.reindex(plain.index).fillna(np.inf)
    plain["gap_s"] = plain.groupby(CAR)["gap_end_s"].shift(fill_value=np.inf)


def clean_laps(plain: pd.DataFrame) -> pd.Series:
    """Which staged laps are clean. Of a race cut short, ask again: the median must not know later laps."""
    may = (plain["green"] & ~plain["before_slow"] & ~plain["pit_in"] & ~plain["pit_out"] & (plain["lap"] > 1)
           & plain["lap_time_s"].notna() & plain["accurate"] & plain["compound"].isin(SLICKS)
           & plain["age_laps"].notna())
    median = plain["lap_time_s"].where(may).groupby([plain["weekend"], plain["driver"]]).transform("median")
    return may & ((plain["lap_time_s"] / median - 1.0).abs() < CLEAN_WITHIN)
