"""`race.sessions`: a session is done if it has rows, never because its time is past."""
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from f1_pipelines.identity.weekends import Weekend, weekend
from f1_pipelines.sources.calendar import calendar_rows, with_states
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.ingest import store
from f1_pipelines.warehouse.replace import replace_slices


@pytest.fixture
def states(tmp_path):
    """A function that stores the calendar row of a weekend and `fetched`, and returns the states by session."""
    warehouse = WarehouseFile(tmp_path / "f1.duckdb")

    def store_and_read(event: Weekend, *fetched) -> dict[str, str]:
        now = datetime.now(UTC)
        with warehouse.write("test") as connection:
            replace_slices(connection, BY_NAME["race.calendar"], with_states(calendar_rows([event], now), set(), now))
            for rows in fetched:
                store(connection, rows)
        with warehouse.read() as connection:
            return dict(connection.execute("SELECT session, state FROM race.sessions WHERE weekend = ? "
                                           "ORDER BY starts_at", [event.key]).fetchall())
    return store_and_read


def starting(event: Weekend, **hours_from_now: float) -> Weekend:
    now = datetime.now(UTC)
    return replace(event, sessions={name: now + timedelta(hours=hours) for name, hours in hours_from_now.items()})


def test_by_the_clock_alone_a_session_is_upcoming_live_or_overdue(states):
    event = starting(weekend("2026-monaco"), practice_1=-20, qualifying=-1, race=20)
    assert states(event) == {"practice_1": "overdue", "qualifying": "live", "race": "upcoming"}


@pytest.mark.parametrize("planned", ["cancelled", "postponed"])
def test_a_cancelled_weekend_is_cancelled_before_during_and_after_its_time(states, planned):
    event = replace(weekend("2026-monaco"), planned=planned)
    for hours in (-100, -1, 100):
        assert set(states(starting(event, qualifying=hours - 20, race=hours)).values()) == {planned}


def test_a_practice_that_was_not_held_is_overdue_until_the_race_is_in(states, f1db):
    """2020 Eifel: fog on Friday. f1db lists both practices, but no car drove."""
    eifel = [weekend("2020-eifel")]
    friday = dict.fromkeys(("practice_1", "practice_2"), "overdue")
    assert states(eifel[0], f1db.practice(eifel), f1db.qualifying(eifel)) == {
        **friday, "practice_3": "done", "qualifying": "done", "race": "overdue"}
    assert states(eifel[0], f1db.results(eifel)) == {
        **dict.fromkeys(friday, "not_held"), "practice_3": "done", "qualifying": "done", "race": "done"}
