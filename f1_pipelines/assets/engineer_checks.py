"""Checks of the race engineer: its turns, its training, its evaluation."""
import dagster as dg

from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.engineer import grpo_engineer, newest_engineer, sft_dataset, sft_engineer
from f1_pipelines.assets.strategy_evaluation import scripted_races, strategy_evaluation
from f1_pipelines.engineer.evaluation.acceptance import MAX_PARSE_FAILURES
from f1_pipelines.resources.engineers import Engineers
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import strategy as tables

LEAST_TURNS = 4_900


@dg.asset_check(asset=sft_engineer, blocking=True)
def prompts_are_token_identical(warehouse: Warehouse, engineers: Engineers) -> dg.AssetCheckResult:
    """SFT, GRPO, evaluation and serving use the same tokens: compares 50 turns in the published tokenizer."""
    from f1_pipelines.engineer.inference.checkpoints import load_engineer
    from f1_pipelines.engineer.training.sft import Example
    from f1_pipelines.engineer.training.tokenization_parity import parity_errors

    with warehouse.read() as connection:
        row = newest_engineer(connection, "sft", engineers.profile)
        turns = connection.sql("SELECT prompt, completion FROM strategy.sft_turns ORDER BY hash(turn) LIMIT 50").df()
    rendering = load_engineer(engineers.folder / row["path"]).rendering
    errors = parity_errors(rendering, [Example(turn.prompt, turn.completion) for turn in turns.itertuples()])
    return dg.AssetCheckResult(passed=bool(len(turns)) and not errors, metadata={
        "turns": len(turns), "disagreements": "; ".join(errors[:5]) or "none",
        "example": dg.MetadataValue.md(f"```\n{rendering.prompt(turns.prompt[0])}{turns.completion[0]}\n```")})


# The engineer of this run, else the newest one: another profile's may be newer by its clock.
_LATEST_GRPO = ("run = (SELECT checkpoint FROM strategy.engineers WHERE stage = 'grpo' ORDER BY "
                "dagster_run IS NOT DISTINCT FROM getvariable('dagster_run') DESC, made_at DESC LIMIT 1)")
engineer_checks = [
    prompts_are_token_identical,
    keys_are_unique(sft_dataset, tables.SFT_TURNS),
    no_rows_check(
        sft_dataset, "turns_are_for_learning", "A turn of a held-out seed in the training data would inflate every "
        "score; an empty prompt or command teaches nothing.",
        # The student's turns are from an earlier sft_engineer, which replaces them: they must not block it.
        "SELECT turn, split, prompt, completion FROM strategy.sft_turns WHERE collected_by = 'expert' AND "
        "(split NOT IN ('train', 'validation') OR prompt = '' OR completion = '')"),
    no_rows_check(
        sft_dataset, "turns_are_enough_and_balanced", f"Fewer than {LEAST_TURNS} expert turns; or families, stops, "
        "questions or messages are missing or rare; or too many STAY_OUT.",
        f"""WITH t AS (SELECT *, split_part(completion, ' ', 1) AS verb FROM strategy.sft_turns WHERE split = 'train'
                       AND collected_by = 'expert'),
            shares AS (SELECT 'turns' AS what, count(*) / {LEAST_TURNS}.0 AS share, 1.0 AS least FROM t
              UNION ALL SELECT 'stops', avg((verb = 'PIT_NOW')::INT), 0.03 FROM t
              UNION ALL SELECT 'questions', avg((verb LIKE 'INSPECT%' OR verb LIKE 'REQUEST%')::INT), 0.05 FROM t
              UNION ALL SELECT 'radio', avg((verb = 'RADIO_DRIVER')::INT), 0.03 FROM t
              UNION ALL SELECT 'calls', avg((verb <> 'STAY_OUT')::INT), 0.4 FROM t
              UNION ALL SELECT 'families', count(DISTINCT family) / 5.0, 1.0 FROM t)
            SELECT * FROM shares WHERE share < least""", blocking=False),
    keys_are_unique(sft_engineer, tables.ENGINEERS, tables.TRAINING_CURVE),
    no_rows_check(
        grpo_engineer, "practice_began_at_the_imitator", "KL to the SFT policy must be 0 at step 0; otherwise GRPO "
        "started from another policy.",
        "SELECT count(*) AS times_measured, max(value) AS kl FROM strategy.training_curve WHERE metric = 'kl_to_sft' "
        f"AND step = 0 AND {_LATEST_GRPO} HAVING count(*) <> 1 OR coalesce(max(value), 1) > 1e-6"),
    no_rows_check(
        grpo_engineer, "numbers_are_finite", "A training with a non-finite loss, reward or gradient is broken.",
        f"SELECT * FROM strategy.training_curve WHERE (value IS NULL OR NOT isfinite(value)) AND {_LATEST_GRPO}"),
    no_rows_check(
        grpo_engineer, "calls_stay_calls", "More than 5 % of the sampled commands don't parse or are cut off.",
        f"SELECT metric, avg(value) AS share FROM strategy.training_curve WHERE metric IN ('parse_failures', "
        f"'clipped') AND {_LATEST_GRPO} GROUP BY metric HAVING avg(value) > 0.05"),
    no_rows_check(
        grpo_engineer, "there_is_something_to_learn", "In over 90 % of states all sampled commands have equal reward.",
        f"SELECT avg(value) AS frac_reward_zero_std FROM strategy.training_curve "
        f"WHERE metric = 'frac_reward_zero_std' AND {_LATEST_GRPO} HAVING avg(value) > 0.9", blocking=False),
    no_rows_check(
        grpo_engineer, "the_policy_still_varies", "Entropy below 0.005 or KL above 1 nat: the policy collapsed or "
        "diverged; lower the learning rate.",
        f"""SELECT metric, arg_max(value, step) AS last FROM strategy.training_curve
            WHERE metric IN ('entropy', 'kl_to_sft') AND {_LATEST_GRPO} GROUP BY metric
            HAVING (metric = 'entropy' AND last < 0.005) OR (metric = 'kl_to_sft' AND last > 1.0)""", blocking=False),
    keys_are_unique(scripted_races, tables.EPISODES, tables.DECISIONS),
    keys_are_unique(strategy_evaluation, tables.LEADERBOARD, tables.POSTMORTEMS),
    no_rows_check(
        strategy_evaluation, "no_script_called_for_a_model", "With a fallback, a script's score counts as the model's.",
        # Only races of the current leaderboard: episodes of earlier scenes versions may be stored too.
        "SELECT * FROM strategy.episodes SEMI JOIN strategy.leaderboard USING (policy, variant, env_version, "
        "scenes_version) WHERE fallbacks > 0"),
    no_rows_check(
        strategy_evaluation, "commands_parse",
        f"More than {MAX_PARSE_FAILURES:.1%} of a trained engineer's outputs are not commands.",
        f"SELECT policy, variant, parse_failures FROM strategy.leaderboard WHERE family = 'all' AND variant = 'plain' "
        f"AND policy IN ('sft', 'grpo') AND parse_failures > {MAX_PARSE_FAILURES}", blocking=False),
    no_rows_check(
        strategy_evaluation, "scores_vary_with_the_seed", "The same score in every race: all races are the same, or "
        "the score is gamed.", "SELECT policy, variant, family, mean FROM strategy.leaderboard WHERE constant_score",
        blocking=False),
    no_rows_check(
        strategy_evaluation, "nobody_beats_the_oracle", "A race scored better than the oracle's: the reference is "
        "wrong.", "SELECT policy, family, seed, regret FROM strategy.episodes WHERE regret < -1e-6", blocking=False),
]
