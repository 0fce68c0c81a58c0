"""`f1` reports errors that a user can fix in one sentence, with an exit code and without a traceback."""
import json
import subprocess
import sys
from datetime import UTC, datetime

import duckdb
import pytest

from f1_pipelines.cli import main
from f1_pipelines.identity.weekends import season_weekends
from f1_pipelines.sources.calendar import calendar_rows
from f1_pipelines.tables.race import CALENDAR
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices


@pytest.fixture
def f1(tmp_path, monkeypatch, capsys):
    """Run the command with its own warehouse; return exit code, stdout and stderr."""
    monkeypatch.setenv("F1_WAREHOUSE", str(tmp_path / "f1.duckdb"))
    monkeypatch.setenv("F1_SOURCE", "f1db")

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["f1", *arguments])
        code = 0
        try:
            main.main()
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def warehouse(tmp_path) -> WarehouseFile:
    """A warehouse with only the calendar of 2026."""
    file = WarehouseFile(tmp_path / "f1.duckdb")
    with file.write("test") as connection:
        replace_slices(connection, CALENDAR, calendar_rows(season_weekends(2026), datetime.now(UTC)))
    return file


def one_sentence(result: tuple[int, str, str]) -> str:
    code, output, error = result
    assert (code, output) == (1, "")
    assert error.startswith("f1: ") and error.count("\n") == 1, error
    return error


def test_rows_are_printed_in_each_format(f1, warehouse):
    sql = "SELECT weekend, round, race_laps FROM race.calendar WHERE weekend LIKE '2026-sa%' ORDER BY ALL"
    assert f1("query", "--format", "csv", sql) == (
        0, "weekend,round,race_laps\n2026-sao-paulo,20,71\n2026-saudi-arabia,,50\n", "")
    assert json.loads(f1("query", "--format", "json", sql)[1]) == [
        {"weekend": "2026-sao-paulo", "round": 20, "race_laps": 71},
        {"weekend": "2026-saudi-arabia", "round": None, "race_laps": 50}]
    assert "(2 rows)" in f1("query", sql)[1]


def test_without_a_warehouse_the_error_says_how_to_fill_one(f1):
    for command in (("query", "SELECT 1"), ("predict", "2026-monaco"), ("predict", "next")):
        assert "f1.published.duckdb yet; fill it with `make demo`" in one_sentence(f1(*command))


@pytest.mark.parametrize(("weekend", "message"), [
    ("2026-monacco", '"2026-monacco" is not a known weekend; keys read season-slug, like 2024-sao-paulo: did you mean '
                     "2026-monaco?"),
    ("1950-monaco", '"1950-monaco" is not a known weekend'),
    ("2026-monaco", "no model is promoted yet; train one with `make demo`"),
])
def test_an_unpredictable_weekend_gives_a_reason(f1, warehouse, weekend, message):
    assert message in one_sentence(f1("predict", weekend))


@pytest.mark.parametrize(("sql", "message"), [
    ("SELEKT 1", "syntax error"),
    ("SELECT * FROM race.nothing", "nothing does not exist"),
    ("DELETE FROM race.calendar", "read-only"),
    ("SELECT 'soon'::TIMESTAMPTZ", "soon"),
])
def test_invalid_sql_gives_a_reason(f1, warehouse, sql, message):
    assert message in one_sentence(f1("query", sql))
    assert f1("query", "--format", "csv", "SELECT count(*) AS n FROM race.calendar")[1] == "n\n24\n"


def test_an_unreadable_sql_file_is_named(f1, warehouse, tmp_path):
    assert "nowhere.sql" in one_sentence(f1("query", "--file", str(tmp_path / "nowhere.sql")))
    (tmp_path / "latin.sql").write_bytes("SELECT 'São Paulo'".encode("latin-1"))
    assert "latin.sql" in one_sentence(f1("query", "--file", str(tmp_path / "latin.sql")))


@pytest.mark.parametrize(("variable", "value", "wanted"), [
    ("F1_SOURCE", "ergast", "'f1db' or 'fastf1'"), ("F1_WRITE_WAIT_S", "soon", "a valid number"),
])
def test_an_invalid_setting_is_named(f1, warehouse, monkeypatch, variable, value, wanted):
    monkeypatch.setenv(variable, value)
    for command in (("query", "SELECT 1"), ("predict", "next")):
        error = one_sentence(f1(*command))
        assert variable in error and value in error and wanted in error


def test_a_broken_calendar_file_is_named(f1, warehouse, tmp_path):
    (tmp_path / "f1.calendar.csv").write_text("weekend,season\n2026-monaco,2026\n")
    assert "f1.calendar.csv lacks the columns round" in one_sentence(f1("predict", "2026-monaco"))


def test_the_doctor_names_a_missing_release(f1, warehouse, monkeypatch):
    monkeypatch.setenv("F1_F1DB_PATH", "/nowhere")
    code, output, _ = f1("doctor")
    assert code == 1
    assert "FAIL  source: no f1db release at /nowhere: set F1_F1DB_PATH to the folder or zip" in output
    assert "ok    warehouse: 0 races" in output


@pytest.mark.parametrize("arguments", [(), ("SELECT 1", "--file", "a.sql"), ("--format", "xml", "SELECT 1")])
def test_a_wrong_command_exits_with_code_2(f1, arguments):
    code, _, error = f1("query", *arguments)
    assert code == 2
    assert "Error: " in error


def test_a_broken_published_copy_gives_a_remedy(f1, warehouse):
    warehouse.published_path.write_bytes(b"not a database" * 1000)
    error = one_sentence(f1("query", "SELECT 1"))
    assert "`f1 doctor --deep` says whether f1.duckdb is intact, which the next write publishes again" in error


def test_a_published_copy_of_another_version_is_refused(f1, warehouse):
    with duckdb.connect(warehouse.published_path) as connection:
        connection.execute("UPDATE main.schema_version SET version = 99")
    for command in (("query", "SELECT 1"), ("predict", "next")):
        assert "holds schema version 99" in one_sentence(f1(*command))


def test_freeing_pools_without_a_home_is_an_error(f1, monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    assert "DAGSTER_HOME is not set" in one_sentence(f1("doctor", "--free-pools"))


HOLD = """
import duckdb, sys, time
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
time.sleep(60)
"""


def test_a_query_works_while_another_process_has_the_file_open(f1, warehouse):
    shell = subprocess.Popen([sys.executable, "-c", HOLD, warehouse.path], stdout=subprocess.PIPE, text=True)
    try:
        assert shell.stdout.readline() == "open\n"
        assert f1("query", "--format", "csv", "SELECT count(*) AS n FROM race.calendar") == (0, "n\n24\n", "")
    finally:
        shell.kill()
        shell.wait()
        shell.stdout.close()


def test_a_race_is_played_and_printed(f1):
    text = f1("race", "--family", "late_safety_car", "--seed", "3", "--policy", "stay_out")[1]
    assert text.startswith("late_safety_car seed 3 (")
    assert "STAY_OUT" in text and "best possible P" in text
    played = json.loads(f1("race", "--family", "late_safety_car", "--seed", "3", "--policy", "stay_out",
                           "--format", "json")[1])
    assert played["score"]["score"] == pytest.approx(sum(d["reward"] for d in played["decisions"]))


@pytest.mark.parametrize(("option", "value", "message"), [
    ("--family", "monza", "Valid: dry_strategy_sprint"), ("--policy", "gpt", "Valid: random"),
    ("--seed", "-3", "seed must be a whole number from 0"), ("--circuit", "nowhere", "Valid: austin")])
def test_a_race_that_does_not_exist_is_one_sentence(f1, option, value, message):
    options = {"--family": "late_safety_car", "--seed": "3", "--policy": "stay_out"} | {option: value}
    assert message in one_sentence(f1("race", *[part for pair in options.items() for part in pair]))


def test_the_table_of_policies_is_printed(f1):
    text = f1("policies", "--n", "1")[1]
    assert "expert" in text and "keyword_radio" in text and "oracle" in text


@pytest.mark.parametrize(("arguments", "message"), [
    ((), "wanted --weekend and --driver"), (("--weekend", "2026-monaco"), "wanted --weekend and --driver"),
    (("--weekend", "2026-monaco", "--driver", "1", "--circuit", "monza"), "no --circuit")])
def test_a_grand_prix_needs_a_weekend_and_a_driver(f1, arguments, message):
    code, _, error = f1("race", "--family", "grand_prix", "--seed", "3", "--policy", "stay_out", *arguments)
    assert code == 2 and message in error
    code, _, error = f1("race", "--family", "late_safety_car", "--seed", "3", "--policy", "stay_out", "--driver",
                            "1")
    assert code == 2 and "belong to --family grand_prix" in error


@pytest.mark.parametrize(("weekend", "message"), [
    ("2026-monaco", "2026-monaco has no grid yet"), ("2026-saudi-arabia", "was cancelled"),
    ("2025-monaco", "2025-monaco is not loaded; load it with"), ("2026-monacco", "did you mean 2026-monaco?")])
def test_a_weekend_without_a_race_to_rebuild_gives_a_reason(f1, warehouse, weekend, message):
    assert message in one_sentence(f1("race", "--family", "grand_prix", "--weekend", weekend, "--driver", "leclerc",
                                   "--seed", "3", "--policy", "stay_out"))


def test_the_doctor_finds_damage_and_a_backup_restores(f1, warehouse, tmp_path, monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("F1_SOURCE", "sample")
    target = tmp_path / "safe" / "backup"
    code, output, _ = f1("backup", str(target))
    assert code == 0 and f"Restore it with `f1 restore {target}`" in output
    assert "is there already" in one_sentence(f1("backup", str(target)))

    with warehouse.path.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(bytes(64 * 1024))
    assert f1("doctor")[0] in (0, 1)
    code, output, _ = f1("doctor", "--deep")
    assert code == 1
    assert "FAIL  warehouse file: " in output and "damaged" in output and "ok    published copy: " in output

    code, output, _ = f1("restore", str(target))
    assert code == 0 and f"from {target / 'f1.duckdb'}" in output and "set aside: " in output
    assert f1("doctor", "--deep")[0] == 0
    assert "is intact, so nothing was restored" in one_sentence(f1("restore"))


def test_a_reset_has_to_be_confirmed(f1, warehouse, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert f1("reset")[0] != 0
    assert warehouse.path.exists()
    code, output, _ = f1("reset", "--yes")
    assert code == 0 and "the next write starts an empty warehouse" in output
    assert not warehouse.path.exists() and not warehouse.published_path.exists()


def test_a_deep_check_finds_deleted_and_damaged_checkpoints(f1, warehouse, tmp_path, monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    broken = tmp_path / "checkpoints" / "abc"
    broken.mkdir(parents=True)
    (broken / "meta.json").write_text('{"feature_version": "1", "weights_sha256": "0"}')
    (broken / "model.safetensors").write_bytes(b"cut off")
    with warehouse.write("test") as connection:
        connection.execute("""INSERT INTO ranking.checkpoints BY NAME SELECT 'gone' AS checkpoint, 'pretrained' AS kind,
            'champion' AS model, '2018-australia' AS trained_from, '2025-abu-dhabi' AS trained_through, 1 AS n_races,
            '1' AS feature_version, 'x' AS data_version, 0 AS seed, '{}' AS metrics, 'gone' AS path, true AS promoted,
            now() AS created_at""")
    code, output, _ = f1("doctor", "--deep")
    assert code == 1
    assert "is damaged, their digests differ" in output
    assert f"{tmp_path / 'checkpoints' / 'gone'} is promoted but missing" in output
