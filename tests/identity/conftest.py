"""Where the shared evidence lies: real f1db rows and frozen answers, to check our own data files against."""
import base64
import csv
import json

import pytest


@pytest.fixture(scope="session")
def f1db(f1db_folder):
    """Reads a table of the f1db release: `f1db("races")`."""
    def read(table: str) -> list[dict[str, str]]:
        with (f1db_folder / f"f1db-{table}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    read.result_tables = sorted(path.stem.removeprefix("f1db-")
                                for path in f1db_folder.glob("f1db-races-*-results.csv"))
    return read


@pytest.fixture(scope="session")
def frozen_answers(shared_data) -> dict[str, str]:
    """Body by URL of the frozen answers that name sessions, drivers or constructors."""
    bodies = {}
    for path in shared_data("fastf1-http").glob("*.json*"):
        if path.suffix != ".gz":  # these are all timing data
            answer = json.loads(path.read_bytes())
            if any(part in answer["url"] for part in ("/ergast/", "schedule_", "DriverList")):
                bodies[answer["url"]] = _body(answer)
    return bodies


def _body(answer: dict) -> str:
    decoded = answer.get("_decoded_content")
    if decoded is None:
        return base64.b64decode(answer["_content"]).decode("utf-8-sig")
    return decoded if isinstance(decoded, str) else json.dumps(decoded)


@pytest.fixture(scope="session")
def ergast_people(frozen_answers) -> set[tuple[int, str, str, str, str]]:
    """(season, driverId, full name, constructorId, constructor name) of every frozen result."""
    found = set()
    for url, body in frozen_answers.items():
        if "/ergast/" not in url:
            continue
        for race in json.loads(body)["MRData"].get("RaceTable", {}).get("Races", []):
            for row in (row for rows in race.values() if isinstance(rows, list) for row in rows if "Driver" in row):
                who, team = row["Driver"], row["Constructor"]
                found.add((int(race["season"]), who["driverId"], f"{who['givenName']} {who['familyName']}",
                           team["constructorId"], team["name"]))
    return found


@pytest.fixture(scope="session")
def driver_lists(frozen_answers) -> set[tuple[int, str, str, str, str]]:
    """(season, number, abbreviation, full name, team name) of everybody in Formula 1's own driver lists."""
    found = set()
    for url, body in frozen_answers.items():
        if "DriverList" not in url:
            continue
        cars: dict[str, dict] = {}
        for line in body.splitlines():  # updates; some streams begin with the Formula 3 list, without teams
            for number, entry in json.loads(line[line.index("{"):]).items():
                if isinstance(entry, dict):
                    cars[number] = entry if "Tla" in entry else cars.get(number, {}) | entry
        season = int(url.split("/static/")[1][:4])
        found |= {(season, number, car["Tla"], car["FullName"], car["TeamName"])
                  for number, car in cars.items() if "Tla" in car and "TeamName" in car}
    return found
