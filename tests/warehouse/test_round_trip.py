"""Stored values are read back unchanged, for every type and time zone of the machine."""
import time
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.identity.weekends import season_weekends
from f1_pipelines.sources.calendar import calendar_rows, with_states
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.tables.schema import Column, Table
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices

EVERY_TYPE = Table("race", "every_type", "One column of each type", ("key",), (
    Column("key", "VARCHAR", "Key", required=True),
    Column("text", "VARCHAR", "Text"),
    Column("whole", "INTEGER", "Whole number"),
    Column("large", "BIGINT", "Large whole number"),
    Column("number", "DOUBLE", "Number"),
    Column("flag", "BOOLEAN", "Flag"),
    Column("instant", "TIMESTAMPTZ", "Instant (UTC)"),
), slice_by=("key",))


@pytest.fixture
def warehouse(tmp_path) -> WarehouseFile:
    return WarehouseFile(tmp_path / "f1.duckdb")


@pytest.fixture(params=["UTC", "America/Los_Angeles", "Pacific/Auckland"])
def zone(request, monkeypatch):
    """The machine's time zone: UTC, behind it or ahead of it."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def round_trip(warehouse: WarehouseFile, table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    with warehouse.write("test") as connection:
        connection.execute(table.ddl())
        replace_slices(connection, table, frame)
    with warehouse.read() as connection:
        stored = connection.sql(f"SELECT * FROM {table.qualified} ORDER BY {', '.join(table.key)}").df()
    return table.conform(stored)


def test_every_type_comes_back_with_every_kind_of_missing(warehouse):
    frame = pd.DataFrame({
        "key": ["full", "nan", "none", "nat"],
        "text": ["São Paulo, \"'; NA", None, pd.NA, np.nan],
        "whole": pd.Series([-2**31, None, pd.NA, np.nan], dtype=object),
        "large": pd.Series([2**53 + 1, None, pd.NA, pd.NaT], dtype=object),
        "number": pd.Series([76.727, float("nan"), None, pd.NaT], dtype=object),
        "flag": pd.Series([False, None, pd.NA, np.nan], dtype=object),
        "instant": pd.Series([pd.Timestamp("2025-11-23T04:00:00.123456Z"), pd.NaT, None, np.nan], dtype=object),
    })
    stored = round_trip(warehouse, EVERY_TYPE, frame).set_index("key")
    assert stored.loc["full"].tolist() == frame.set_index("key").loc["full"].tolist()
    assert stored.drop(index="full").isna().all(axis=None)
    with warehouse.read() as connection:
        missing = connection.execute("SELECT count(*) FILTER (isnan(number)), count(number), avg(number) "
                                     "FROM race.every_type").fetchone()
    assert missing == (0, 1, 76.727)


def test_a_lap_time_keeps_its_milliseconds(warehouse):
    """Lap times are seconds in a DOUBLE, not an INTERVAL, which keeps every whole millisecond."""
    millis = np.arange(30_000, 400_000)
    table = Table("race", "lap_times", "Lap times", ("millis",), (
        Column("millis", "INTEGER", "[ms]", required=True), Column("lap_time_s", "DOUBLE", "[s]")), ("millis",))
    frame = pd.DataFrame({"millis": millis, "lap_time_s": pd.to_timedelta(millis, "ms").total_seconds()})
    stored = round_trip(warehouse, table, frame)
    assert (stored["lap_time_s"] * 1000).round().astype("int64").eq(stored["millis"]).all()
    assert stored["lap_time_s"].tolist() == frame["lap_time_s"].tolist()


def test_the_calendar_is_the_same_in_every_zone(warehouse, zone):
    now = datetime(2025, 11, 23, 5, 0, tzinfo=UTC)  # during the race in Las Vegas, where it is still the 22nd
    rows = with_states(calendar_rows(season_weekends(2025), now), {"2025-sao-paulo"}, now)
    pd.testing.assert_frame_equal(
        round_trip(warehouse, BY_NAME["race.calendar"], rows).sort_values("race_start", ignore_index=True), rows)
    with warehouse.read() as connection:
        stored = connection.execute(
            "SELECT state, race_start::VARCHAR, race_start::DATE::VARCHAR, qualifying_start::VARCHAR "
            "FROM race.calendar WHERE weekend IN ('2025-las-vegas', '2025-sao-paulo') ORDER BY race_start").fetchall()
    assert stored == [("done", "2025-11-09 17:00:00+00", "2025-11-09", "2025-11-08 18:00:00+00"),
                      ("live", "2025-11-23 04:00:00+00", "2025-11-23", "2025-11-22 04:00:00+00")]


def test_the_state_of_a_session_is_the_same_in_every_zone(warehouse, zone):
    """`race.sessions` compares with now(): a session that started an hour ago is live everywhere."""
    rows = calendar_rows(season_weekends(2025)[:1], datetime.now(UTC))
    rows["race_start"] = pd.Timestamp.now("UTC") - pd.Timedelta(hours=1)
    rows["qualifying_start"] = rows["race_start"] - pd.Timedelta(hours=5)
    round_trip(warehouse, BY_NAME["race.calendar"], rows)
    with warehouse.read() as connection:
        states = dict(connection.execute("SELECT session, state FROM race.sessions").fetchall())
    assert (states["race"], states["qualifying"]) == ("live", "overdue")
