"""Which ranker predictions use: the exam of its weights, the rule that decides after each race, and the person who may
overrule the rule."""
from f1_pipelines.promotion.acceptance import LIMITS, Exam, Limits, acceptance_exam
from f1_pipelines.promotion.champion import (
    CantPromote,
    PromotionDecision,
    UnknownCheckpoint,
    ancestry,
    champion_of,
    current_champions,
    exam_of,
    newest_candidate,
    promote,
    record,
    roll_back,
    store_checkpoints,
    usable,
)
from f1_pipelines.promotion.rule import RULE, Rule, decide

__all__ = ["LIMITS", "RULE", "CantPromote", "PromotionDecision", "Exam", "Limits", "Rule", "UnknownCheckpoint",
           "ancestry",
           "champion_of", "decide", "exam_of", "acceptance_exam", "newest_candidate", "promote", "record", "roll_back",
           "current_champions", "store_checkpoints", "usable"]
