"""A warehouse of an earlier schema version is migrated with its rows."""
import duckdb
import pytest

from f1_pipelines.tables.catalog import SCHEMA_VERSION
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.migrations import MIGRATIONS

TURN = ("'dry_strategy_sprint/1/1', '{}', 'dry_strategy_sprint', 1, 'train', 'monza', 1, 'a text', 'STAY_OUT', 0.0, "
        "'{{}}', false, 'a reason', 1, 1, 'abc'")


@pytest.fixture
def version_1(tmp_path):
    """A warehouse of version 1, with rows in columns and values that were renamed since."""
    warehouse = WarehouseFile(tmp_path / "f1.duckdb")
    with warehouse.write("test"):
        pass
    for path in (warehouse.path, warehouse.published_path):
        with duckdb.connect(path) as connection:
            connection.execute("UPDATE main.schema_version SET version = 1")
            connection.execute("ALTER TABLE strategy.sft_turns RENAME COLUMN collected_by TO driver")
            for driver in ("expert", "pupil"):
                connection.execute(f"INSERT INTO strategy.sft_turns VALUES ({TURN.format(driver)})")
            for metric in ("dead_moments", "frac_reward_zero_std", "moments", "spread", "pupil_score", "loss"):
                connection.execute("INSERT INTO strategy.training_curve VALUES ('r', 'grpo', 'tiny', 0, 1, ?, 0.5)",
                                   [metric])
    return warehouse


def contents(connection) -> tuple:
    return (connection.execute("SELECT collected_by FROM strategy.sft_turns ORDER BY 1").fetchall(),
            connection.execute("SELECT metric FROM strategy.training_curve ORDER BY 1").fetchall(),
            connection.execute("SELECT version FROM main.schema_version").fetchall())


MIGRATED = ([("expert",), ("student",)],
            [("frac_reward_zero_std",), ("loss",), ("reward_range",), ("states",), ("student_score",)],
            [(SCHEMA_VERSION,)])


def test_the_first_write_migrates_the_rows(version_1):
    with version_1.write("test") as connection:
        assert contents(connection) == MIGRATED
    with version_1.read() as connection:
        assert contents(connection) == MIGRATED
    assert version_1.generations.newest_first(), "the copy of version 1 is kept as an earlier generation"


def test_a_read_migrates_first(version_1):
    with version_1.read() as connection:
        assert contents(connection) == MIGRATED


def test_a_failed_write_leaves_version_1(version_1):
    with pytest.raises(ZeroDivisionError), version_1.write("test"):
        raise ZeroDivisionError
    with duckdb.connect(version_1.path, read_only=True) as connection:
        assert connection.execute("SELECT version FROM main.schema_version").fetchall() == [(1,)]
        assert connection.execute("SELECT driver FROM strategy.sft_turns ORDER BY 1").fetchall() == [
            ("expert",), ("pupil",)]


def test_every_version_has_a_migration():
    assert sorted(MIGRATIONS) == list(range(2, SCHEMA_VERSION + 1))
