"""A new connection sees the latest published copy, however many others are open."""
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

from f1_pipelines.warehouse.database import WarehouseFile
from tests.warehouse.pit_stops import put, stops

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
    return stops("2026-monaco", 100)


@pytest.fixture
def publish(tmp_path: Path, frame: pd.DataFrame):
    """A function that lets another process publish a number of rows, and waits for it."""
    frame.to_pickle(tmp_path / "frame.pickle")
    process = subprocess.Popen([sys.executable, "-c", PUBLISH, tmp_path / "f1.duckdb", tmp_path / "frame.pickle"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def publish_rows(count: int) -> None:
        process.stdin.write(f"{count}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "published\n"

    yield publish_rows
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()


def count(connection) -> int:
    return connection.execute("SELECT count(*) FROM race.pit_stops").fetchone()[0]


def test_a_new_reader_sees_new_rows_while_an_old_one_stays_open(tmp_path, publish):
    warehouse = WarehouseFile(tmp_path / "f1.duckdb")
    publish(21)
    with warehouse.read() as first:
        assert count(first) == 21
        for rows in (42, 63, 84):
            publish(rows)
            with warehouse.read() as new, warehouse.read() as another:
                assert (count(new), count(another)) == (rows, rows)
            assert count(first) == 21  # the copy when it was opened


def test_overlapping_readers_in_many_threads_are_never_stale(tmp_path, publish):
    """Each thread opens the next reader before it closes the last one, as on a busy server."""
    warehouse, published, problems, stop = WarehouseFile(tmp_path / "f1.duckdb"), [10], [], threading.Event()
    publish(10)

    def read_until_stopped() -> None:
        try:
            reader = warehouse.read()
            reader.__enter__()
            while not stop.is_set():
                minimum = published[0]
                next_reader = warehouse.read()
                if count(next_reader.__enter__()) < minimum:
                    problems.append(f"stale: fewer than {minimum} rows")
                reader.__exit__(None, None, None)
                reader = next_reader
            reader.__exit__(None, None, None)
        except Exception as problem:  # noqa: BLE001  a thread's error would be lost
            problems.append(repr(problem))

    threads = [threading.Thread(target=read_until_stopped) for _ in range(4)]
    for thread in threads:
        thread.start()
    for rows in range(15, 51, 5):
        publish(rows)
        published[0] = rows
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []


def test_readers_see_writes_of_the_same_process(tmp_path, frame):
    warehouse = WarehouseFile(tmp_path / "f1.duckdb")
    for rows in (5, 10):
        put(warehouse, frame.head(rows))
        with warehouse.read() as reader, warehouse.read() as another:
            assert (count(reader), count(another)) == (rows, rows)


def test_a_reader_cannot_write(tmp_path, frame):
    warehouse = WarehouseFile(tmp_path / "f'1.duckdb")  # a quote in the path
    put(warehouse, frame)
    with warehouse.read() as reader, pytest.raises(Exception, match="read-only"):
        reader.execute("DELETE FROM race.pit_stops")
