"""A session passes whole or not at all, and the reason names the part."""
import dataclasses

import pandas as pd
import pytest

from f1_pipelines.identity.weekends import weekend_of_round
from f1_pipelines.sources.fastf1_source import validation
from f1_pipelines.sources.fastf1_source.loading import Loaded, NotComplete


def whole(laps_by_car=None, sheet=None):
    """Three cars with three laps each unless said otherwise; `sheet` holds the official laps."""
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


def test_a_whole_session_passes():
    assert validation.check_timing(whole(), "race") is None  # a session that is not whole raises NotComplete


@pytest.mark.parametrize(("part", "field"), [
    ("TimingData", "laps"), ("SessionStatus", "status"), ("TrackStatus", "track_status")])
def test_each_part_is_named(part, field):
    assert reason(dataclasses.replace(whole(), **{field: None})).startswith(f"{part} missing: ")


def test_a_starter_without_laps_is_named():
    assert "no lap of 44 (1 of 3 drivers)" in reason(whole({"1": 3, "16": 3}, sheet={"1": 3, "16": 3, "44": 2}))


def test_without_a_sheet_nobody_may_lack_laps():
    loaded = whole()
    assert "no lap of 44" in reason(dataclasses.replace(loaded, laps=loaded.laps[loaded.laps["DriverNumber"] != "44"]))


def test_a_car_with_0_laps_on_the_sheet_did_not_start():
    assert validation.check_timing(whole({"1": 3, "16": 3}, sheet={"1": 3, "16": 3, "44": 0}), "race") is None


def test_a_hole_in_the_laps_is_no_whole_race():
    loaded = whole({"1": 20, "16": 20})
    holed = loaded.laps[~loaded.laps["LapNumber"].between(9, 14)]
    assert "14 of 20 laps of car 1" in reason(dataclasses.replace(loaded, laps=holed))


def test_fewer_laps_than_the_sheet_says():
    assert "8 of 57 laps of car 1" in reason(whole({"1": 8}, sheet={"1": 57}))


@pytest.mark.parametrize(("session", "last"), [("race", "Started"), ("race", "Aborted"), ("qualifying", "Finished")])
def test_a_session_that_is_not_over_may_come(session, last):
    loaded = dataclasses.replace(whole(), status=("Started", last), type=None)
    assert f"SessionStatus ends with {last}" in reason(loaded, session)


def test_a_sprint_is_no_qualifying():
    assert "calls it a Race session" in reason(whole(), "sprint_qualifying")


def test_one_car_in_practice_is_a_cut_off_feed():
    loaded = dataclasses.replace(whole({"1": 9}, sheet={"1": 9, "16": 9, "44": 9, "63": 9}), type="Practice")
    assert "laps of 1 of 4 drivers" in reason(loaded, "practice_1")


# FastF1 swallows what its loaders raise; each is taken away in turn from a session that is whole.
@pytest.mark.xdist_group("fastf1-2")
@pytest.mark.parametrize(("loader", "lacks"), [
    ("_extended_timing_data", "TimingData"), ("timing_app_data", "TimingData"), ("driver_info", "DriverList"),
    ("session_status_data", "SessionStatus"), ("track_status_data", "TrackStatus"), ("lap_count", None),
    ("session_info", None), ("weather_data", None), ("race_control_messages", None)])
def test_without_one_loader_a_session_is_whole_or_refused(source, monkeypatch, loader, lacks):
    from fastf1 import _api

    def not_there(*_, **__):
        raise _api.SessionNotAvailableError("taken away")

    monkeypatch.setattr(_api, loader, not_there)
    fetched = source.laps([weekend_of_round(2025, 6)])
    [*refused] = [refusal.reason for refusal in fetched.refused if refusal.session == "sprint"]
    if lacks is None:
        assert (refused, len(fetched.tables["race.session_laps"])) == ([], 331)
    else:
        assert lacks in refused[0].split(" missing: ")[0]
        assert fetched.tables == {}


@pytest.mark.xdist_group("fastf1-2")
@pytest.mark.parametrize("failure", [SystemExit(), RuntimeError("a bug in FastF1")])
def test_fastf1_giving_up_refuses_the_session_only(source, monkeypatch, failure):
    from fastf1.core import Session

    def give_up(*_, **__):
        raise failure

    monkeypatch.setattr(Session, "load", give_up)
    fetched = source.laps([weekend_of_round(2025, 6)])
    assert [refusal.session for refusal in fetched.refused] == ["sprint", "race"]
    assert "FastF1 gave up on it" in fetched.refused[0].reason
