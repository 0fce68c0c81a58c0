"""Real laps from `laps_YYYY.parquet` and `sprint_laps_YYYY.parquet`, as `race.laps` and `race.session_laps`.

The files were made from FastF1 exports; their README lists their faults. A value that follows from the neighbouring
laps is repaired and logged, a doubtful one is masked (missing, or `is_accurate` false), and none is invented: 2023-25
have no tyre ages, because a third of the starting sets are used ones.
"""
from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from f1_pipelines.identity.weekends import UnknownSeason, UnknownWeekend, Weekend, weekend_of_round
from f1_pipelines.sources.base import Fetched, Refusal, SourceError
from f1_pipelines.tables import race

log = logging.getLogger(__name__)

COLUMNS = {  # archive -> table
    "f1db_driver_id": "driver", "lap_number": "lap", "lap_time_s": "lap_time_s", "compound": "compound",
    "tyre_life": "tyre_age_laps", "fresh_tyre": "fresh_tyre", "stint": "stint", "track_status": "track_status",
    "position": "position", "is_pit_in": "is_pit_in", "is_pit_out": "is_pit_out", "is_accurate": "is_accurate",
    "session_time_s": "session_time_s"}
_FILES = {"race": "laps_{}.parquet", "sprint": "sprint_laps_{}.parquet"}

# Faults that no rule detects, from the README of the data.
WRONG_LAP_NUMBERS = {("2020-austria", None), ("2018-bahrain", "kimi-raikkonen")}  # None: every driver
WRONG_TYRES = {"2018-china"}  # compounds and stints are about 20 laps off the pit stops
HOLE_S = 30.0  # the session clock advances by this much more than the lap time: a lap is missing in between


class LapsArchive:
    """Laps of past Grands Prix and sprints from files. All other tables are omitted."""

    name = "archive"

    def __init__(self, folder: Path | str, now: Callable[[], datetime] = lambda: datetime.now(UTC)):
        """
        Args:
            folder: Folder of the parquet files.
            now: Returns the current time, timezone-aware; the rows' `fetched_at`.

        Raises:
            SourceError: The folder does not exist or holds no laps.
        """
        self.folder = Path(folder).expanduser().absolute()
        self._now = now
        if not self.folder.is_dir():
            raise SourceError(f"no laps archive at {self.folder}: give the folder that holds laps_YYYY.parquet")
        if not any(self.folder.glob(_FILES["race"].format("[0-9]" * 4))):
            raise SourceError(f"{self.folder} is no laps archive: it holds no laps_YYYY.parquet")

    @cached_property
    def version(self) -> str:
        """Digest of the files, which have no version."""
        digest = hashlib.sha256()
        for file in sorted(self.folder.glob("*laps_*.parquet")):
            digest.update(file.name.encode() + file.read_bytes())
        return f"laps archive sha256:{digest.hexdigest()[:12]}"

    def weekends(self) -> list[Weekend]:
        """All weekends with laps of the Grand Prix, oldest first."""
        weekends = []
        for file in sorted(self.folder.glob(_FILES["race"].format("[0-9]" * 4))):
            season = int(file.stem[-4:])
            rounds = sorted(_read(file, ["round"])["round"].unique())
            weekends += [_weekend(file, season, number) for number in rounds]
        return weekends

    def laps(self, weekends: Sequence[Weekend]) -> Fetched:
        """`race.laps` of the Grands Prix and `race.session_laps` of the sprints in the archive."""
        fetched = Fetched()
        for session, table in (("race", race.LAPS), ("sprint", race.SESSION_LAPS)):
            scheduled = [weekend for weekend in weekends if session in weekend.session_names]
            parts = [self._season(season, session) for season in sorted({weekend.season for weekend in scheduled})]
            rows = pd.concat(parts) if parts else pd.DataFrame(columns=[*COLUMNS.values(), "weekend"])
            rows = rows[rows["weekend"].isin([weekend.key for weekend in scheduled])]
            archived = set(rows["weekend"])
            fetched.refused += [Refusal(weekend.key, session, "the archive has no laps of this session", expected=True)
                                for weekend in scheduled if weekend.key not in archived]
            rows = rows.assign(is_deleted=None, source=self.name, source_version=self.version, fetched_at=self._now())
            rows = rows if session == "race" else rows.assign(session=session)
            fetched.tables[table.qualified] = table.conform(rows)
        return fetched

    def _season(self, season: int, session: str) -> pd.DataFrame:
        """Read the laps of one file, with our names and with faults repaired or masked; no rows without a file."""
        file = self.folder / _FILES[session].format(season)
        if not file.is_file():
            return pd.DataFrame(columns=[*COLUMNS.values(), "weekend"])
        frame = _read(file, ["season", "round", *COLUMNS])
        other_seasons = set(frame["season"].unique()) - {season}
        if other_seasons:
            raise SourceError(f"{file} holds laps of season {sorted(other_seasons)[0]}; wanted only {season}")
        keys = {number: _weekend(file, season, number) for number in frame["round"].unique()}
        rows = frame.rename(columns=COLUMNS)[list(COLUMNS.values())]
        rows = rows.assign(weekend=frame["round"].map({number: weekend.key for number, weekend in keys.items()}),
                           compound=rows["compound"].fillna("UNKNOWN"))
        rows = rows.sort_values(["weekend", "driver", "lap"], ignore_index=True)
        rows = fill_first_laps(mask_tyres(rows))
        distance = {weekend.key: weekend.race_laps for weekend in keys.values()} if session == "race" else {}
        return mask_timing(rows, distance)


def fill_first_laps(rows: pd.DataFrame) -> pd.DataFrame:
    """Fill stint and tyres of a lap 1 without a stint (2018) from lap 2, if there is no stop between them."""
    car = ["weekend", "driver"]
    next_lap = rows.groupby(car)[["lap", "stint", "compound", "tyre_age_laps", "fresh_tyre"]].shift(-1)
    gap = (rows["stint"].isna() & (rows["lap"] == 1) & (next_lap["lap"] == 2) & next_lap["stint"].eq(1).fillna(False)
           & ~rows["is_pit_in"] & rows["compound"].eq("UNKNOWN"))
    if gap.any():
        log.info("%d first laps without a stint take stint and compound of the second lap (%s)", gap.sum(),
                 ", ".join(sorted(rows.loc[gap, "weekend"].unique())))
    rows = rows.copy()
    for name in ("stint", "compound", "fresh_tyre"):
        rows[name] = rows[name].mask(gap, next_lap[name])
    rows["tyre_age_laps"] = rows["tyre_age_laps"].mask(gap, next_lap["tyre_age_laps"] - 1)
    return rows


def mask_tyres(rows: pd.DataFrame) -> pd.DataFrame:
    """Make tyres that contradict the pit stops unknown."""
    wrong = rows["weekend"].isin(WRONG_TYRES)
    if not wrong.any():
        return rows
    log.warning("%s: compounds and stints contradict the pit stops; %d laps without tyres", *WRONG_TYRES, wrong.sum())
    rows = rows.copy()
    rows.loc[wrong, "compound"] = "UNKNOWN"
    rows.loc[wrong, ["stint", "tyre_age_laps", "fresh_tyre"]] = pd.NA
    rows.loc[wrong, "is_accurate"] = False
    return rows


def mask_timing(rows: pd.DataFrame, distance_laps: dict[str, int | None]) -> pd.DataFrame:
    """Set `is_accurate` to false on laps whose number or place in the race is doubtful.

    Args:
        rows: Sorted by weekend, driver, lap.
        distance_laps: Classified distance by weekend; laps beyond it were driven but not counted.
    """
    car = [rows["weekend"], rows["driver"]]
    hole = (rows["session_time_s"].groupby(car).diff() - rows["lap_time_s"] > HOLE_S) & (rows["lap"] > 1)
    after_hole = hole.groupby(car).cummax()
    renumbered = pd.Series(False, index=rows.index)
    for weekend, driver in WRONG_LAP_NUMBERS:
        renumbered |= (rows["weekend"] == weekend) & (driver is None or rows["driver"] == driver)
    beyond = rows["lap"] > rows["weekend"].map(distance_laps).astype("Float64").fillna(float("inf"))
    for mask, reason in ((after_hole | renumbered, "lap numbers are too low: laps are missing before them"),
                         (beyond, "laps are beyond the classified distance")):
        if mask.any():
            log.warning("%d laps marked inaccurate (%s): %s", mask.sum(),
                        ", ".join(sorted(rows.loc[mask, "weekend"].unique())), reason)
    return rows.assign(is_accurate=rows["is_accurate"].mask(after_hole | renumbered | beyond, False))


def _read(file: Path, columns: list[str]) -> pd.DataFrame:
    try:
        names = pq.read_schema(file).names
        missing = [name for name in columns if name not in names]
        if missing:
            raise SourceError(f"{file} lacks the columns {missing}; take a complete laps archive (see its README)")
        return pd.read_parquet(file, columns=columns)
    except (pa.ArrowException, OSError) as problem:
        raise SourceError(f"{file} can't be read as parquet ({str(problem)[:120]}); copy the archive again"
                          ) from problem


def _weekend(file: Path, season: int, number: int) -> Weekend:
    try:
        return weekend_of_round(season, int(number))
    except (UnknownWeekend, UnknownSeason) as problem:
        raise SourceError(f"{file} holds round {number} of {season}, which is not in the calendar ({problem}); refresh "
                          "the calendar or remove the file") from problem

