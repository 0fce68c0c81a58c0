"""Which ranker predictions use: the rule that decides after each race, and the person who may overrule it."""
from f1_pipelines.promotion.champion import (
    CantPromote,
    Decision,
    champion_of,
    promote,
    record,
    roll_back,
    standing,
    store_checkpoints,
)
from f1_pipelines.promotion.rule import RULE, Rule, decide

__all__ = ["CantPromote", "RULE", "Decision", "Rule", "champion_of", "decide", "promote", "record", "roll_back",
           "standing", "store_checkpoints"]
