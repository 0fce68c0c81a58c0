"""The tables at the end of the demo, from the tables of a warehouse."""
from datetime import UTC, datetime

import duckdb
import pytest

from f1_pipelines.cli.demo.summary import engineers, evaluation
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS
from f1_pipelines.tables.evaluation import EVALUATION_SUMMARY
from f1_pipelines.tables.schema import Table
from f1_pipelines.tables.strategy import LEADERBOARD
from f1_pipelines.warehouse.database import WarehouseFile

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture
def connection(tmp_path):
    """Write connection to a warehouse with all tables and no rows."""
    with WarehouseFile(tmp_path / "f1.duckdb").write("test") as connection:
        yield connection


def insert(connection: duckdb.DuckDBPyConnection, table: Table, **values: object) -> None:
    """Insert a row; other required columns get 0 or a placeholder."""
    defaults = {column.name: 0 if column.type in ("DOUBLE", "INTEGER", "BIGINT") else NOW if "TIMESTAMP" in column.type
                else False if column.type == "BOOLEAN" else "x" for column in table.columns if column.required}
    row = {**defaults, **values}
    connection.execute(f"INSERT INTO {table.qualified} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                       list(row.values()))


def add_predictor(connection, predictor: str, spearman: float, protocol: str = "rolling_2019_2025", n: int = 152,
                  population: str = "starters") -> None:
    insert(connection, EVALUATION_SUMMARY, predictor=predictor, protocol=protocol, population=population, n_races=n,
           spearman=spearman, delta_spearman=spearman - 0.629, delta_low=-0.011, delta_high=0.062, top1=0.4934)


def add_policy(connection, policy: str, mean: float, gap: float | None, family: str = "all",
               variant: str = "plain") -> None:
    insert(connection, LEADERBOARD, policy=policy, variant=variant, family=family, n=6, mean=mean, low=mean - 0.1,
           high=mean + 0.1, gap_closed=gap, **dict.fromkeys(DIMENSIONS, 0.5))


def test_the_evaluation_marks_our_rows_and_explains_its_columns(connection):
    add_predictor(connection, "champion", 0.674)
    add_predictor(connection, "grid", 0.629)
    add_predictor(connection, "last3", 0.525)
    add_predictor(connection, "champion", 0.9, population="classified")
    add_predictor(connection, "champion", 0.692, "prequential_2026", 11)
    add_predictor(connection, "champion_ewc", 0.702, "prequential_2026", 11)
    add_predictor(connection, "grid", 0.684, "prequential_2026", 11)
    lines = evaluation(connection).splitlines()
    assert lines[0] == "EVALUATION: 152 races unseen in training"
    rows = [line.split() for line in lines if line.endswith(" %")]
    assert rows == [[">", "champion", "0.674", "+0.045", "[-0.011,", "+0.062]", "49.3", "%"],
                    ["grid", "0.629", "49.3", "%"],
                    ["last3", "0.525", "-0.104", "[-0.011,", "+0.062]", "49.3", "%"]]
    text = "\n".join(lines)
    assert "> our ranker" in text and "1 equal, 0 unrelated" in text and "interval above 0" in text
    assert "prequential_2026 (11 races): champion_ewc 0.702, champion 0.692, grid 0.684" in text
    assert "0.900" not in text, "of another population"
    assert "f1 query --file warehouse/queries/ranking_table.sql" in lines[-1]
    assert max(map(len, lines)) <= 100


def test_the_current_season_alone_is_shown_as_a_table(connection):
    add_predictor(connection, "champion_ewc", 0.702, "prequential_2026", 11)
    add_predictor(connection, "grid", 0.684, "prequential_2026", 11)
    text = evaluation(connection)
    assert text.startswith("EVALUATION: 11 races") and "  >   champion_ewc " in text


def test_without_a_tested_race_it_gives_the_reason(connection):
    assert "A test needs an earlier season" in evaluation(connection)
    assert "no engineer was evaluated" in engineers(connection)


def test_engineers_are_ordered_by_score_with_ours_marked(connection):
    for policy, mean, gap in (("expert", 0.9744, 1.0), ("sft", 0.2281, 0.0684), ("untrained", 0.1733, 0.0),
                              ("random", 0.16, -0.0166), ("oracle", 1.0, None)):
        add_policy(connection, policy, mean, gap)
    add_policy(connection, "sft", 0.5, 0.5, family="dry_strategy_sprint")
    add_policy(connection, "sft", 0.6, 0.6, variant="renamed")
    text = engineers(connection, toy=True)
    rows = [line.split() for line in text.splitlines() if "[" in line and "95 %" not in line]
    assert rows == [["oracle", "1.000", "[0.900,", "1.100]"],
                    ["expert", "0.974", "[0.874,", "1.074]", "100.0", "%"],
                    [">", "sft", "0.228", "[0.128,", "0.328]", "6.8", "%"],
                    [">", "untrained", "0.173", "[0.073,", "0.273]", "0.0", "%"],
                    ["random", "0.160", "[0.060,", "0.260]", "-1.7", "%"]]
    assert "Toy size" in text and "Toy size" not in engineers(connection)
    assert max(map(len, text.splitlines())) <= 100
