"""Compile the simulator: `python -m f1_pipelines.sim.compile`, which `make setup` runs.

Without it the first race of each process that finds no machine code compiles what it needs. Machine code of earlier
sources is deleted.
"""
from __future__ import annotations

import shutil

import numpy as np

from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.engine.compiled import PREFIX, cache_folder, cache_parent
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.results import classify, explain
from f1_pipelines.sim.engine.state import new_state
from f1_pipelines.sim.environment.gym_vector import RaceEngineerVectorEnv
from f1_pipelines.sim.environment.vector import VectorEnvironment
from f1_pipelines.sim.policies.expert import Expert
from f1_pipelines.sim.policies.play import played
from f1_pipelines.sim.scenarios import make_scenario, setup_of


def drop_other_code() -> None:
    """Delete what was compiled from other sources."""
    for folder in cache_parent().glob(f"{PREFIX}*"):
        if folder != cache_folder():
            shutil.rmtree(folder, ignore_errors=True)


def compile_all() -> None:
    """Use every compiled function once."""
    noise.logistic(np.array([0.5]))
    noise.heavy_tailed(np.array([0.5]), 1.0, 1.0, -1.0, 1.0)
    scenario = make_scenario("weather_roulette", 3)
    race = prepare(setup_of([scenario]))
    state = new_state(race)
    explain(race, state)
    classify(race, state.after(elapsed_s=state.elapsed_s))
    VectorEnvironment([scenario])
    sprints = RaceEngineerVectorEnv(1, scenarios=1)
    sprints.reset(seed=1)
    sprints.step(np.zeros(1, dtype=np.int64))
    played(scenario, Expert(), "expert")


if __name__ == "__main__":
    drop_other_code()
    compile_all()
