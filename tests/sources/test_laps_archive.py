"""The laps archive: valid rows, faults masked or repaired, and one clear sentence if it can't be read."""
import logging
import shutil

import pandas as pd
import pyarrow.parquet as pq
import pytest

from f1_pipelines.identity.weekends import season_weekends, weekend
from f1_pipelines.sources.base import SourceError
from f1_pipelines.sources.laps_archive import LapsArchive, fill_first_laps, mask_timing


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "data" / "laps"


@pytest.fixture(scope="module")
def archive(folder):
    return LapsArchive(folder)


@pytest.fixture(scope="module")
def season_2018(archive):
    return archive.laps(season_weekends(2018)).tables["race.laps"]


def toy(tmp_path, **changes):
    """An archive of one lap, with changed columns."""
    row = {"season": 2024, "round": 1, "f1db_driver_id": "max-verstappen", "lap_number": 1, "lap_time_s": 97.3,
           "compound": "SOFT", "tyre_life": 1, "fresh_tyre": True, "stint": 1, "track_status": "1", "position": 1,
           "is_pit_in": False, "is_pit_out": False, "is_accurate": True, "session_time_s": 3700.0} | changes
    frame = pd.DataFrame([row]).drop(columns=[name for name, value in row.items() if value is ...])
    frame.to_parquet(tmp_path / "laps_2024.parquet")
    return tmp_path


def test_every_lap_of_the_files_is_returned_once(archive, folder):
    weekends = [w for season in (2021, 2024) for w in season_weekends(season)]
    fetched = archive.laps(weekends)
    for table, name in (("race.laps", "laps"), ("race.session_laps", "sprint_laps")):
        rows = fetched.tables[table]
        assert len(rows) == sum(pq.read_metadata(folder / f"{name}_{season}.parquet").num_rows
                                for season in (2021, 2024))
        assert not rows.duplicated(["weekend", "driver", "lap"]).any()
        assert set(rows["source"]) == {"archive"}
    assert set(fetched.tables["race.session_laps"]["session"]) == {"sprint"}


def test_weekends_are_found_by_round_and_drivers_by_f1db_id(archive):
    rows = archive.laps([weekend("2022-monaco")]).tables["race.laps"]
    assert set(rows["weekend"]) == {"2022-monaco"}
    assert rows.loc[rows["position"].eq(1) & rows["lap"].eq(64), "driver"].tolist() == ["sergio-perez"]


def test_a_weekend_without_laps_is_refused_as_expected(archive):
    fetched = archive.laps([weekend("2025-monaco"), weekend("2025-bahrain")])
    assert {str(r.weekend) for r in fetched.refused} == {"2025-monaco"}
    assert all(r.expected for r in fetched.refused)
    assert set(fetched.tables["race.laps"]["weekend"]) == {"2025-bahrain"}


def test_the_archive_lists_its_weekends(archive):
    keys = [w.key for w in archive.weekends()]
    assert len(keys) == len(set(keys)) == 166
    assert "2026-monaco" in keys and "2025-monaco" not in keys


def test_tyre_ages_that_the_files_lack_stay_missing(archive):
    rows = archive.laps([weekend("2024-bahrain")]).tables["race.laps"]
    assert rows["tyre_age_laps"].isna().all() and rows["is_accurate"].isna().all()
    assert rows["stint"].notna().all()


def test_tyres_that_contradict_the_stops_are_unknown(season_2018):
    china = season_2018[season_2018["weekend"] == "2018-china"]
    assert set(china["compound"]) == {"UNKNOWN"}
    assert china[["stint", "tyre_age_laps"]].isna().all(axis=None)
    assert not china["is_accurate"].any()


def test_first_laps_without_a_stint_take_it_from_the_second(season_2018):
    first = season_2018[(season_2018["lap"] == 1) & (season_2018["weekend"] == "2018-spain")]
    second = season_2018[(season_2018["lap"] == 2) & (season_2018["weekend"] == "2018-spain")].set_index("driver")
    known = first[first["stint"].notna()].set_index("driver")
    assert len(known) == 14  # the others had a collision in lap 1 and pitted
    assert (known["compound"] == second["compound"].reindex(known.index)).all()
    assert (known["tyre_age_laps"] + 1 == second["tyre_age_laps"].reindex(known.index)).all()


def test_laps_beyond_the_classified_distance_are_marked(season_2018):
    canada = season_2018[season_2018["weekend"] == "2018-canada"]
    beyond = canada[canada["lap"] > 68]
    assert len(beyond) and not beyond["is_accurate"].any()
    assert canada.loc[canada["lap"].between(10, 60), "is_accurate"].mean() > 0.8


def test_wrong_lap_numbers_are_marked_and_logged(archive, caplog):
    with caplog.at_level(logging.INFO):
        rows = archive.laps([weekend("2020-austria"), weekend("2020-hungary")]).tables["race.laps"]
    assert not rows.loc[rows["weekend"] == "2020-austria", "is_accurate"].any()
    assert rows.loc[rows["weekend"] == "2020-hungary", "is_accurate"].any()
    assert "2020-austria" in caplog.text


def test_laps_after_a_hole_in_the_clock_are_marked():
    rows = pd.DataFrame({"weekend": "2024-x", "driver": "a", "lap": [1, 2, 3, 4], "lap_time_s": [90.0, 90, 90, 90],
                         "session_time_s": [90.0, 180, 360, 450], "is_accurate": pd.array([True] * 4, dtype="boolean")})
    assert mask_timing(rows, {"2024-x": 50})["is_accurate"].tolist() == [True, True, False, False]


def test_a_stop_at_the_end_of_lap_1_leaves_its_tyres_unknown():
    rows = pd.DataFrame({"weekend": "2018-x", "driver": ["a", "a"], "lap": [1, 2], "is_pit_in": [True, False],
                         "stint": pd.array([pd.NA, 1], dtype="Int16"), "compound": ["UNKNOWN", "SOFT"],
                         "tyre_age_laps": pd.array([pd.NA, 2], dtype="Int16"),
                         "fresh_tyre": pd.array([pd.NA, True], dtype="boolean")})
    assert fill_first_laps(rows)["compound"].tolist() == ["UNKNOWN", "SOFT"]


@pytest.mark.parametrize(("changes", "message"), [
    ({"lap_time_s": ...}, "lacks the columns"), ({"round": 99}, "round 99"), ({"season": 2023}, "season 2023"),
])
def test_an_invalid_file_is_reported_in_one_sentence(tmp_path, changes, message):
    with pytest.raises(SourceError, match=message):
        LapsArchive(toy(tmp_path, **changes)).laps([weekend("2024-bahrain")])


def test_a_toy_archive_reads(tmp_path):
    rows = LapsArchive(toy(tmp_path)).laps([weekend("2024-bahrain")]).tables["race.laps"]
    assert rows["driver"].tolist() == ["max-verstappen"]


def test_a_missing_folder_missing_files_and_a_broken_file_are_reported(tmp_path, folder):
    with pytest.raises(SourceError, match="no laps archive at"):
        LapsArchive(tmp_path / "nowhere")
    with pytest.raises(SourceError, match="holds no laps_YYYY"):
        LapsArchive(tmp_path)
    (tmp_path / "laps_2024.parquet").write_bytes((folder / "laps_2024.parquet").read_bytes()[:50_000])
    with pytest.raises(SourceError, match="can't be read as parquet"):
        LapsArchive(tmp_path).laps([weekend("2024-bahrain")])


def test_two_archives_have_different_versions(tmp_path, folder, archive):
    shutil.copy(folder / "laps_2025.parquet", tmp_path)
    assert LapsArchive(tmp_path).version != archive.version
