"""Means of a leaderboard stay within the range of the scores, for any number of races."""
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
    rows = LEADERBOARD.conform(board)
    assert rows[["mean", "regret", "parse_failures", *DIMENSIONS]].eq(1.0).all(axis=None)


def test_the_mean_is_over_families_and_independent_of_the_order_of_races():
    races = episodes(lambda rng: float(rng.random()), dict(zip(FAMILIES, (3, 9, 2, 7, 5, 4), strict=True)))
    board = leaderboard(races).set_index("family")
    assert board.loc["all", "mean"] == pytest.approx(races.groupby("family")["score"].mean().mean(), abs=1e-12)
    for n in range(20):
        shuffled = leaderboard(races.sample(frac=1, random_state=n)).set_index("family")
        columns = ["mean", "regret", *DIMENSIONS]
        pd.testing.assert_frame_equal(shuffled.loc[board.index, columns], board[columns], check_exact=True)
