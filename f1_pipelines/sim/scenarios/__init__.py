"""Sprints from (family, seed): what is on the grid, what will happen, what the opponents mean to do."""
from f1_pipelines.sim.scenarios.families import CHARACTERS, FAMILIES, SPLITS, UNSEEN_FAMILY, UnknownFamily, family_of
from f1_pipelines.sim.scenarios.grid import Plans, plans_of, setup_of, with_other_luck, without_luck
from f1_pipelines.sim.scenarios.scenario import (
    ENV_VERSION,
    MAX_SEED,
    BadScenario,
    Scenario,
    make_scenario,
    seeds_of,
    split_of,
)

__all__ = [
    "CHARACTERS", "ENV_VERSION", "FAMILIES", "MAX_SEED", "SPLITS", "UNSEEN_FAMILY", "BadScenario", "Plans", "Scenario",
    "UnknownFamily", "family_of", "make_scenario", "plans_of", "seeds_of", "setup_of", "split_of", "with_other_luck",
    "without_luck",
]
