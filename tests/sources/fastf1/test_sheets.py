"""Official sheets: pages, words, sentinels, duplicates."""
from datetime import date

import pandas as pd
import pytest

from f1_pipelines.sources.base import SourceUnavailable
from f1_pipelines.sources.classification import check_classification, classification_hash
from f1_pipelines.sources.fastf1_source import jolpica
from f1_pipelines.sources.fastf1_source.loading import NotComplete
from f1_pipelines.tables.schema import InvalidRows

DRIVERS = ["max_verstappen", "leclerc", "hamilton", "norris", "alonso", "gasly"]


def row(place, driver=None, **said):
    driver = driver or DRIVERS[place - 1]
    return {"number": str(place), "position": str(place), "positionText": str(place), "points": "0", "grid": str(place),
            "laps": "50", "status": "Finished",
            "Driver": {"driverId": driver, "givenName": "", "familyName": driver.split("_")[-1]},
            "Constructor": {"constructorId": "ferrari", "name": "Ferrari"}, **said}


@pytest.fixture(autouse=True)
def names_do_not_matter(monkeypatch):
    monkeypatch.setattr(jolpica.entrants, "driver_id", lambda season, *, ergast_id, name: ergast_id)


def classified(*rows, **more):
    return jolpica.classification(list(rows), 2024, **more).set_index("driver")


@pytest.mark.parametrize(("text", "code", "laps", "status"), [
    ("Finished", "2", "50", "finished"), ("+1 Lap", "2", "49", "lapped"), ("Lapped", "2", "49", "lapped"),
    (None, "2", "50", "finished"), (None, "2", "48", "lapped"), ("Finished", "R", "30", "retired"),
    ("Retired", "2", "46", "retired"), ("Gearbox", "R", "30", "retired"), ("Disqualified", "D", "50", "disqualified"),
    ("Withdrew", "W", "0", "withdrawn"), ("Did not start", "F", "0", "not_started"),
    ("107% rule", "N", "0", "not_classified"),
])
def test_old_and_new_words_mean_the_same(text, code, laps, status):
    said = classified(row(1), row(2, status=text, positionText=code, laps=laps)).loc["leclerc"]
    assert said["status"] == status
    assert said["classified"] == code.isdigit()
    assert pd.isna(said["finish_position"]) != code.isdigit()


def test_an_unknown_code_is_named():
    with pytest.raises(InvalidRows, match="'X' with text 'Abducted'"):
        classified(row(1), row(2, positionText="X", status="Abducted"))


def test_an_unknown_word_for_crossing_the_line_is_named():
    with pytest.raises(InvalidRows, match="'Ganz vorn'"):
        classified(row(1, status="Ganz vorn", Time={"millis": "5000000"}), row(2))


@pytest.mark.parametrize("placeholder", ["0", "-1", None])
def test_a_grid_of_placeholders_is_unknown(placeholder):
    said = classified(*(row(place, grid=placeholder) for place in (1, 2, 3)))
    assert set(said["grid_status"]) == {"unknown"}
    assert said["grid_position"].isna().all()
    check_classification(said.reset_index())


def test_three_states_of_a_start():
    said = classified(row(1, grid="0"), row(2, grid="1"), row(3, grid="2"), row(4, grid="-1"), row(5, grid="3"),
                      row(6, grid="4", positionText="W", status="Withdrew"))
    assert said["grid_status"].tolist() == ["pit_lane", "grid", "grid", "unknown", "grid", "not_started"]
    assert said["grid_position"].fillna(0).tolist() == [4, 1, 2, 0, 3, 0]  # behind the grid, although he won


def test_half_points_and_a_race_without_a_racing_lap():
    said = classified(row(1, points="12.5", laps="1"), row(2, points="9", laps="1"))
    assert said["points"].tolist() == [12.5, 9]
    assert said["fastest_lap_s"].isna().all()


def test_times_of_lapped_cars_are_none():
    said = classified(row(1, Time={"millis": "5000000"}), row(2, Time={"millis": "5002500"}),
                      row(3, laps="49", status="Lapped", Time={"millis": "5001000"}))
    assert said["gap_s"].fillna(-1).tolist() == [0, 2.5, -1]
    assert said["gap_laps"].fillna(0).tolist() == [0, 0, 1]


def test_a_car_twice_is_refused():
    order = jolpica.classification([row(1), row(2), row(3, driver="leclerc")], 2023)
    with pytest.raises(InvalidRows, match="entered twice: leclerc"):
        check_classification(order)


def test_a_place_twice_is_refused():
    with pytest.raises(InvalidRows, match=r"twice \[2\], missing \[3\]"):
        check_classification(classified(row(1), row(2), row(3, position="2", positionText="2")).reset_index())


def test_an_amended_sheet_has_another_hash():
    def digest(*rows):
        return classification_hash(jolpica.classification(list(rows), 2023).assign(result_status="official"))

    before = digest(row(1), row(2))
    assert digest(row(2), row(1)) == before
    assert digest(row(1), row(2, status="Disqualified", positionText="D")) != before


def test_lap_times():
    assert [jolpica.lap_time_s(text) for text in ("1:16.727", "59.9", "", None)] == [76.727, 59.9, None, None]


class Server:
    """Ergast's answers, page by page, from a list of (round, row)."""

    def __init__(self, monkeypatch, rows, limit=20, day="2024-03-24"):
        from fastf1.ergast import Ergast
        self.rows, self.limit, self.day, self.asked = rows, limit, day, []
        monkeypatch.setattr(Ergast, "_get", self.answer)

    def answer(self, url, params):
        offset = params["offset"] or 0
        self.asked.append(offset)
        by_round = {}
        for number, one in self.rows[offset:offset + self.limit]:
            by_round.setdefault(number, []).append(one)
        races = [{"season": "2024", "round": number, "date": self.day, "Results": found}
                 for number, found in by_round.items()]
        return {"MRData": {"limit": str(self.limit), "offset": str(offset), "total": str(len(self.rows)),
                           "RaceTable": {"Races": races}}}


def sheet():
    return jolpica.sheet(2024, 3, "race", date(2024, 3, 24))


def test_every_page_is_read(monkeypatch):
    server = Server(monkeypatch, [("3", {"number": str(car)}) for car in range(19)], limit=8)
    assert [one["number"] for one in sheet()] == [str(car) for car in range(19)]
    assert server.asked == [0, 8, 16]


def test_pages_that_mix_races_are_refused(monkeypatch):
    Server(monkeypatch, [("3", {}), ("3", {}), ("4", {})], limit=2)
    with pytest.raises(InvalidRows, match="mixes in 2024 round 4"):
        sheet()


def test_a_sheet_of_another_day_is_not_ours(monkeypatch):
    Server(monkeypatch, [("3", {})], day="2024-04-07")
    with pytest.raises(InvalidRows, match="renumbered"):
        sheet()


def test_no_sheet_yet(monkeypatch):
    Server(monkeypatch, [])
    with pytest.raises(NotComplete, match="not there yet"):
        sheet()


@pytest.mark.parametrize("answer", [{}, {"MRData": {}}, {"detail": "down"}])
def test_json_of_another_kind_is_an_outage(monkeypatch, answer):
    from fastf1.ergast import Ergast
    monkeypatch.setattr(Ergast, "_get", lambda *_: dict(answer))
    with pytest.raises(SourceUnavailable, match="run again later"):
        sheet()
