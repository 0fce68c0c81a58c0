"""Write rows of `race.pit_stops`, the small table of these tests, and read back their weekends."""
import pandas as pd

from f1_pipelines.tables.catalog import BY_NAME
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.ingest import stored_weekends
from f1_pipelines.warehouse.replace import replace_slices

STOPS = BY_NAME["race.pit_stops"]


def stops(weekend: str, n: int = 3, seconds: float | list[float] = 22.0) -> pd.DataFrame:
    """One stop of each of `n` cars."""
    return pd.DataFrame({
        "weekend": weekend, "driver": [f"driver-{i}" for i in range(n)], "constructor": None, "stop": 1, "lap": 20,
        "pit_lane_time_s": seconds, "source": "f1db", "source_version": "test",
        "fetched_at": pd.Timestamp("2026-07-19T15:00Z")})


def put(warehouse: WarehouseFile, frame: pd.DataFrame, **options) -> int:
    with warehouse.write("test") as connection:
        return replace_slices(connection, STOPS, frame, **options)


def put_weekend(warehouse: WarehouseFile, weekend: str, n: int = 3) -> None:
    put(warehouse, stops(weekend, n))


def weekends(warehouse: WarehouseFile) -> list[str]:
    with warehouse.read() as connection:
        return sorted(stored_weekends(connection, STOPS.qualified))


def rows(warehouse: WarehouseFile) -> list[tuple]:
    """(weekend, number of stops, shortest time in the pit lane) of each weekend."""
    with warehouse.read() as connection:
        return connection.execute(
            "SELECT weekend, count(*), min(pit_lane_time_s) FROM race.pit_stops GROUP BY ALL ORDER BY 1").fetchall()
