from __future__ import annotations

import csv
from pathlib import Path

import pytest

from f1_pipelines.identity import line_ups
from f1_pipelines.identity.entrants import car_numbers, constructors, drivers


def test_every_weekend_of_2022_to_2026_has_two_cars_of_each_team():
    assert line_ups.seasons() == (2022, 2023, 2024, 2025, 2026)
    for key, weekend in line_ups.embedded_weekends().items():
        if weekend.season < 2022 or weekend.planned == "cancelled":
            continue
        entries = line_ups.line_up(key)
        teams = [entry.constructor for entry in entries]
        racing = {team.constructor for team in constructors() if team.raced_in(weekend.season)}
        assert set(teams) == racing, key
        incomplete = [team for team in racing if teams.count(team) != 2]
        assert incomplete == (["williams"] if key == "2024-australia" else []), key
        assert len({entry.driver for entry in entries}) == len(entries)
        assert len({entry.car_number for entry in entries}) == len(entries)


def test_drivers_and_numbers_are_those_of_the_other_files():
    known = {driver.driver for driver in drivers()}
    for key, weekend in line_ups.embedded_weekends().items():
        if weekend.season >= 2022:
            for entry in line_ups.line_up(key):
                assert entry.driver in known
                assert entry.car_number in car_numbers(weekend.season)[entry.driver]


def test_the_field_size_is_that_of_the_season():
    assert [line_ups.field_size(season) for season in line_ups.seasons()] == [20, 20, 20, 20, 22]


def test_a_weekend_without_line_up_names_the_seasons_that_have_one():
    with pytest.raises(line_ups.UnknownLineUp, match="2022 to 2026"):
        line_ups.line_up("2019-monaco")
    with pytest.raises(line_ups.UnknownLineUp, match="2030-moon"):
        line_ups.line_up("2030-moon")


def test_line_ups_are_those_of_the_real_races(f1db_folder: Path):
    with (f1db_folder / "f1db-races.csv").open(encoding="utf-8") as file:
        keys = {row["id"]: f"{row['year']}-{row['grandPrixId']}" for row in csv.DictReader(file)}
    real_entries: dict[str, set[tuple[str, str, int]]] = {}
    with (f1db_folder / "f1db-races-race-results.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if int(row["year"]) >= 2022:
                entry = row["driverId"], row["constructorId"], int(row["driverNumber"])
                real_entries.setdefault(keys[row["raceId"]], set()).add(entry)
    assert len(real_entries) == 103
    for key, cars in real_entries.items():
        assert {(entry.driver, entry.constructor, entry.car_number) for entry in line_ups.line_up(key)} == cars, key
