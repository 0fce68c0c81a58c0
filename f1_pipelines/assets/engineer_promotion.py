"""Which race engineers are served: decided after they were evaluated and all blocking checks passed."""
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
    """Who is served as the engineer of its stage, and why. One row per checkpoint.

    Judged are the newest SFT engineer, its untrained start and its newest GRPO engineer, by the races that each has
    driven with its own weights (`engineer.acceptance`). One that is refused changes nothing for those that were
    promoted before; if it was promoted itself and its own weights fail, it is served no more.
    """
    from f1_pipelines.engineer.evaluation.acceptance import Verdict, acceptance_verdict

    of_all = not_passed(context.instance, [sft_engineer, strategy_evaluation], engineer_checks)
    of_grpo = not_passed(context.instance, [grpo_engineer], engineer_checks)
    shown = []
    with warehouse.write("promoted_engineers") as connection:
        candidates = lineage(connection, engineers.profile)
        episodes = connection.execute("SELECT * FROM strategy.episodes WHERE variant = 'plain' AND checkpoint IN "
                                      "(SELECT unnest(?::VARCHAR[]))", [candidates["checkpoint"].tolist()]).df()
        for engineer in candidates.to_dict("records"):
            checkpoint, stage = engineer["checkpoint"], engineer["stage"]
            failed = of_all + (of_grpo if stage == "grpo" else [])
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
            shown.append({"stage": stage, "checkpoint": checkpoint,
                          "decision": "promoted" if verdict.accepted else "refused", "reason": verdict.reason})
    return dg.MaterializeResult(metadata={
        "promoted": sum(row["decision"] == "promoted" for row in shown), "preview": preview(pd.DataFrame(shown)),
        **{row["stage"]: f"{row['decision']}: {row['reason']}" for row in shown}})


engineer_promotion_checks = [
    no_rows_check(
        promoted_engineers, "newest_engineers_were_promoted",
        "The newest engineer of a stage is not served: whoever was promoted before is, or nobody.",
        """SELECT stage, profile, checkpoint, coalesce(promotion, 'not decided on yet') AS reason
           FROM (FROM strategy.engineers QUALIFY made_at = max(made_at) OVER (PARTITION BY stage, profile))
           WHERE NOT promoted""", blocking=False),
]
