"""A frame conforms to its table, or is refused with the values received and the values wanted."""
import pandas as pd
import pytest

from f1_pipelines.tables.catalog import TABLES, VIEWS
from f1_pipelines.tables.schema import Column, InvalidRows, Table

LAPS = Table("race", "toy", "Toy laps", ("driver", "lap"), (
    Column("driver", "VARCHAR", "Driver id", required=True),
    Column("lap", "INTEGER", "Lap", required=True, minimum=1),
    Column("lap_time_s", "DOUBLE", "Lap time [s]", minimum=0.001),
    Column("compound", "VARCHAR", "Tyre", allowed=("SOFT", "HARD")),
    Column("is_accurate", "BOOLEAN", "Trusted"),
    Column("at", "TIMESTAMPTZ", "When"),
))


def frame(**changes):
    rows = {"driver": ["ham", "ver"], "lap": [1, 1], "lap_time_s": [90.5, 91.25], "compound": ["SOFT", "HARD"],
            "is_accurate": [True, False], "at": pd.to_datetime(["2026-03-08T04:00Z"] * 2)}
    return pd.DataFrame(rows | changes)


def test_columns_are_returned_in_declared_order_and_type():
    conformed = LAPS.conform(frame()[["at", "lap_time_s", "lap", "is_accurate", "driver", "compound"]])
    assert list(conformed.columns) == LAPS.column_names
    assert [str(dtype) for dtype in conformed.dtypes] == [
        "string", "Int32", "Float64", "string", "boolean", "datetime64[us, UTC]"]


@pytest.mark.parametrize("missing", [float("nan"), None, pd.NaT, pd.NA])
def test_every_kind_of_missing_becomes_missing(missing):
    conformed = LAPS.conform(frame(lap_time_s=pd.Series([90.5, missing], dtype=object)))
    assert conformed["lap_time_s"].isna().tolist() == [False, True]


@pytest.mark.parametrize(("changes", "message"), [
    ({"lap": [1, 0]}, "wanted 1 to inf"),
    ({"lap": ["one", "two"]}, "wanted INTEGER"),
    ({"lap": [1.5, 1]}, "wanted INTEGER"),
    ({"lap": pd.array([1, 99999999999], dtype="Int64")}, "can't hold"),
    ({"lap_time_s": ["fast", "slow"]}, "wanted DOUBLE"),
    ({"lap_time_s": [90.5, float("inf")]}, "an infinite number"),
    ({"compound": ["SOFT", "HYPERSOFT"]}, "one of SOFT, HARD"),
    ({"compound": ["SOFT", 3]}, "which is not text"),
    ({"driver": ["ham", None]}, "a value in every row"),
    ({"driver": ["ham", "ham"]}, "share a key"),
    ({"at": pd.to_datetime(["2026-03-08 04:00"] * 2)}, "without a time zone"),
    ({"is_accurate": ["yes", "no"]}, "wanted BOOLEAN"),
])
def test_rows_that_do_not_fit_are_refused_with_the_reason(changes, message):
    with pytest.raises(InvalidRows, match=message) as refused:
        LAPS.conform(frame(**changes))
    assert "race.toy" in str(refused.value)


def test_a_time_column_may_be_all_missing():
    assert LAPS.conform(frame(at=None))["at"].isna().all()


def test_a_missing_or_unknown_column_is_refused():
    with pytest.raises(InvalidRows, match=r"columns missing \['compound'\]"):
        LAPS.conform(frame().drop(columns="compound"))
    with pytest.raises(InvalidRows, match=r"not declared \['grid'\]"):
        LAPS.conform(frame(grid=1))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.qualified)
def test_every_declared_table_has_a_comment_and_a_key_of_required_columns(table):
    required = {column.name for column in table.columns if column.required}
    assert table.comment
    assert all(column.comment for column in table.columns)
    assert set(table.key) <= required
    assert set(table.slice_by) <= set(table.key)


def test_the_warehouse_readme_lists_every_table_and_view():
    from pathlib import Path

    readme = (Path(__file__).parents[2] / "warehouse" / "README.md").read_text()
    assert [t.qualified for t in (*TABLES, *VIEWS) if f"| `{t.qualified}` |" not in readme] == []
