"""Promotion of the ranker that predictions use, after the blocking checks of the trained rankers."""
from typing import TYPE_CHECKING, Any

import dagster as dg

from f1_pipelines.assets.check_results import not_passed
from f1_pipelines.assets.checks import keys_are_unique, no_rows_check
from f1_pipelines.assets.continual_learning import ewc_ranker, learning_checks
from f1_pipelines.assets.features import RANKING_GROUP, training_rows
from f1_pipelines.assets.metadata import described, preview
from f1_pipelines.assets.ranking import pretrained_ranker, ranking_checks
from f1_pipelines.resources.checkpoints import Checkpoints
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.tracking import Tracking, linked
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables.lineage import PROMOTIONS
from f1_pipelines.tables.ranking import MODELS

if TYPE_CHECKING:
    from f1_pipelines.promotion import PromotionDecision

_NUMBERS = tuple(column.name for column in PROMOTIONS.columns if column.type in ("DOUBLE", "INTEGER"))


@dg.asset(**RANKING_GROUP, kinds={"python", "pytorch", "duckdb"}, deps=[pretrained_ranker, ewc_ranker],
          metadata=described(PROMOTIONS))
def promoted_ranker(context: dg.AssetExecutionContext, warehouse: Warehouse, checkpoints: Checkpoints, clock: Clock,
                    tracking: Tracking) -> dg.MaterializeResult[None]:
    """The champion, which predictions use, and why. One row per decision.

    The candidate is the newest link of our ranker, or the newest pretrained one. Tests its own weights
    (`promotion.acceptance`), then compares its chain's forecasts with the champion's (`promotion.rule`). The candidate
    waits if a blocking check of `pretrained_ranker` or `ewc_ranker` did not pass the last time.
    """
    from f1_pipelines.promotion import champion_of, current_champions, decide, newest_candidate, record
    from f1_pipelines.tracking.registry import follow

    rows = training_rows(warehouse)
    failed = not_passed(context.instance, [pretrained_ranker, ewc_ranker], [*ranking_checks, *learning_checks])
    with tracking.run(context, "promoted_ranker") as run:
        with warehouse.write("promoted_ranker") as connection:
            candidate = newest_candidate(connection, MODELS[0])
            if candidate is None:
                raise dg.Failure(f"no {MODELS[0]} is pretrained yet, so there is no candidate; materialize "
                                 "pretrained_ranker", allow_retries=False)
            decision = decide(connection, candidate, rows, checkpoints.folder, failed_checks=failed)
            if decision:
                record(connection, decision, clock.now())
            champion, aliases = champion_of(connection), current_champions(connection)
            decisions = connection.execute("SELECT decided_at, candidate, decision, decided_by, reason FROM "
                                           "ranking.promotions ORDER BY decided_at DESC, rowid DESC LIMIT 10").df()
        run.call(lambda to: follow(to, aliases, checkpoints.folder))
    return dg.MaterializeResult(metadata={
        "candidate": candidate, "champion": champion or "none", **_decision_metadata(decision), "mlflow": linked(run),
        "preview": preview(decisions, 10)})


def _decision_metadata(decision: "PromotionDecision | None") -> dict[str, Any]:
    """Metadata of the decision and its numbers."""
    if decision is None:
        return {"promotion": "nothing to decide: the champion is this checkpoint or learnt on from it"}
    numbers = {name: getattr(decision, name) for name in _NUMBERS}
    return {"promotion": f"{decision.decision}: {decision.reason}",
            **{name: value for name, value in numbers.items() if value is not None}}


promotion_checks = [
    keys_are_unique(promoted_ranker, PROMOTIONS),
    no_rows_check(
        promoted_ranker, "newest_candidate_was_promoted",
        "Predictions continue with the previous champion; `f1 promote` overrides the rule.",
        """SELECT candidate, weekend, reason FROM ranking.promotions
           WHERE decision = 'candidate' AND decided_at = (SELECT max(decided_at) FROM ranking.promotions
                                                          WHERE decided_by = 'rule')
             AND candidate NOT IN (SELECT checkpoint FROM ranking.checkpoints WHERE promoted)""", blocking=False),
    no_rows_check(
        promoted_ranker, "little_is_forgotten",
        "Candidates lost more than 0.02 Spearman on the last pretraining season: raise ewc_lambda or lower lr.",
        f"""SELECT u.model, u.weekend, u.old_season_after, first.old_season_before FROM ranking.updates u
           JOIN ranking.updates first ON first.parent = u.pretrained AND first.model = u.model AND first.current
           WHERE u.current AND u.model = '{MODELS[0]}'
             AND u.old_season_after < first.old_season_before - 0.02""", blocking=False),
]
