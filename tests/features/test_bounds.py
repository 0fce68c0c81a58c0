"""Means of shares and gaps stay within the bounds of `features.ranking`."""
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f1_pipelines.features.form import last_mean, season_mean, weighted_form
from f1_pipelines.features.pace import GAP_CAP_PCT, gap_to_best_pct, place
from f1_pipelines.tables.bounds import clip_rounding

NEAR = st.sampled_from([0.0, 0.05, 1 / 3, 0.9, 1.0, float(np.nextafter(1, 0)), float(np.nextafter(0, 1))])


@given(st.lists(NEAR, min_size=2, max_size=60), st.sampled_from([0.5, 6.0, 50.0]))
@settings(max_examples=60, deadline=None)
def test_a_weighted_mean_is_within_the_range_of_its_values(values, half_life):
    shares = pd.DataFrame({"share": values, "gap": np.array(values) * GAP_CAP_PCT})
    form = weighted_form(shares, pd.Series("ham", index=shares.index), half_life).dropna()
    assert clip_rounding(form["share"], 0.0, 1.0).between(0, 1).all()
    assert clip_rounding(form["gap"], 0.0, GAP_CAP_PCT).between(0, GAP_CAP_PCT).all()


@pytest.mark.parametrize("cars", [1, 2, 3, 10, 19, 20, 22])
def test_the_first_and_last_place_and_gap_of_a_weekend_are_exact(cars):
    rng = np.random.default_rng(cars)
    for _ in range(100):
        times, weekend = pd.Series(rng.permutation(80 + rng.random(cars))), pd.Series("2026-monaco", range(cars))
        shares, gaps = place(times, weekend), gap_to_best_pct(times, weekend)
        assert shares.min() == 0.0 and shares.max() == (1.0 if cars > 1 else 0.0)
        assert gaps.min() == 0.0 and gaps.max() <= GAP_CAP_PCT


def test_the_mean_finish_of_a_winning_streak_is_exactly_1():
    finish, season = pd.Series([20.0, *[1.0] * 30, 19.0, *[1.0] * 30]), pd.Series(2026, range(62))
    driver = pd.Series("ver", finish.index)
    assert last_mean(finish, driver).min() == 1.0
    assert season_mean(finish.iloc[1:31], driver.iloc[1:31], season.iloc[1:31]).dropna().eq(1.0).all()


def test_a_mean_that_exceeds_a_bound_by_rounding_is_accepted(season, monkeypatch):
    """No known results give such a mean, so the patch adds the rounding error."""
    monkeypatch.setattr("f1_pipelines.features.form.weighted_form",
                        lambda *arguments: weighted_form(*arguments) + 4e-16)
    season.weekend("2026-australia", "2026-03-08", race=["ham", "ver"], qualifying=["ham", "ver"])
    season.weekend("2026-china", "2026-03-15", race=["ham", "ver"], qualifying=["ham", "ver"])
    form = season.features().loc["2026-china"]
    assert form["driver_finish_form"].tolist() == pytest.approx([0.0, 1.0], abs=1e-15)
    assert form.loc["ver", "driver_finish_form"] == 1.0
