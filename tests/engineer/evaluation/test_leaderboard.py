"""Means of a leaderboard stay inside the span of the scores, for any number of races."""
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.engineer.evaluation.leaderboard import leaderboard
from f1_pipelines.sim.scenarios import FAMILIES
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS
from f1_pipelines.tables.strategy import LEADERBOARD


def episodes(score, races: dict[str, int]) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame([
        {"policy": "oracle", "variant": "plain", "family": family, "seed": seed, "checkpoint": None, "split": "test",
         "score": score(rng), **{name: score(rng) for name in DIMENSIONS}, "regret": score(rng), "parse_failures": 10,
         "laps_called": 10, "env_version": 2, "prompt_version": 2, "scenes_version": "x",
         "made_at": datetime(2026, 11, 30, tzinfo=UTC)}
        for family, n in races.items() for seed in range(n)])


@pytest.mark.parametrize("races", [[7] * 6, [10] * 6, [18, 23, 24, 25, 29, 31], [1, 2, 3, 5, 7, 49], [9], [5, 4]])
def test_perfect_races_have_a_perfect_mean(races):
    board = leaderboard(episodes(lambda rng: 1.0, dict(zip(FAMILIES, races, strict=False))))
    fitted = LEADERBOARD.conform(board)
    assert fitted[["mean", "regret", "parse_failures", *DIMENSIONS]].eq(1.0).all(axis=None)


def test_the_mean_is_that_of_the_families_and_the_same_for_any_order_of_the_races():
    played = episodes(lambda rng: float(rng.random()), dict(zip(FAMILIES, (3, 9, 2, 7, 5, 4), strict=True)))
    board = leaderboard(played).set_index("family")
    assert board.loc["all", "mean"] == pytest.approx(played.groupby("family")["score"].mean().mean(), abs=1e-12)
    for n in range(20):
        again = leaderboard(played.sample(frac=1, random_state=n)).set_index("family")
        columns = ["mean", "regret", *DIMENSIONS]
        pd.testing.assert_frame_equal(again.loc[board.index, columns], board[columns], check_exact=True)
