import pytest

from f1_pipelines.identity.entrants import (
    UnknownEntrant,
    car_numbers,
    constructor_id,
    constructors,
    driver_id,
    drivers,
    lineage,
)


def test_every_driver_in_the_f1db_results_is_known(f1db):
    known = {driver.driver: driver for driver in drivers()}
    by_constructor = {constructor.constructor: constructor for constructor in constructors()}
    seen = set()
    for table in f1db.result_tables:
        for row in f1db(table):
            season, driver = int(row["year"]), row["driverId"]
            if "constructorId" not in row:
                continue  # driver of the day
            assert by_constructor[row["constructorId"]].raced_in(season), (table, season, row["constructorId"])
            if row["driverNumber"]:
                assert int(row["driverNumber"]) in car_numbers(season)[driver], (table, season, driver)
            seen.add((season, driver, row["driverNumber"]))
    assert {driver for _, driver, _ in seen} == set(known)
    for season, driver, number in seen:
        entry = known[driver]
        assert driver_id(season, name=entry.name) == driver
        assert driver_id(season, abbreviation=entry.abbreviation, car_number=number) == driver


def test_every_ergast_id_in_the_recorded_responses_is_known(ergast_people):
    assert len({ergast_id for _, ergast_id, _, _, _ in ergast_people}) > 40
    for season, ergast_id, name, team_id, team_name in ergast_people:
        assert driver_id(season, ergast_id=ergast_id) == driver_id(season, name=name)
        assert constructor_id(season, ergast_id=team_id) == constructor_id(season, name=team_name)


def test_every_driver_in_the_driver_lists_is_known(driver_lists):
    assert len(driver_lists) > 150
    for season, number, abbreviation, name, team in driver_lists:
        driver = driver_id(season, name=name, abbreviation=abbreviation, car_number=number)
        assert driver == driver_id(season, abbreviation=abbreviation, car_number=number), (season, name)
        assert int(number) in car_numbers(season)[driver]
        assert constructor_id(season, name=team)


def test_a_blank_ergast_id_is_resolved_from_what_else_is_there():
    assert driver_id(2021, ergast_id="", name="Robert Kubica", abbreviation="KUB", car_number="88") == "robert-kubica"
    assert driver_id(2024, ergast_id=float("nan"), abbreviation="BEA", car_number=38.0) == "oliver-bearman"


def test_numbers_move_and_people_stay():
    assert driver_id(2021, abbreviation="VER", car_number=33) == driver_id(2022, abbreviation="VER", car_number=1)
    assert driver_id(2026, abbreviation="NOR", car_number=1) == "lando-norris"
    assert car_numbers(2026)["max-verstappen"] == {3}
    assert car_numbers(2024)["oliver-bearman"] == {38, 50}
    assert driver_id(2025, abbreviation="BEA", car_number=87) == "oliver-bearman"
    assert "oliver-bearman" in car_numbers(2022).keys() | car_numbers(2023).keys()


@pytest.mark.parametrize("name", ["Guanyu Zhou", "ZHOU Guanyu", "zhou guanyu"])
def test_a_name_is_known_in_any_order_and_case(name):
    assert driver_id(2023, name=name) == "guanyu-zhou"


@pytest.mark.parametrize(("name", "driver"), [
    ("Nico HULKENBERG", "nico-hulkenberg"), ("Andrea Kimi Antonelli", "kimi-antonelli"),
    ("Carlos Sainz", "carlos-sainz-jr"), ("Pato O'Ward", "patricio-oward"), ("Kimi RAIKKONEN", "kimi-raikkonen"),
])
def test_spellings_of_the_sources_are_one_driver(name, driver):
    assert driver_id(2021, name=name) == driver


def test_a_number_that_no_driver_used_yet_is_ignored():
    assert driver_id(2026, ergast_id="hamilton", abbreviation="HAM", car_number=98) == "lewis-hamilton"
    assert driver_id(2026, abbreviation="HAM", car_number=98) == "lewis-hamilton"
    assert driver_id(2026, abbreviation="HAM", name="L HAMILTON") == "lewis-hamilton"


@pytest.mark.parametrize("evidence", [
    {},
    {"car_number": 1},
    {"ergast_id": "somebody_new"},
    {"name": "Hugh Barter", "abbreviation": "HAM", "car_number": 44},
    {"ergast_id": "hamilton", "name": "Max Verstappen"},
    {"ergast_id": "hamilton", "abbreviation": "VER", "car_number": 1},
    {"abbreviation": "VER", "car_number": 44},
    {"abbreviation": "RAI"},
])
def test_no_or_contradictory_evidence_is_refused(evidence):
    with pytest.raises(UnknownEntrant, match=r"^2023: .*identity/data/drivers.csv\.$"):
        driver_id(2023, **evidence)


def test_the_season_decides_between_constructors_of_one_name():
    assert constructor_id(2018, ergast_id="sauber", name="Sauber") == "sauber"
    assert constructor_id(2021, ergast_id="alfa", name="Alfa Romeo Racing") == "alfa-romeo"
    assert constructor_id(2024, ergast_id="sauber", name="Kick Sauber") == "kick-sauber"
    assert constructor_id(2024, ergast_id="rb", name="RB") == "rb"
    assert constructor_id(2025, ergast_id="rb", name="Racing Bulls") == "racing-bulls"


def test_a_constructor_keeps_its_lineage_through_renames():
    lineages = {}
    for constructor in constructors():
        lineages.setdefault(lineage(constructor.constructor), []).append(constructor)
    assert {line: [c.constructor for c in sorted(members, key=lambda c: c.season_from)]
            for line, members in lineages.items() if len(members) > 1} == {
        "faenza": ["toro-rosso", "alphatauri", "rb", "racing-bulls"],
        "silverstone": ["force-india", "racing-point", "aston-martin"],
        "hinwil": ["sauber", "alfa-romeo", "kick-sauber", "audi"],
        "enstone": ["renault", "alpine"],
    }
    for members in lineages.values():
        for season in range(2018, 2027):
            assert sum(c.raced_in(season) for c in members) <= 1
    assert lineage("cadillac") == "cadillac"


@pytest.mark.parametrize("evidence", [
    {}, {"name": "Brawn"}, {"ergast_id": "alfa"}, {"ergast_id": "ferrari", "name": "McLaren"},
])
def test_no_or_an_ambiguous_constructor_is_refused(evidence):
    with pytest.raises(UnknownEntrant, match="^2025: .* matches no single constructor of that season; wanted one of "):
        constructor_id(2025, **evidence)
    with pytest.raises(UnknownEntrant, match='"brawn" is no constructor id'):
        lineage("brawn")


def test_ids_are_unique():
    ergast = [driver.ergast_id for driver in drivers() if driver.ergast_id]
    assert len(ergast) == len(set(ergast))
    assert len({driver.driver for driver in drivers()}) == len(drivers())
    assert len({constructor.constructor for constructor in constructors()}) == len(constructors())
