"""Only a complete session passes, and the reason of a refusal names the missing part."""
import dataclasses

import pandas as pd
import pytest

from f1_pipelines.identity.weekends import weekend_of_round
from f1_pipelines.sources.fastf1_source import validation
from f1_pipelines.sources.fastf1_source.loading import Loaded, NotComplete


def complete(laps_by_car=None, sheet=None):
    """A session, by default of three cars with three laps each; `sheet` holds the official laps."""
    laps_by_car = laps_by_car or {"1": 3, "16": 3, "44": 3}
    cars = sorted({*laps_by_car, *(sheet or {})})
    return Loaded(
        entries=pd.DataFrame({"DriverNumber": cars, "BroadcastName": cars, "Abbreviation": cars,
                              "Laps": [(sheet or {}).get(car, float("nan")) for car in cars]}),
        laps=pd.DataFrame([{"DriverNumber": car, "LapNumber": float(lap)}
                           for car, count in laps_by_car.items() for lap in range(1, count + 1)]),
        status=("Inactive", "Started", "Finished", "Finalised", "Ends"), track_status=pd.DataFrame({"Status": ["1"]}),
        type="Race")


def reason(loaded, session="race"):
    with pytest.raises(NotComplete) as caught:
        validation.check_timing(loaded, session)
    return str(caught.value)


def test_a_complete_session_passes():
    assert validation.check_timing(complete(), "race") is None  # an incomplete session raises NotComplete


@pytest.mark.parametrize(("part", "field"), [
    ("TimingData", "laps"), ("SessionStatus", "status"), ("TrackStatus", "track_status")])
def test_each_missing_part_is_named(part, field):
    assert reason(dataclasses.replace(complete(), **{field: None})).startswith(f"{part} missing: ")


def test_a_starter_without_laps_is_named():
    assert "no lap of 44 (1 of 3 drivers)" in reason(complete({"1": 3, "16": 3}, sheet={"1": 3, "16": 3, "44": 2}))


def test_without_a_sheet_every_driver_needs_laps():
    loaded = complete()
    assert "no lap of 44" in reason(dataclasses.replace(loaded, laps=loaded.laps[loaded.laps["DriverNumber"] != "44"]))


def test_a_car_with_0_laps_on_the_sheet_did_not_start():
    assert validation.check_timing(complete({"1": 3, "16": 3}, sheet={"1": 3, "16": 3, "44": 0}), "race") is None


def test_a_race_with_missing_laps_is_refused():
    loaded = complete({"1": 20, "16": 20})
    laps = loaded.laps[~loaded.laps["LapNumber"].between(9, 14)]
    assert "14 of 20 laps of car 1" in reason(dataclasses.replace(loaded, laps=laps))


def test_fewer_laps_than_on_the_sheet_are_refused():
    assert "8 of 57 laps of car 1" in reason(complete({"1": 8}, sheet={"1": 57}))


@pytest.mark.parametrize(("session", "last"), [("race", "Started"), ("race", "Aborted"), ("qualifying", "Finished")])
def test_a_session_that_is_not_over_is_refused(session, last):
    loaded = dataclasses.replace(complete(), status=("Started", last), type=None)
    assert f"SessionStatus ends with {last}" in reason(loaded, session)


def test_a_race_is_refused_as_a_qualifying():
    assert "calls it a Race session" in reason(complete(), "sprint_qualifying")


def test_one_car_in_practice_is_a_truncated_feed():
    loaded = dataclasses.replace(complete({"1": 9}, sheet={"1": 9, "16": 9, "44": 9, "63": 9}), type="Practice")
    assert "laps of 1 of 4 drivers" in reason(loaded, "practice_1")


# FastF1 swallows the errors of its loaders; each loader fails in turn in a complete session.
@pytest.mark.xdist_group("fastf1-2")
@pytest.mark.parametrize(("loader", "missing"), [
    ("_extended_timing_data", "TimingData"), ("timing_app_data", "TimingData"), ("driver_info", "DriverList"),
    ("session_status_data", "SessionStatus"), ("track_status_data", "TrackStatus"), ("lap_count", None),
    ("session_info", None), ("weather_data", None), ("race_control_messages", None)])
def test_without_one_loader_a_session_is_complete_or_refused(source, monkeypatch, loader, missing):
    from fastf1 import _api

    def fail(*_, **__):
        raise _api.SessionNotAvailableError("no data")

    monkeypatch.setattr(_api, loader, fail)
    fetched = source.laps([weekend_of_round(2025, 6)])
    reasons = [refusal.reason for refusal in fetched.refused if refusal.session == "sprint"]
    if missing is None:
        assert (reasons, len(fetched.tables["race.session_laps"])) == ([], 331)
    else:
        assert missing in reasons[0].split(" missing: ")[0]
        assert fetched.tables == {}


@pytest.mark.xdist_group("fastf1-2")
@pytest.mark.parametrize("failure", [SystemExit(), RuntimeError("a bug in FastF1")])
def test_a_failure_of_fastf1_refuses_only_the_session(source, monkeypatch, failure):
    from fastf1.core import Session

    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(Session, "load", fail)
    fetched = source.laps([weekend_of_round(2025, 6)])
    assert [refusal.session for refusal in fetched.refused] == ["sprint", "race"]
    assert "FastF1 could not load it" in fetched.refused[0].reason
