"""Promotion of rankers: the acceptance test of their weights, the rule that decides after each race, and decisions by
an operator."""
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

__all__ = ["LIMITS", "RULE", "AcceptanceResult", "CantPromote", "Limits", "PromotionDecision", "Rule",
           "UnknownCheckpoint", "acceptance_of", "acceptance_test", "ancestry", "champion_of", "current_champions",
           "decide", "newest_candidate", "promote", "record", "roll_back", "store_checkpoints", "usable"]
