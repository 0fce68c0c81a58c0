"""The status of cars, and the rules of a classification."""
import pandas as pd
import pytest

from f1_pipelines.sources.classification import (
    check_classification,
    check_qualifying,
    classification_hash,
    classify_status,
    place_pit_lane_starters,
)
from f1_pipelines.tables.schema import InvalidRows


@pytest.mark.parametrize(("code", "text", "gap_laps", "status"), [
    ("1", "Finished", None, "finished"), ("5", None, None, "finished"), ("12", "+1 Lap", None, "lapped"),
    ("12", "Lapped", None, "lapped"), ("12", None, 2, "lapped"), ("17", "Engine", None, "retired"),
    ("17.0", "Retired", None, "retired"), ("17", "Withdrew", None, "retired"), ("R", "Collision", None, "retired"),
    ("R", "Finished", None, "retired"), ("DNF", None, None, "retired"), ("D", "Disqualified", None, "disqualified"),
    ("DSQ", "Illegal floor", None, "disqualified"), ("EX", None, None, "disqualified"),
    ("W", "Withdrew", None, "withdrawn"), ("DNS", "Withdrew", None, "withdrawn"),
    ("DNS", "Engine", None, "not_started"), ("F", "Did not qualify", None, "not_started"),
    ("N", "Not classified", None, "not_classified"), ("NC", None, None, "not_classified"),
    (None, "Did not start", None, "not_started"),
])
def test_each_end_of_a_race_has_one_status(code, text, gap_laps, status):
    assert classify_status(code, text, gap_laps) == status


@pytest.mark.parametrize(("code", "text"), [("Q", "Whatever"), (None, None), ("", "Abducted")])
def test_an_unknown_status_is_refused(code, text):
    with pytest.raises(InvalidRows, match="unknown"):
        classify_status(code, text)


def sheet(n: int = 22, **changes) -> pd.DataFrame:
    rows = {"driver": [f"driver-{i:02d}" for i in range(n)], "constructor": "team", "grid_position": range(1, n + 1),
            "grid_status": "grid", "official_order": range(1, n + 1), "finish_position": range(1, n + 1),
            "classified": True, "status": "finished", "points": 0.0, "laps": 50, "result_status": "official"}
    return pd.DataFrame(rows | changes)


@pytest.mark.parametrize("n", [3, 18, 19, 20, 22, 26])
def test_any_number_of_cars_can_be_classified(n):
    assert check_classification(sheet(n)) is None  # an impossible one raises InvalidRows


@pytest.mark.parametrize(("changes", "message"), [
    ({"driver": ["a", "a", "b"]}, "entered twice: a"),
    ({"official_order": [1, 2, 2]}, r"repeated \[2\], missing \[3\]"),
    ({"finish_position": [1, 3, None]}, r"missing \[2\]"),
    ({"finish_position": [1, 2, None]}, "classified without a place"),
    ({"classified": False, "finish_position": None}, "no car is classified"),
    ({"grid_position": [1, 1, 1]}, "a slot twice"),
    ({"grid_position": [1, None, 2]}, "a starter without one"),
])
def test_an_impossible_classification_is_refused(changes, message):
    with pytest.raises(InvalidRows, match=message):
        check_classification(sheet(3, **changes))


def test_a_qualifying_with_a_place_twice_is_refused():
    """2026 round 4, sprint qualifying: P17 twice, P19 missing."""
    places = [*range(1, 18), 17, 18, 20, 21, 22]
    with pytest.raises(InvalidRows, match=r"repeated \[17\], missing \[19\]"):
        check_qualifying(pd.DataFrame({"driver": [str(i) for i in range(22)], "position": places}))


def test_pit_lane_starters_come_last_never_ahead_of_pole():
    positions = pd.Series([0, 1, None, 2], dtype="Float64")
    status = pd.Series(["pit_lane", "grid", "pit_lane", "grid"])
    assert place_pit_lane_starters(positions, status).tolist() == [3, 1, 4, 2]


def test_an_unknown_grid_stays_unknown():
    slots = place_pit_lane_starters(pd.Series([-1, -1, -1]), pd.Series(["unknown"] * 3))
    assert slots.isna().all()


def test_the_hash_depends_on_content_and_not_on_row_order():
    rows = sheet(20)
    assert classification_hash(rows) == classification_hash(rows.sample(frac=1, random_state=1))
    assert classification_hash(rows) != classification_hash(rows.assign(points=[0.5, *[0.0] * 19]))
