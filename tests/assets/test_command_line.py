"""Dagster's command line on a fresh home, as CI and new users run it."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from f1_pipelines.settings import PROJECT_ROOT

pytestmark = pytest.mark.xdist_group("dagster-cli")


@pytest.fixture
def dagster(tmp_path: Path, f1db_folder: Path):
    """`dagster asset materialize -m f1_pipelines.definitions` with its own home, warehouse and working directory."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text((PROJECT_ROOT / "dagster.yaml").read_text())
    environment = {**os.environ, "DAGSTER_HOME": str(home), "F1_SOURCE": "f1db", "F1_F1DB_PATH": str(f1db_folder),
                   "F1_WAREHOUSE": str(tmp_path / "elsewhere" / "f1.duckdb")}

    def materialize(*arguments: str, **changes: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "dagster", "asset", "materialize", "-m", "f1_pipelines.definitions", *arguments],
            cwd=tmp_path, env=environment | changes, capture_output=True, text=True, timeout=200)

    materialize.f1 = lambda *arguments, **changes: subprocess.run(
        [sys.executable, "-m", "f1_pipelines", *arguments], cwd=tmp_path, env=environment | changes,
        capture_output=True, text=True, timeout=200)
    return materialize


def test_a_past_weekend_loads_twice_on_a_fresh_home(dagster):
    for _ in range(2):
        process = dagster("--select", "race_calendar,race_results", "--partition", "2024-sao-paulo")
        assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-2000:]
    query = dagster.f1("query", "--format", "csv", "SELECT weekend, count(*) AS cars FROM race.results GROUP BY ALL")
    assert query.stdout == "weekend,cars\n2024-sao-paulo,20\n"


def test_an_unknown_weekend_and_a_failed_asset_exit_with_an_error(dagster):
    unknown = dagster("--select", "race_results", "--partition", "2024-brazil")
    assert unknown.returncode != 0
    assert "2024-brazil" in unknown.stdout + unknown.stderr
    failed = dagster("--select", "race_results", "--partition", "2026-abu-dhabi")
    assert failed.returncode != 0
    assert "nothing could be loaded from f1db: 2026-abu-dhabi race" in failed.stdout + failed.stderr


def test_a_lost_warehouse_stops_a_run_and_is_restored_with_all_its_rows(dagster, tmp_path):
    """O1: the next run found no file, created an empty one, and published it over the only copy."""
    folder = tmp_path / "elsewhere"
    assert dagster("--select", "race_calendar,race_results", "--partition", "2024-sao-paulo").returncode == 0
    copy = (folder / "f1.published.duckdb").read_bytes()
    (folder / "f1.duckdb").unlink()

    failed = dagster("--select", "race_calendar", "--partition", "2024-qatar")
    output = " ".join((failed.stdout + failed.stderr).split())
    assert failed.returncode != 0
    assert "is gone, while f1.published.duckdb holds what was published on" in output
    assert (folder / "f1.published.duckdb").read_bytes() == copy
    doctor = dagster.f1("doctor", "--deep")
    assert doctor.returncode == 1
    assert "FAIL  warehouse: " in doctor.stdout and "`f1 restore`" in doctor.stdout

    restored = dagster.f1("restore")
    assert restored.returncode == 0, restored.stderr
    assert f"from {folder / 'f1.published.duckdb'}" in restored.stdout
    assert dagster("--select", "race_calendar", "--partition", "2024-qatar").returncode == 0
    rows = dagster.f1("query", "--format", "csv", "SELECT weekend FROM race.calendar ORDER BY ALL")
    assert rows.stdout.split() == ["weekend", "2024-qatar", "2024-sao-paulo"]
    deep = dagster.f1("doctor", "--deep")
    assert deep.returncode == 0, deep.stdout
    assert "ok    earlier copies: " in deep.stdout


def test_a_race_without_a_grid_fails_its_own_run_and_not_the_next_one(dagster, without_grid):
    """Two processes, as CI starts them; f1db is invalid for Australia and valid for China."""
    selected = "race_calendar,practice_results,qualifying_results,race_results,ranking_features"
    own, after = (dagster("--select", selected, "--partition", weekend, F1_F1DB_PATH=str(without_grid))
                  for weekend in ("2026-australia", "2026-china"))
    fault = "2026-australia: none of 22 cars has a slot on the grid"
    assert own.returncode != 0
    assert f"in this run: 2026-australia. {fault}" in own.stdout + own.stderr
    assert after.returncode == 0, after.stdout[-2000:] + after.stderr[-2000:]
    assert f"in other weekends, which don't stop this run: 2026-australia. {fault}" in after.stdout + after.stderr
    features = dagster.f1("query", "--format", "csv", "SELECT DISTINCT weekend FROM features.ranking")
    assert features.stdout == "weekend\n2026-china\n"
    unlearnable = dagster.f1("query", "--format", "csv", "SELECT * FROM race.unlearnable_weekends")
    assert unlearnable.stdout.endswith("\n2026-australia,no_grid,none of 22 cars has a slot on the grid\n")
