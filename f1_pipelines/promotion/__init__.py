"""Which ranker predictions use: the exam of its weights, the rule that decides after each race, and the person who may
overrule the rule."""
from f1_pipelines.promotion.acceptance import LIMITS, Exam, Limits, examine
from f1_pipelines.promotion.champion import (
    CantPromote,
    Decision,
    UnknownCheckpoint,
    ancestry,
    champion_of,
    exam_of,
    newest_candidate,
    promote,
    record,
    roll_back,
    standing,
    store_checkpoints,
    usable,
)
from f1_pipelines.promotion.rule import RULE, Rule, decide

__all__ = ["LIMITS", "RULE", "CantPromote", "Decision", "Exam", "Limits", "Rule", "UnknownCheckpoint", "ancestry",
           "champion_of", "decide", "exam_of", "examine", "newest_candidate", "promote", "record", "roll_back",
           "standing", "store_checkpoints", "usable"]
