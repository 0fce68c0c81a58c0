"""What is run as one weekend by weekend: before a race, and after it."""
import dagster as dg

from f1_pipelines.assets.race_data import UNATTENDED_JOBS

_BEFORE, _AFTER = UNATTENDED_JOBS

pre_race = dg.define_asset_job(
    _BEFORE, dg.AssetSelection.assets("race_calendar", "practice_results", "qualifying_results", "ranking_features",
                                      "race_predictions"),
    description="One weekend before its race: practice, qualifying, grid, features, prediction. About 20 s from f1db.")

post_race = dg.define_asset_job(
    _AFTER, dg.AssetSelection.assets("race_calendar", "race_results", "race_laps", "ranking_features",
                                     "race_predictions"),
    description="One weekend after its race: results, laps, and how the prediction did. About 20 s from f1db.")
