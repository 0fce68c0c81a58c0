"""Promotion of race engineers, after their evaluation and blocking checks."""
import dagster as dg
import pandas as pd

from f1_pipelines.assets.check_results import not_passed
from f1_pipelines.assets.checks import no_rows_check
from f1_pipelines.assets.engineer import ENGINEER_GROUP, grpo_engineer, lineage, sft_engineer
from f1_pipelines.assets.engineer_checks import engineer_checks
from f1_pipelines.assets.metadata import described, preview
from f1_pipelines.assets.strategy_evaluation import strategy_evaluation
from f1_pipelines.resources.engineers import Engineers
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import strategy as tables


@dg.asset(**ENGINEER_GROUP, kinds={"python", "duckdb"}, deps=[sft_engineer, grpo_engineer, strategy_evaluation],
          metadata=described(tables.ENGINEERS))
def promoted_engineers(context: dg.AssetExecutionContext, warehouse: Warehouse,
                       engineers: Engineers) -> dg.MaterializeResult[None]:
    """The served engineer of each stage, and why. One row per checkpoint.

    Tests the newest SFT engineer, its untrained start and its newest GRPO engineer on the races that each drove with
    its own weights (`engineer.evaluation.acceptance`). A refusal leaves the engineers promoted before unchanged. A
    promoted engineer whose own weights fail is no longer served.
    """
    from f1_pipelines.engineer.evaluation.acceptance import Verdict, acceptance_verdict

    failed_checks = not_passed(context.instance, [sft_engineer, strategy_evaluation], engineer_checks)
    failed_grpo_checks = not_passed(context.instance, [grpo_engineer], engineer_checks)
    decisions = []
    with warehouse.write("promoted_engineers") as connection:
        candidates = lineage(connection, engineers.profile)
        episodes = connection.execute("SELECT * FROM strategy.episodes WHERE variant = 'plain' AND checkpoint IN "
                                      "(SELECT unnest(?::VARCHAR[]))", [candidates["checkpoint"].tolist()]).df()
        for engineer in candidates.to_dict("records"):
            checkpoint, stage = engineer["checkpoint"], engineer["stage"]
            failed = failed_checks + (failed_grpo_checks if stage == "grpo" else [])
            curve = connection.execute("SELECT * FROM strategy.training_curve WHERE run = ? AND stage = ?",
                                       [checkpoint, stage]).df()
            verdict = Verdict(False, f"blocking checks did not pass: {'; '.join(failed)}", evaluated=False) if failed \
                else acceptance_verdict(engineer, episodes, curve, engineers.folder)
            if verdict.accepted:
                connection.execute("UPDATE strategy.engineers SET promoted = (checkpoint = ?) WHERE stage = ? AND "
                                   "profile = ?", [checkpoint, stage, engineers.profile])
            elif verdict.evaluated:
                connection.execute("UPDATE strategy.engineers SET promoted = false WHERE checkpoint = ?", [checkpoint])
            connection.execute("UPDATE strategy.engineers SET promotion = ? WHERE checkpoint = ?",
                               [verdict.reason, checkpoint])
            if not verdict.accepted:
                context.log.warning("%s %s is not promoted: %s", stage, checkpoint, verdict.reason)
            decisions.append({"stage": stage, "checkpoint": checkpoint,
                          "decision": "promoted" if verdict.accepted else "refused", "reason": verdict.reason})
    return dg.MaterializeResult(metadata={
        "promoted": sum(row["decision"] == "promoted" for row in decisions),
        "preview": preview(pd.DataFrame(decisions)),
        **{row["stage"]: f"{row['decision']}: {row['reason']}" for row in decisions}})


engineer_promotion_checks = [
    no_rows_check(
        promoted_engineers, "newest_engineers_were_promoted",
        "The newest engineer of a stage is not served; the one promoted before is, if any.",
        """SELECT stage, profile, checkpoint, coalesce(promotion, 'not decided on yet') AS reason
           FROM (FROM strategy.engineers QUALIFY made_at = max(made_at) OVER (PARTITION BY stage, profile))
           WHERE NOT promoted""", blocking=False),
]
