"""The table of scripted policies: racing well wins, and nothing else. All seeds: `f1 policies`."""
import pandas as pd
import pytest

from f1_pipelines.engineer.evaluation.leaderboard import family_interval
from f1_pipelines.engineer.evaluation.policy_table import as_text, policy_episodes, policy_table
from f1_pipelines.sim.policies.play import DEGENERATE, POLICIES
from f1_pipelines.sim.scenarios import FAMILIES

CHEAP = [name for name in POLICIES if name not in ("expert", "oracle")]


@pytest.fixture(scope="module")
def episodes() -> pd.DataFrame:
    """Policies on a few unseen seeds of every family, expensive policies on fewer."""
    return pd.concat([policy_episodes(5, ["expert"]), policy_episodes(1, ["oracle"]), policy_episodes(12, CHEAP)])


def test_no_degenerate_policy_comes_near_the_expert(episodes):
    """The targets of the design, on fewer seeds than `f1 policies`."""
    mean = policy_table(episodes).set_index(["policy", "family"])["score"]
    assert all(mean[name, "all"] < 0.45 for name in DEGENERATE)
    assert all(mean[name, "all"] < mean["expert", "all"] - 0.25 for name in ("blind_list", "fixed_stop"))
    assert mean["expert", "all"] >= 0.90
    assert all(mean["expert", family] >= 0.85 for family in FAMILIES)
    assert mean["oracle", "all"] > 0.97


def test_the_table_has_the_leaderboards_interval(episodes):
    table = policy_table(episodes).set_index(["policy", "family"])
    own = episodes[episodes["policy"] == "expert"]
    assert tuple(table.loc[("expert", "all"), ["low", "high"]]) == family_interval(own["score"], own["family"])
    assert (table["low"] <= table["score"]).all() and (table["score"] <= table["high"]).all()
    assert as_text(table.reset_index()).count("\n") == 2 * len(POLICIES) + 3


def test_workers_change_nothing_and_progress_is_reported():
    done = []
    one = policy_episodes(1, ["stay_out"], on_race=lambda k, n: done.append((k, n)))
    pd.testing.assert_frame_equal(one, policy_episodes(1, ["stay_out"], workers=2))
    assert done == [(k, len(FAMILIES)) for k in range(1, len(FAMILIES) + 1)]
