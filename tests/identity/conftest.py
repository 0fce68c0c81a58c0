"""Real f1db rows and recorded responses from the shared folder, to check our data files against."""
import base64
import csv
import json

import pytest


@pytest.fixture(scope="session")
def f1db(f1db_folder):
    """A function that reads a table of the f1db release: `f1db("races")`."""
    def read(table: str) -> list[dict[str, str]]:
        with (f1db_folder / f"f1db-{table}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    read.result_tables = sorted(path.stem.removeprefix("f1db-")
                                for path in f1db_folder.glob("f1db-races-*-results.csv"))
    return read


@pytest.fixture(scope="session")
def recorded_responses(shared_data) -> dict[str, str]:
    """Body by URL of the recorded responses that name sessions, drivers or constructors."""
    bodies = {}
    for path in shared_data("fastf1-http").glob("*.json*"):
        if path.suffix != ".gz":  # these are all timing data
            response = json.loads(path.read_bytes())
            if any(part in response["url"] for part in ("/ergast/", "schedule_", "DriverList")):
                bodies[response["url"]] = _body(response)
    return bodies


def _body(response: dict) -> str:
    decoded = response.get("_decoded_content")
    if decoded is None:
        return base64.b64decode(response["_content"]).decode("utf-8-sig")
    return decoded if isinstance(decoded, str) else json.dumps(decoded)


@pytest.fixture(scope="session")
def ergast_people(recorded_responses) -> set[tuple[int, str, str, str, str]]:
    """(season, driverId, full name, constructorId, constructor name) of every recorded result."""
    people = set()
    for url, body in recorded_responses.items():
        if "/ergast/" not in url:
            continue
        for race in json.loads(body)["MRData"].get("RaceTable", {}).get("Races", []):
            for row in (row for rows in race.values() if isinstance(rows, list) for row in rows if "Driver" in row):
                driver, team = row["Driver"], row["Constructor"]
                people.add((int(race["season"]), driver["driverId"], f"{driver['givenName']} {driver['familyName']}",
                            team["constructorId"], team["name"]))
    return people


@pytest.fixture(scope="session")
def driver_lists(recorded_responses) -> set[tuple[int, str, str, str, str]]:
    """(season, number, abbreviation, full name, team name) of every driver in Formula 1's own driver lists."""
    drivers = set()
    for url, body in recorded_responses.items():
        if "DriverList" not in url:
            continue
        cars: dict[str, dict] = {}
        for line in body.splitlines():  # updates; some streams begin with the Formula 3 list, without teams
            for number, entry in json.loads(line[line.index("{"):]).items():
                if isinstance(entry, dict):
                    cars[number] = entry if "Tla" in entry else cars.get(number, {}) | entry
        season = int(url.split("/static/")[1][:4])
        drivers |= {(season, number, car["Tla"], car["FullName"], car["TeamName"])
                    for number, car in cars.items() if "Tla" in car and "TeamName" in car}
    return drivers
