"""Which ranker predicts: the acceptance test of its weights, the rule that decides after each race, and the operator
who may overrule it."""
from f1_pipelines.promotion.acceptance import LIMITS, AcceptanceResult, Limits, acceptance_test
from f1_pipelines.promotion.champion import (
    CantPromote,
    PromotionDecision,
    UnknownCheckpoint,
    acceptance_of,
    ancestry,
    champion_of,
    current_champions,
    newest_candidate,
    promote,
    record,
    roll_back,
    store_checkpoints,
    usable,
)
from f1_pipelines.promotion.rule import RULE, Rule, decide

__all__ = ["LIMITS", "RULE", "CantPromote", "PromotionDecision", "AcceptanceResult", "Limits", "Rule",
           "UnknownCheckpoint", "ancestry",
           "champion_of", "decide", "acceptance_of", "acceptance_test", "newest_candidate", "promote", "record",
           "roll_back", "current_champions", "store_checkpoints", "usable"]
