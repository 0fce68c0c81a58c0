"""What a user can mend is told by `f1` in one sentence, with an exit code and without a traceback."""
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
    """Runs the command with its own warehouse; returns exit code, what it printed, and what it complained of."""
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
    """The calendar of 2026, and nothing else."""
    file = WarehouseFile(tmp_path / "f1.duckdb")
    with file.write("test") as connection:
        replace_slices(connection, CALENDAR, calendar_rows(season_weekends(2026), datetime.now(UTC)))
    return file


def one_sentence(answer: tuple[int, str, str]) -> str:
    code, printed, complaint = answer
    assert (code, printed) == (1, "")
    assert complaint.startswith("f1: ") and complaint.count("\n") == 1, complaint
    return complaint


def test_rows_are_printed_in_each_format(f1, warehouse):
    sql = "SELECT weekend, round, race_laps FROM race.calendar WHERE weekend LIKE '2026-sa%' ORDER BY ALL"
    assert f1("query", "--format", "csv", sql) == (
        0, "weekend,round,race_laps\n2026-sao-paulo,20,71\n2026-saudi-arabia,,50\n", "")
    assert json.loads(f1("query", "--format", "json", sql)[1]) == [
        {"weekend": "2026-sao-paulo", "round": 20, "race_laps": 71},
        {"weekend": "2026-saudi-arabia", "round": None, "race_laps": 50}]
    assert "(2 rows)" in f1("query", sql)[1]


def test_without_a_warehouse_it_says_how_to_fill_one(f1):
    for command in (("query", "SELECT 1"), ("predict", "2026-monaco"), ("predict", "next")):
        assert "f1.published.duckdb yet; fill it with `make demo`" in one_sentence(f1(*command))


@pytest.mark.parametrize(("weekend", "told"), [
    ("2026-monacco", '"2026-monacco" is not a known weekend; keys read season-slug, like 2024-sao-paulo: did you mean '
                     "2026-monaco?"),
    ("1950-monaco", '"1950-monaco" is not a known weekend'),
    ("2026-monaco", "no model is promoted yet; train one with `make demo`"),
])
def test_a_weekend_that_can_not_be_predicted_says_why(f1, warehouse, weekend, told):
    assert told in one_sentence(f1("predict", weekend))


@pytest.mark.parametrize(("sql", "told"), [
    ("SELEKT 1", "syntax error"),
    ("SELECT * FROM race.nothing", "nothing does not exist"),
    ("DELETE FROM race.calendar", "read-only"),
    ("SELECT 'soon'::TIMESTAMPTZ", "soon"),
])
def test_sql_that_can_not_be_run_says_why(f1, warehouse, sql, told):
    assert told in one_sentence(f1("query", sql))
    assert f1("query", "--format", "csv", "SELECT count(*) AS n FROM race.calendar")[1] == "n\n24\n"


def test_a_file_of_sql_that_can_not_be_read_says_why(f1, warehouse, tmp_path):
    assert "nowhere.sql" in one_sentence(f1("query", "--file", str(tmp_path / "nowhere.sql")))
    (tmp_path / "latin.sql").write_bytes("SELECT 'São Paulo'".encode("latin-1"))
    assert "latin.sql" in one_sentence(f1("query", "--file", str(tmp_path / "latin.sql")))


@pytest.mark.parametrize(("variable", "value", "wanted"), [
    ("F1_SOURCE", "ergast", "'f1db' or 'fastf1'"), ("F1_WRITE_WAIT_S", "soon", "a valid number"),
])
def test_a_setting_that_can_not_be_is_named(f1, warehouse, monkeypatch, variable, value, wanted):
    monkeypatch.setenv(variable, value)
    for command in (("query", "SELECT 1"), ("predict", "next")):
        complaint = one_sentence(f1(*command))
        assert variable in complaint and value in complaint and wanted in complaint


def test_a_broken_calendar_says_which_line(f1, warehouse, tmp_path):
    (tmp_path / "f1.calendar.csv").write_text("weekend,season\n2026-monaco,2026\n")
    assert "f1.calendar.csv lacks the columns round" in one_sentence(f1("predict", "2026-monaco"))


def test_the_doctor_names_a_release_that_is_not_there(f1, warehouse, monkeypatch):
    monkeypatch.setenv("F1_F1DB_PATH", "/nowhere")
    code, printed, _ = f1("doctor")
    assert code == 1
    assert "FAIL  source: no f1db release at /nowhere: set F1_F1DB_PATH to the folder or zip" in printed
    assert "ok    warehouse: 0 races" in printed


@pytest.mark.parametrize("arguments", [(), ("SELECT 1", "--file", "a.sql"), ("--format", "xml", "SELECT 1")])
def test_a_command_that_is_wrong_is_exit_code_2(f1, arguments):
    code, _, complaint = f1("query", *arguments)
    assert code == 2
    assert "Error: " in complaint


def test_a_published_copy_that_is_broken_says_what_to_do(f1, warehouse):
    warehouse.published_path.write_bytes(b"not a database" * 1000)
    complaint = one_sentence(f1("query", "SELECT 1"))
    assert "`f1 doctor --deep` says whether f1.duckdb is intact, which the next write publishes again" in complaint


def test_a_published_copy_of_another_version_is_refused(f1, warehouse):
    with duckdb.connect(warehouse.published_path) as connection:
        connection.execute("UPDATE main.schema_version SET version = 99")
    for command in (("query", "SELECT 1"), ("predict", "next")):
        assert "holds schema version 99" in one_sentence(f1(*command))


def test_freeing_pools_without_a_home_says_so(f1, monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    assert "DAGSTER_HOME is not set" in one_sentence(f1("doctor", "--free-pools"))


HOLD = """
import duckdb, sys, time
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
time.sleep(60)
"""


def test_a_query_works_while_somebody_has_the_file_open(f1, warehouse):
    shell = subprocess.Popen([sys.executable, "-c", HOLD, warehouse.path], stdout=subprocess.PIPE, text=True)
    try:
        assert shell.stdout.readline() == "open\n"
        assert f1("query", "--format", "csv", "SELECT count(*) AS n FROM race.calendar") == (0, "n\n24\n", "")
    finally:
        shell.kill()
        shell.wait()
        shell.stdout.close()


def test_a_race_is_played_and_told(f1):
    text = f1("race", "--family", "late_safety_car", "--seed", "3", "--policy", "stay_out")[1]
    assert text.startswith("late_safety_car seed 3 (")
    assert "STAY_OUT" in text and "best possible P" in text
    played = json.loads(f1("race", "--family", "late_safety_car", "--seed", "3", "--policy", "stay_out",
                           "--format", "json")[1])
    assert played["score"]["score"] == pytest.approx(sum(d["reward"] for d in played["decisions"]))


@pytest.mark.parametrize(("option", "value", "told"), [
    ("--family", "monza", "Valid: dry_strategy_sprint"), ("--policy", "gpt", "Valid: random"),
    ("--seed", "-3", "seed must be a whole number from 0"), ("--circuit", "nowhere", "Valid: austin")])
def test_a_race_that_does_not_exist_is_one_sentence(f1, option, value, told):
    wanted = {"--family": "late_safety_car", "--seed": "3", "--policy": "stay_out"} | {option: value}
    assert told in one_sentence(f1("race", *[part for pair in wanted.items() for part in pair]))


def test_the_table_of_policies_is_printed(f1):
    text = f1("policies", "--n", "1")[1]
    assert "expert" in text and "keyword_radio" in text and "oracle" in text


@pytest.mark.parametrize(("more", "told"), [
    ((), "wanted --weekend and --driver"), (("--weekend", "2026-monaco"), "wanted --weekend and --driver"),
    (("--weekend", "2026-monaco", "--driver", "1", "--circuit", "monza"), "no --circuit")])
def test_a_grand_prix_wants_a_weekend_and_a_driver(f1, more, told):
    code, _, complaint = f1("race", "--family", "grand_prix", "--seed", "3", "--policy", "stay_out", *more)
    assert code == 2 and told in complaint
    code, _, complaint = f1("race", "--family", "late_safety_car", "--seed", "3", "--policy", "stay_out", "--driver",
                            "1")
    assert code == 2 and "belong to --family grand_prix" in complaint


@pytest.mark.parametrize(("weekend", "told"), [
    ("2026-monaco", "2026-monaco has no grid yet"), ("2026-saudi-arabia", "was cancelled"),
    ("2025-monaco", "2025-monaco is not loaded; load it with"), ("2026-monacco", "did you mean 2026-monaco?")])
def test_a_weekend_that_no_race_can_be_rebuilt_from_says_why(f1, warehouse, weekend, told):
    assert told in one_sentence(f1("race", "--family", "grand_prix", "--weekend", weekend, "--driver", "leclerc",
                                   "--seed", "3", "--policy", "stay_out"))


def test_backup_damage_doctor_and_restore(f1, warehouse, tmp_path, monkeypatch):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("F1_SOURCE", "sample")
    target = tmp_path / "safe" / "backup"
    code, printed, _ = f1("backup", str(target))
    assert code == 0 and f"Go back to it with `f1 restore {target}`" in printed
    assert "is there already" in one_sentence(f1("backup", str(target)))

    with warehouse.path.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(bytes(64 * 1024))
    assert f1("doctor")[0] in (0, 1)
    code, printed, _ = f1("doctor", "--deep")
    assert code == 1
    assert "FAIL  warehouse file: " in printed and "damaged" in printed and "ok    published copy: " in printed

    code, printed, _ = f1("restore", str(target))
    assert code == 0 and f"from {target / 'f1.duckdb'}" in printed and "set aside: " in printed
    assert f1("doctor", "--deep")[0] == 0
    assert "is intact, so nothing was restored" in one_sentence(f1("restore"))


def test_a_new_start_has_to_be_confirmed(f1, warehouse, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert f1("reset")[0] != 0
    assert warehouse.path.exists()
    code, printed, _ = f1("reset", "--yes")
    assert code == 0 and "the next write begins an empty warehouse" in printed
    assert not warehouse.path.exists() and not warehouse.published_path.exists()


def test_a_deleted_and_a_damaged_checkpoint_are_found_by_a_deep_look(f1, warehouse, tmp_path, monkeypatch):
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
    code, printed, _ = f1("doctor", "--deep")
    assert code == 1
    assert "one of them is damaged" in printed
    assert f"{tmp_path / 'checkpoints' / 'gone'} is promoted and not there" in printed
