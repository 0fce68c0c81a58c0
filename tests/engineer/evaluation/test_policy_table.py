"""The table of scripted policies uses the leaderboard's means and intervals."""
import pandas as pd

from f1_pipelines.engineer.evaluation.leaderboard import family_interval, family_mean
from f1_pipelines.engineer.evaluation.policy_table import as_text, policy_table
from f1_pipelines.sim.policies.episodes import all_episodes
from f1_pipelines.sim.scenarios import FAMILIES


def test_means_and_intervals_equal_the_leaderboards():
    rows = all_episodes(3, ["stay_out", "random"])
    table, episodes = policy_table(rows).set_index(["policy", "family"]), pd.DataFrame(rows)
    own = episodes[episodes["policy"] == "random"]
    assert table.loc[("random", "all"), "score"] == family_mean(own["score"], own)
    assert tuple(table.loc[("random", "all"), ["low", "high"]]) == family_interval(own["score"], own)
    assert (table["low"] <= table["score"]).all() and (table["score"] <= table["high"]).all()
    assert len(table) == 2 * (len(FAMILIES) + 1)
    assert as_text(table.reset_index()).count("\n") == 2 * 2 + 3
