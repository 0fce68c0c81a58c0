"""A new connection sees what was published last, however many others are open."""
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices

STOPS = BY_NAME["race.pit_stops"]

PUBLISH = """
import sys
import pandas as pd
from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices
frame = pd.read_pickle(sys.argv[2])
for cars in sys.stdin:
    with WarehouseFile(sys.argv[1]).write("publish") as connection:
        replace_slices(connection, BY_NAME["race.pit_stops"], frame.head(int(cars)))
    print("published", flush=True)
"""


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({
        "weekend": "2026-monaco", "driver": [f"driver-{car}" for car in range(100)], "constructor": None, "stop": 1,
        "lap": 20, "pit_lane_time_s": 22.0, "source": "f1db", "source_version": "test",
        "fetched_at": pd.Timestamp("2026-07-19T15:00Z")})


@pytest.fixture
def publish(tmp_path: Path, frame: pd.DataFrame):
    """Lets another process publish so many rows, and returns when it has."""
    frame.to_pickle(tmp_path / "frame.pickle")
    process = subprocess.Popen([sys.executable, "-c", PUBLISH, tmp_path / "f1.duckdb", tmp_path / "frame.pickle"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def rows(count: int) -> None:
        process.stdin.write(f"{count}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "published\n"

    yield rows
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()


def count(connection) -> int:
    return connection.execute("SELECT count(*) FROM race.pit_stops").fetchone()[0]


def test_a_reader_that_stays_open_keeps_no_new_one_at_the_old_rows(tmp_path, publish):
    warehouse = WarehouseFile(tmp_path / "f1.duckdb")
    publish(21)
    with warehouse.read() as first:
        assert count(first) == 21
        for rows in (42, 63, 84):
            publish(rows)
            with warehouse.read() as new, warehouse.read() as another:
                assert (count(new), count(another)) == (rows, rows)
            assert count(first) == 21  # what was published when it was opened


def test_a_chain_of_overlapping_readers_in_many_threads_is_never_stale(tmp_path, publish):
    """Each reader opens the next one before it closes, as on a busy server."""
    warehouse, published, problems, stop = WarehouseFile(tmp_path / "f1.duckdb"), [10], [], threading.Event()
    publish(10)

    def read_for_ever() -> None:
        try:
            reader = warehouse.read()
            reader.__enter__()
            while not stop.is_set():
                at_least = published[0]
                following = warehouse.read()
                if count(following.__enter__()) < at_least:
                    problems.append(f"stale: fewer than {at_least} rows")
                reader.__exit__(None, None, None)
                reader = following
            reader.__exit__(None, None, None)
        except Exception as problem:  # noqa: BLE001  a thread's error would be lost
            problems.append(repr(problem))

    threads = [threading.Thread(target=read_for_ever) for _ in range(4)]
    for thread in threads:
        thread.start()
    for rows in range(15, 51, 5):
        publish(rows)
        published[0] = rows
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []


def test_readers_see_a_write_of_their_own_process(tmp_path, frame):
    warehouse = WarehouseFile(tmp_path / "f1.duckdb")
    for rows in (5, 10):
        with warehouse.write("test") as connection:
            replace_slices(connection, STOPS, frame.head(rows))
        with warehouse.read() as reader, warehouse.read() as another:
            assert (count(reader), count(another)) == (rows, rows)


def test_a_reader_can_change_nothing(tmp_path, frame):
    warehouse = WarehouseFile(tmp_path / "f'1.duckdb")  # a quote in the path
    with warehouse.write("test") as connection:
        replace_slices(connection, STOPS, frame)
    with warehouse.read() as reader, pytest.raises(Exception, match="read-only"):
        reader.execute("DELETE FROM race.pit_stops")
