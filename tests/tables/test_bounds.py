"""A value that rounding carried past a bound is clipped; a wrong value is still refused."""
import numpy as np
import pandas as pd
import pytest

from f1_pipelines.tables.bounds import clip_columns, clip_rounding
from f1_pipelines.tables.schema import Column, InvalidRows, Table

PAST = float(np.nextafter(1.0, 2.0))
SHARES = Table("race", "shares", "Toy shares", ("driver",), (
    Column("driver", "VARCHAR", "Driver id", required=True),
    Column("share", "DOUBLE", "A share", minimum=0, maximum=1),
    Column("gap_s", "DOUBLE", "A gap [s]", minimum=0),
    Column("free", "DOUBLE", "Anything"),
))


@pytest.mark.parametrize("to_column", [np.asarray, pd.Series, lambda values: pd.Series(values, dtype="Float64")])
def test_only_rounding_errors_are_clipped(to_column):
    values = [PAST, 1 + 1e-9, 1 + 2e-9, 1.0, 0.3, 0.0, -1e-17, -1e-9, -2e-9, np.nan]
    clipped = clip_rounding(to_column(values), 0.0, 1.0)
    expected = [1.0, 1.0, 1 + 2e-9, 1.0, 0.3, 0.0, 0.0, 0.0, -2e-9, np.nan]
    np.testing.assert_array_equal(pd.Series(clipped).to_numpy("float64", na_value=np.nan), expected)
    numbers = [clip_rounding(value, 0.0, 1.0) for value in values]
    np.testing.assert_array_equal(numbers, expected)


def test_one_bound_is_enough_and_the_input_is_not_changed():
    assert clip_rounding(-1e-12, minimum=0.0) == 0.0
    assert clip_rounding(1e300, minimum=0.0) == 1e300
    column = pd.Series([PAST])
    clip_rounding(column, maximum=1.0)
    assert column[0] == PAST


def test_clipped_columns_conform_to_the_table_unless_they_are_wrong():
    frame = pd.DataFrame({"driver": ["ham", "ver"], "share": [PAST, -1e-18], "gap_s": [-1e-15, 3.0],
                          "free": [PAST, -5]})
    with pytest.raises(InvalidRows, match="wanted 0 to 1"):
        SHARES.conform(frame)
    conformed = SHARES.conform(clip_columns(frame, SHARES))
    assert conformed["share"].tolist() == [1.0, 0.0]
    assert conformed["gap_s"].tolist() == [0.0, 3.0]
    assert conformed["free"].tolist() == [PAST, -5.0]
    for wrong in ({"share": [1.001, 0.5]}, {"gap_s": [-0.01, 0.0]}):
        with pytest.raises(InvalidRows, match="got 1 others"):
            SHARES.conform(clip_columns(frame.assign(**wrong), SHARES))
