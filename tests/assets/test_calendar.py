"""Weekends as partitions: a weekend added in mid-season needs no code change, and none is lost."""
import subprocess
import sys

import dagster as dg

from f1_pipelines.assets.race_data import race_calendar
from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.resources.race_data import RaceData
from f1_pipelines.settings import settings


def with_race(text: str, *changes: tuple[str, str]) -> str:
    """f1db's calendar file with a changed copy of the last race."""
    last = text.rstrip("\n").splitlines()[-1]
    for old, new in changes:
        assert old in last, (old, last)
        last = last.replace(old, new, 1)
    return text + last + "\n"


def refresh(resources, release, partition: str) -> dg.ExecuteInProcessResult:
    return dg.materialize([race_calendar], partition_key=partition, resources={
        **resources, "race_data": RaceData(source="f1db", f1db_path=str(release), f1db_folder=str(release),
                                           fastf1_cache=str(release))})


def test_a_weekend_added_in_mid_season_becomes_a_partition_with_the_next_load(resources, rows, f1db_folder, tmp_path):
    release = tmp_path / "release"
    release.mkdir()
    for file in f1db_folder.glob("*.csv"):
        (release / file.name).symlink_to(file)
    (release / "f1db-races.csv").unlink()
    races = (f1db_folder / "f1db-races.csv").read_text(encoding="utf-8")
    (release / "f1db-races.csv").write_text(with_race(
        races, ("1172,2026,23", "1173,2026,24"), ('"2026-12-06"', '"2026-12-20"'), ('"abu-dhabi"', '"turkey"'),
        ('"yas-marina","yas-marina-2"', '"istanbul","istanbul-1"')), encoding="utf-8")

    assert refresh(resources, release, "2026-abu-dhabi").success
    assert rows("SELECT weekend, round, event_name, layout, state FROM race.calendar ORDER BY race_start") == [
        ("2026-abu-dhabi", 23, "Abu Dhabi Grand Prix", "yas-marina-2", "upcoming"),
        ("2026-turkey", 24, "Turkish Grand Prix", "istanbul-1", "upcoming")]
    # A reloaded code location is a new process.
    code = "from f1_pipelines.assets.partitions import race_weekends; print(race_weekends.get_partition_keys()[-1])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "2026-turkey"

    # A source that no longer lists it and a refresh of another season keep it.
    assert refresh(resources, f1db_folder, "2026-abu-dhabi").success
    assert refresh(resources, f1db_folder, "2019-monaco").success
    known = [weekend.key for weekend in known_weekends(settings().calendar_path)]
    assert "2026-turkey" in known
    assert len(known) == len(known_weekends()) + 1


def test_a_repeated_refresh_changes_nothing(resources, rows, f1db_folder):
    assert refresh(resources, f1db_folder, "2026-abu-dhabi").success
    before = settings().calendar_path.read_bytes(), rows("SELECT * FROM race.calendar")
    assert refresh(resources, f1db_folder, "2026-abu-dhabi").success
    assert (settings().calendar_path.read_bytes(), rows("SELECT * FROM race.calendar")) == before
    assert len(known_weekends(settings().calendar_path)) == len(known_weekends())
