"""Jobs over one weekend: before its race, after it, and for the next one."""
import dagster as dg

from f1_pipelines.assets.race_data import UNATTENDED_JOBS

_BEFORE, _AFTER, _NEXT = UNATTENDED_JOBS

pre_race = dg.define_asset_job(
    _BEFORE, dg.AssetSelection.assets("race_calendar", "practice_results", "qualifying_results", "ranking_features",
                                      "race_predictions"),
    description="One weekend before its race: practice, qualifying, grid, features, prediction. About 20 s from f1db.")

# Practice and qualifying too: an outage may have skipped them, and some sources publish the grid only after the race.
post_race = dg.define_asset_job(
    _AFTER, dg.AssetSelection.assets("race_calendar", "practice_results", "qualifying_results", "race_results",
                                     "race_laps", "ranking_features", "ewc_ranker", "promoted_ranker",
                                     "race_predictions", "ranking_evaluation"),
    description="One weekend after its race: results, laps, features, ranker update and promotion, outcome of the "
                "prediction, evaluation. Under 30 s from f1db.")

next_prediction = dg.define_asset_job(
    _NEXT, dg.AssetSelection.assets("race_calendar", "ranking_features", "race_predictions"),
    description="Prediction of the next weekend, before its practice and qualifying. About 10 s from f1db.")
