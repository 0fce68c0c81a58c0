"""What is run as one: before a race, after it, and the whole history."""
import dagster as dg

# A source that is unavailable (rate limit, 5xx, no network) is asked again; a refusal that waiting can't mend is not.
_RETRIES = dg.RetryPolicy(max_retries=4, delay=120, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)

pre_race = dg.define_asset_job(
    "pre_race", dg.AssetSelection.assets("race_calendar", "practice_results", "qualifying_results", "ranking_features",
                                         "race_predictions"),
    op_retry_policy=_RETRIES,
    description="One weekend before its race: practice, qualifying, grid, features, prediction. About 20 s from f1db.")

post_race = dg.define_asset_job(
    "post_race", dg.AssetSelection.assets("race_calendar", "race_results", "race_laps", "ranking_features",
                                          "race_predictions"),
    op_retry_policy=_RETRIES,
    description="One weekend after its race: results, laps, and how the prediction did. About 20 s from f1db.")
