"""FastF1's odd values are resolved in the rows."""
import pandas as pd
import pytest

from f1_pipelines.identity.entrants import UnknownEntrant
from f1_pipelines.sources.fastf1_source import rows
from f1_pipelines.sources.fastf1_source.loading import Loaded
from f1_pipelines.tables.race import LAPS
from f1_pipelines.tables.schema import InvalidRows

VERSTAPPEN = ("1", "VER", "Max Verstappen", "Red Bull Racing")


def lap(car, number, seconds=90.0, **changes):
    return {"DriverNumber": car, "LapNumber": float(number), "LapTime": pd.Timedelta(seconds=seconds),
            "Compound": "SOFT", "TyreLife": 1.0, "FreshTyre": True, "Stint": 1.0, "TrackStatus": "1", "Position": 1.0,
            "PitInTime": pd.NaT, "PitOutTime": pd.NaT, "IsAccurate": True, "Deleted": False, "FastF1Generated": False,
            "Time": pd.Timedelta(seconds=100 * number), **changes}


def loaded(*laps, entries=(VERSTAPPEN,), official_laps=float("nan"), distance=None):
    drivers = pd.DataFrame(list(entries), columns=["DriverNumber", "Abbreviation", "FullName", "TeamName"])
    return Loaded(entries=drivers.assign(Laps=official_laps), laps=pd.DataFrame(list(laps)), distance=distance)


def lap_rows(*laps, **options):
    session = loaded(*laps, **options)
    return rows.laps(session, rows.entries(session, 2023))


def test_missing_times_stay_missing():
    assert lap_rows(lap("1", 1, LapTime=pd.NaT), lap("1", 2, seconds=0))["lap_time_s"].isna().all()


def test_a_red_flag_lap_keeps_its_time_and_a_missing_time_is_not_zero():
    """2024 round 8: lap 1 took 41 minutes; in 2023 round 19 some cars have no time for the lap of a restart."""
    laps = lap_rows(lap("1", 1, seconds=41 * 60, IsAccurate=False, TrackStatus="5"), lap("1", 2, LapTime=pd.NaT))
    stored = LAPS.conform(laps.assign(weekend="2024-monaco", source="fastf1", source_version="fastf1 3.9.0",
                                      fetched_at=pd.Timestamp("2024-05-26T16:00Z")))
    assert stored["lap_time_s"].fillna(-1).tolist() == [2460, -1]
    assert stored["is_accurate"].tolist() == [False, True]


def test_a_generated_lap_has_no_place_and_is_not_accurate():
    [row] = lap_rows(lap("1", 1, FastF1Generated=True)).to_dict("records")
    assert pd.isna(row["position"])
    assert row["is_accurate"] is False


@pytest.mark.parametrize(("text", "compound"), [
    ("soft", "SOFT"), ("INTERMEDIATE", "INTERMEDIATE"), ("HYPERSOFT", "UNKNOWN"), ("nan", "UNKNOWN"),
    (None, "UNKNOWN")])
def test_unknown_compounds_are_marked_unknown(text, compound):
    assert lap_rows(lap("1", 1, Compound=text), lap("1", 2))["compound"].iloc[0] == compound


def test_deleted_is_unknown_without_messages():
    assert lap_rows(lap("1", 1, Deleted=None))["is_deleted"].isna().all()


@pytest.mark.parametrize("distance", [{"official_laps": 2.0}, {"distance": 2}])
def test_no_lap_beyond_the_race_distance(distance):
    assert lap_rows(lap("1", 1), lap("1", 2), lap("1", 3), **distance)["lap"].tolist() == [1, 2]


def test_the_best_lap_is_a_valid_one():
    cars = [VERSTAPPEN, ("16", "LEC", "Charles Leclerc", "Ferrari"),
            ("44", "HAM", "Lewis Hamilton", "Mercedes")]
    session = loaded(lap("1", 1, 88, Deleted=True), lap("1", 2, 91), lap("16", 1, 90), lap("16", 2, 500),
                     lap("44", 1, LapTime=pd.NaT), entries=cars)
    best = rows.practice(session, rows.entries(session, 2023)).set_index("driver")
    assert best["best_lap_s"].fillna(0).to_dict() == {"max-verstappen": 91, "charles-leclerc": 90, "lewis-hamilton": 0}
    assert best["position"].fillna(0).to_dict() == {"max-verstappen": 2, "charles-leclerc": 1, "lewis-hamilton": 0}
    assert best["laps"].to_dict() == {"max-verstappen": 2, "charles-leclerc": 2, "lewis-hamilton": 1}


def test_a_stop_lasts_from_pit_entry_to_exit():
    session = loaded(lap("1", 1, PitInTime=pd.Timedelta(seconds=98)), lap("1", 2, PitOutTime=pd.Timedelta(seconds=121)),
                     lap("1", 3, PitInTime=pd.Timedelta(seconds=299)))  # retires in the pits
    [stop] = rows.pit_stops(session, rows.entries(session, 2023)).to_dict("records")
    assert (stop["stop"], stop["lap"], stop["pit_lane_time_s"]) == (1, 1, 23)


def test_a_listed_driver_without_laps_is_not_entered():
    cars = [VERSTAPPEN, ("11", "PER", "Sergio Perez", "Red Bull Racing")]
    session = loaded(lap("1", 1), entries=cars)
    assert rows.entries(session, 2023)["driver"].tolist() == ["max-verstappen"]


def test_a_driver_twice_is_refused():
    with pytest.raises(InvalidRows, match="entered twice"):
        lap_rows(lap("1", 1), entries=[VERSTAPPEN] * 2)


@pytest.mark.parametrize("entry", [
    ("1", "ZZZ", "Unknown Driver", "Red Bull Racing"), ("1", "VER", "Max Verstappen", "Unknown Team")])
def test_an_unknown_entrant_is_refused(entry):
    with pytest.raises(UnknownEntrant):
        lap_rows(lap("1", 1), entries=[entry])


def test_the_driver_of_a_car_is_that_of_the_session():
    laps = lap_rows(lap("4", 1), entries=[("4", "NOR", "Lando Norris", "McLaren")])
    assert laps["driver"].tolist() == ["lando-norris"]


def test_sessions_without_weather_and_messages_have_no_rows():
    session = loaded(lap("1", 1))
    assert (len(rows.weather(session)), len(rows.race_control(session))) == (0, 0)
