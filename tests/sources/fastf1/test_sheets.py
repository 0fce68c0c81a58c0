"""Official sheets: pages, status texts, placeholders, duplicates."""
from datetime import date

import pandas as pd
import pytest

from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.classification import check_classification, classification_hash
from f1_pipelines.sources.fastf1_source import jolpica
from f1_pipelines.sources.fastf1_source.loading import NotComplete
from f1_pipelines.tables.schema import InvalidRows

DRIVERS = ["max_verstappen", "leclerc", "hamilton", "norris", "alonso", "gasly"]


def row(place, driver=None, **changes):
    driver = driver or DRIVERS[place - 1]
    return {"number": str(place), "position": str(place), "positionText": str(place), "points": "0", "grid": str(place),
            "laps": "50", "status": "Finished",
            "Driver": {"driverId": driver, "givenName": "", "familyName": driver.split("_")[-1]},
            "Constructor": {"constructorId": "ferrari", "name": "Ferrari"}, **changes}


@pytest.fixture(autouse=True)
def unresolved_drivers(monkeypatch):
    monkeypatch.setattr(jolpica.entrants, "driver_id", lambda season, *, ergast_id, name: ergast_id)


def classify(*rows):
    return jolpica.classification(list(rows), 2024).set_index("driver")


@pytest.mark.parametrize(("text", "code", "laps", "status"), [
    ("Finished", "2", "50", "finished"), ("+1 Lap", "2", "49", "lapped"), ("Lapped", "2", "49", "lapped"),
    (None, "2", "50", "finished"), (None, "2", "48", "lapped"), ("Finished", "R", "30", "retired"),
    ("Retired", "2", "46", "retired"), ("Gearbox", "R", "30", "retired"), ("Disqualified", "D", "50", "disqualified"),
    ("Withdrew", "W", "0", "withdrawn"), ("Did not start", "F", "0", "not_started"),
    ("107% rule", "N", "0", "not_classified"),
])
def test_old_and_new_status_texts_mean_the_same(text, code, laps, status):
    leclerc = classify(row(1), row(2, status=text, positionText=code, laps=laps)).loc["leclerc"]
    assert leclerc["status"] == status
    assert leclerc["classified"] == code.isdigit()
    assert pd.isna(leclerc["finish_position"]) != code.isdigit()


def test_an_unknown_code_is_named():
    with pytest.raises(InvalidRows, match="'X' with text 'Abducted'"):
        classify(row(1), row(2, positionText="X", status="Abducted"))


def test_an_unknown_status_of_a_finisher_is_named():
    with pytest.raises(InvalidRows, match="'Ganz vorn'"):
        classify(row(1, status="Ganz vorn", Time={"millis": "5000000"}), row(2))


@pytest.mark.parametrize("placeholder", ["0", "-1", None])
def test_a_grid_of_placeholders_is_unknown(placeholder):
    order = classify(*(row(place, grid=placeholder) for place in (1, 2, 3)))
    assert set(order["grid_status"]) == {"unknown"}
    assert order["grid_position"].isna().all()
    check_classification(order.reset_index())


def test_three_states_of_a_start():
    order = classify(row(1, grid="0"), row(2, grid="1"), row(3, grid="2"), row(4, grid="-1"), row(5, grid="3"),
                       row(6, grid="4", positionText="W", status="Withdrew"))
    assert order["grid_status"].tolist() == ["pit_lane", "grid", "grid", "unknown", "grid", "not_started"]
    assert order["grid_position"].fillna(0).tolist() == [4, 1, 2, 0, 3, 0]  # the winner started behind the grid


def test_half_points_and_a_race_without_a_racing_lap():
    order = classify(row(1, points="12.5", laps="1"), row(2, points="9", laps="1"))
    assert order["points"].tolist() == [12.5, 9]
    assert order["fastest_lap_s"].isna().all()


def test_lapped_cars_have_no_times():
    order = classify(row(1, Time={"millis": "5000000"}), row(2, Time={"millis": "5002500"}),
                       row(3, laps="49", status="Lapped", Time={"millis": "5001000"}))
    assert order["gap_s"].fillna(-1).tolist() == [0, 2.5, -1]
    assert order["gap_laps"].fillna(0).tolist() == [0, 0, 1]


def test_a_car_twice_is_refused():
    order = jolpica.classification([row(1), row(2), row(3, driver="leclerc")], 2023)
    with pytest.raises(InvalidRows, match="entered twice: leclerc"):
        check_classification(order)


def test_a_place_twice_is_refused():
    with pytest.raises(InvalidRows, match=r"repeated \[2\], missing \[3\]"):
        check_classification(classify(row(1), row(2), row(3, position="2", positionText="2")).reset_index())


def test_an_amended_sheet_has_another_hash():
    def digest(*rows):
        return classification_hash(jolpica.classification(list(rows), 2023).assign(result_status="official"))

    first = digest(row(1), row(2))
    assert digest(row(2), row(1)) == first
    assert digest(row(1), row(2, status="Disqualified", positionText="D")) != first


def test_lap_times():
    assert [jolpica.lap_time_s(text) for text in ("1:16.727", "59.9", "", None)] == [76.727, 59.9, None, None]


class Server:
    """Ergast's answers, page by page, from a list of (round, row)."""

    def __init__(self, monkeypatch, rows, limit=20, day="2024-03-24"):
        from fastf1.ergast import Ergast
        self.rows, self.limit, self.day, self.offsets = rows, limit, day, []
        monkeypatch.setattr(Ergast, "_get", self.answer)

    def answer(self, url, params):
        offset = params["offset"] or 0
        self.offsets.append(offset)
        by_round = {}
        for number, result in self.rows[offset:offset + self.limit]:
            by_round.setdefault(number, []).append(result)
        races = [{"season": "2024", "round": number, "date": self.day, "Results": results}
                 for number, results in by_round.items()]
        return {"MRData": {"limit": str(self.limit), "offset": str(offset), "total": str(len(self.rows)),
                           "RaceTable": {"Races": races}}}


def sheet():
    return jolpica.sheet(2024, 3, "race", date(2024, 3, 24))


def test_every_page_is_read(monkeypatch):
    server = Server(monkeypatch, [("3", {"number": str(car)}) for car in range(19)], limit=8)
    assert [result["number"] for result in sheet()] == [str(car) for car in range(19)]
    assert server.offsets == [0, 8, 16]


def test_pages_that_mix_races_are_refused(monkeypatch):
    Server(monkeypatch, [("3", {}), ("3", {}), ("4", {})], limit=2)
    with pytest.raises(InvalidRows, match="has rows of 2024 round 4"):
        sheet()


def test_a_sheet_of_another_day_is_refused(monkeypatch):
    Server(monkeypatch, [("3", {})], day="2024-04-07")
    with pytest.raises(InvalidRows, match="renumbered"):
        sheet()


def test_a_sheet_that_is_not_out_is_not_complete(monkeypatch):
    Server(monkeypatch, [])
    with pytest.raises(NotComplete, match="not out yet"):
        sheet()


@pytest.mark.parametrize("answer", [{}, {"MRData": {}}, {"detail": "down"}])
def test_json_in_another_format_is_an_outage(monkeypatch, answer):
    from fastf1.ergast import Ergast
    monkeypatch.setattr(Ergast, "_get", lambda *_: dict(answer))
    with pytest.raises(SourceUnavailable, match="run again later"):
        sheet()
