"""The demo shows the reason of a failed step: real Dagster runs that fail in all ways."""
import shutil
from pathlib import Path

import click
import pytest

from f1_pipelines.cli.demo import runs
from f1_pipelines.runs.failure import reasons
from f1_pipelines.settings import PROJECT_ROOT

pytestmark = pytest.mark.timeout(120)
TOY = """
import os, signal
import dagster as dg

class InvalidRows(ValueError):
    pass

@dg.asset
def loaded(): ...

@dg.asset
def evaluated():
    try:
        raise ZeroDivisionError("no cars")
    except ZeroDivisionError as problem:
        raise InvalidRows("ndcg10: wanted 0 to 1; got 1.0000000000000002\\\\nin 2024-monaco") from problem

@dg.asset(deps=[loaded])
def after(): ...

@dg.asset_check(asset=loaded, blocking=True)
def each_car_once():
    rows = [dg.TableRecord({"weekend": "2024-monaco", "car": str(car)}) for car in range(12)]
    return dg.AssetCheckResult(passed=False, metadata={"rows_found": 12, "rows": dg.MetadataValue.table(rows)})

@dg.asset_check(asset=loaded, blocking=False)
def a_warning():
    return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN)

class Size(dg.Config):
    races: int = 1

@dg.asset
def sized(config: Size): ...

@dg.asset
def killed():
    os.kill(os.getpid(), signal.SIGKILL)

defs = dg.Definitions([loaded, evaluated, after, sized, killed], asset_checks=[each_car_once, a_warning],
                      executor=dg.in_process_executor)
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch, capfd):
    """A function that materializes assets of a toy module and returns stdout, stderr and the error message."""
    (tmp_path / "home").mkdir()
    shutil.copy(PROJECT_ROOT / "dagster.yaml", tmp_path / "home")
    (tmp_path / "f1_toy_definitions.py").write_text(TOY.replace("\\\\", "\\"))
    (tmp_path / "f1_broken_definitions.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.setenv("PYTHONPATH", f"{PROJECT_ROOT}:{tmp_path}")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def materialize(selection: str, module: str = "f1_toy_definitions", weekends: str | None = None,
                    **sizes) -> tuple[str, str, str]:
        monkeypatch.setattr(runs, "DEFINITIONS", module)
        error = ""
        try:
            runs.materialize(selection, weekends, sizes)
        except click.ClickException as exception:
            error = exception.message
        captured = capfd.readouterr()
        return captured.out, captured.err, error

    return materialize


def logs(folder: Path) -> list[Path]:
    return list(folder.glob("f1-demo-*.log"))


@pytest.mark.parametrize("home", ["own", "none"])
def test_failed_steps_and_blocking_checks_are_shown_with_error_and_rows(toy, tmp_path, monkeypatch, home):
    if home == "none":
        monkeypatch.delenv("DAGSTER_HOME")
    output, reason, error = toy("loaded,evaluated,after")
    assert "evaluated   FAILED: the reason follows" in output and "[1/3]  " in output and "[2/3]" not in output
    assert "\x1b" not in output + reason
    assert "FAILED: check each_car_once of loaded\n" in reason
    assert "    rows_found: 12\n    weekend=2024-monaco, car=0\n" in reason and "    ... and 2 more\n" in reason
    assert ("FAILED: step evaluated\n    InvalidRows: ndcg10: wanted 0 to 1; got 1.0000000000000002\n"
            "    in 2024-monaco\n") in reason
    assert "    caused by ZeroDivisionError: no cars\n" in reason
    assert "f1_toy_definitions.py, line " in reason
    assert "a_warning" not in reason and "Stack Trace" not in reason and "site-packages" not in reason
    assert "step evaluated" in error and "check each_car_once of loaded" in error
    [log] = logs(tmp_path)
    assert f"The whole log: {log}" in reason and str(log) in error
    assert "Stack Trace" in log.read_text()
    assert not list(tmp_path.glob("f1-demo-home-*")), "a temporary home is deleted after the run"


def test_a_success_shows_one_line_only(toy, tmp_path):
    output, reason, error = toy("sized")
    [line] = output.splitlines()
    assert line.startswith("[1/1]") and line.split()[2] == "sized"
    assert (reason, error) == ("", "")
    assert not logs(tmp_path)


@pytest.mark.parametrize(("selection", "module", "sizes", "expected"), [
    ("loaded", "f1_broken_definitions", {}, "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"),
    ("sized", "f1_toy_definitions", {"sized": {"races": "many"}}, 'Value "many" of type'),
    ("nothing_like_it", "f1_toy_definitions", {}, "['nothing_like_it'] were selected"),
])
def test_an_error_before_the_run_begins_is_shown(toy, selection, module, sizes, expected):
    _, reason, error = toy(selection, module, **sizes)
    assert "FAILED: dagster, before the run began\n" in reason
    assert expected in reason and "File " not in reason
    assert "before the run began" in error


def test_a_killed_process_is_shown_with_its_step(toy):
    _, reason, _ = toy("killed")
    assert "FAILED: step killed\n    its process was ended by signal 9 (Killed), often for lack of memory" in reason


def test_the_last_lines_of_an_output_without_a_known_error_are_shown(tmp_path):
    [reason] = reasons([f"line {n}\n" for n in range(100)], 3, tmp_path)
    assert reason.error.splitlines() == [f"line {n}" for n in range(80, 100)]
    [reason] = reasons([], 3, tmp_path)
    assert "without an error message" in reason.error


def test_the_output_is_used_if_the_event_log_cant_be_read(tmp_path):
    (tmp_path / "dagster.yaml").write_text("storage: [no mapping]")
    [reason] = reasons(["2026-11-30 06:00:00 +0000 - dagster - DEBUG - __ASSET_JOB - "
                        "6d83222d-9777-42e6-a313-c5e89e5f8453 - 1 - RUN_START - Started.\n", "ValueError: broken\n"],
                       1, tmp_path)
    assert reason.what == "the run"
    assert "ValueError: broken" in reason.error and "can't be read" in reason.error


def test_broken_real_data_are_named(tmp_path, f1db_folder, monkeypatch, toy):
    broken = tmp_path / "f1db"
    shutil.copytree(f1db_folder, broken, ignore=shutil.ignore_patterns("f1db-races-race-results.csv"))
    for name, value in (("F1_SOURCE", "f1db"), ("F1_F1DB_PATH", broken), ("F1_WAREHOUSE", tmp_path / "f1.duckdb")):
        monkeypatch.setenv(name, str(value))
    _, reason, error = toy("race_results", "f1_pipelines.definitions", "2026-australia...2026-china")
    assert f"FAILED: step race_results\n    SourceError: {broken} lacks f1db-races-race-results.csv; take a" in reason
    assert len(reason.splitlines()) < 8 and "step race_results" in error
