"""Scores lie in [0, 1] exactly, for any parts."""
import math

from hypothesis import example, given
from hypothesis import strategies as st

from f1_pipelines.sim.scoring.dimensions import (
    DIMENSIONS,
    WEIGHTS,
    Score,
    fuel_management,
    operations,
    race_result,
    strategic_decisions,
    tyre_management,
)

SHARE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, math.nextafter(1, 0), 0.1, 0.3]))
SECONDS = st.floats(-1e4, 1e4)
COUNT = st.integers(0, 60)


@given(st.tuples(*[SHARE] * len(DIMENSIONS)))
@example((1.0,) * len(DIMENSIONS))
@example((0.0,) * len(DIMENSIONS))
def test_the_weighted_sum_stays_within_0_and_1(parts):
    total = Score(*parts).total
    assert 0.0 <= total <= 1.0
    assert abs(total - math.fsum(weight * part for weight, part in zip(WEIGHTS.values(), parts, strict=True))) < 1e-12


def test_a_perfect_race_scores_exactly_one():
    best = Score(race_result(True, 2, 1000.0, 2, 1000.0, rival="beaten"), strategic_decisions(0.0, True),
                 tyre_management(0.0, 0.0, True), fuel_management(0.0, 0.0, 0.0, False), 1.0,
                 operations(0, 0, 0, 0, True))
    assert best.as_dict() == {**dict.fromkeys(DIMENSIONS, 1.0), "score": 1.0}


@given(SECONDS, SECONDS, SECONDS, SECONDS, COUNT, COUNT, COUNT, COUNT, st.booleans(), st.booleans())
def test_every_dimension_stays_within_0_and_1(a, b, c, d, i, j, k, n, legal, dry):
    values = [*(race_result(legal, i + 1, a, j + 1, b, rival) for rival in ("none", "beaten", "ahead", "unbeatable")),
              strategic_decisions(a, legal), tyre_management(a, b, legal), fuel_management(a, b, max(c, 0.0), dry),
              operations(i, j, k, n, legal)]
    assert all(0.0 <= value <= 1.0 for value in values)
