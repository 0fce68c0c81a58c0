"""Races from (family, seed), or from (weekend, car, seed): the grid, what will happen, and the opponents' plans."""
from f1_pipelines.sim.scenarios.batch import plans_of, prepared, setup_of, with_other_luck, without_luck
from f1_pipelines.sim.scenarios.families import (
    CHARACTERS,
    FAMILIES,
    GRAND_PRIX,
    SPLITS,
    UNSEEN_FAMILY,
    UnknownFamily,
    family_of,
)
from f1_pipelines.sim.scenarios.grand_prix import Entry, GrandPrix, make_grand_prix
from f1_pipelines.sim.scenarios.plans import OpponentPlans
from f1_pipelines.sim.scenarios.scenario import (
    EGO,
    ENV_VERSION,
    MAX_SEED,
    BadScenario,
    GridSpec,
    Scenario,
    make_scenario,
    seeds_of,
    split_of,
)

__all__ = [
    "CHARACTERS", "EGO", "ENV_VERSION", "FAMILIES", "GRAND_PRIX", "MAX_SEED", "SPLITS", "UNSEEN_FAMILY", "BadScenario",
    "Entry", "GridSpec", "GrandPrix", "OpponentPlans", "Scenario", "UnknownFamily", "family_of", "make_grand_prix",
    "make_scenario", "plans_of", "prepared", "seeds_of", "setup_of", "split_of", "with_other_luck", "without_luck",
]
