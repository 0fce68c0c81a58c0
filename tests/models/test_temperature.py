"""A resumed search has the same result as an uninterrupted one, and no search uses later seasons."""
from dataclasses import replace

import pandas as pd
import pytest

from f1_pipelines.models import temperature
from f1_pipelines.models.config import F1NET
from f1_pipelines.models.temperature import search_temperature

TINY = replace(F1NET, epochs=1, races_per_step=None, seasons=(2022, 2023, 2024))


@pytest.fixture
def search(seasons, tmp_path):
    def run(name: str, trials: int, frame=seasons, **settings):
        return search_temperature(frame, tmp_path / name, max_trials=trials, config=TINY, **settings)

    return run


def test_a_resumed_search_equals_an_uninterrupted_one(search, tmp_path, monkeypatch):
    uninterrupted = search("uninterrupted.jsonl", 9)
    real_train, calls = temperature.train, iter(range(7))

    def train_until_killed(*args):
        if next(calls) == 6:
            raise KeyboardInterrupt
        return real_train(*args)

    monkeypatch.setattr(temperature, "train", train_until_killed)
    with pytest.raises(KeyboardInterrupt):
        search("resumed.jsonl", 9)
    monkeypatch.undo()
    file = tmp_path / "resumed.jsonl"
    file.write_text(file.read_text() + '{"trial": 7, "temp')  # killed while writing a line
    reported = []
    resumed = search("resumed.jsonl", 9, progress=lambda *trial: reported.append(trial))
    assert [trial[0] for trial in reported] == [7, 8, 9]
    pd.testing.assert_frame_equal(resumed.trials, uninterrupted.trials)
    assert file.read_bytes() == (tmp_path / "uninterrupted.jsonl").read_bytes()
    assert (resumed.temperature, resumed.spearman) == (uninterrupted.temperature, uninterrupted.spearman)


def test_the_best_trial_wins_and_all_are_in_range(search):
    result = search("trials.jsonl", 8)
    assert result.trials["temperature"].between(0.5, 10).all() and result.trials["temperature"].nunique() == 8
    best = result.trials.sort_values("spearman", ascending=False, kind="stable").iloc[0]
    assert (result.temperature, result.spearman) == (best["temperature"], best["spearman"])
    assert list(result.trials["trial"]) == list(range(1, 9))
    again = search("trials.jsonl", 8)
    pd.testing.assert_frame_equal(again.trials, result.trials)
    assert search("trials.jsonl", 3).trials.equals(result.trials.head(3))


def test_later_seasons_are_not_used(search, seasons, planted):
    later = pd.concat([seasons, planted({2025: 3, 2026: 3}, seed=8)]).sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(search("a.jsonl", 2, later).trials, search("b.jsonl", 2).trials)


def test_trials_of_other_data_or_another_seed_are_renamed(search, seasons, tmp_path):
    first = search("trials.jsonl", 2)
    changed = seasons.copy()
    changed.loc[0, "grid_position"] = 17.0
    search("trials.jsonl", 2, changed)
    assert (tmp_path / "trials.jsonl.other").exists()
    other = search("trials.jsonl", 2, seed=1)
    assert not other.trials["temperature"].equals(first.trials["temperature"])


def test_one_season_is_too_few(search, seasons):
    with pytest.raises(ValueError, match="only 2022 has races"):
        search("trials.jsonl", 1, seasons[seasons["season"] == 2022])
