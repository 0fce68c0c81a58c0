"""The race simulator: deterministic, compiled by numba, one engine for one race and for thousands.

    setup = RaceSetup(circuits=(circuit_prior("monza"),), seeds=[7], car_pace_s=[-0.4, 0.0, 0.4])
    race = prepare(setup)
    state = new_state(race)
    state = step(race, state, Calls(pit=np.array([[-1, HARD, -1]])))
    classify(race, run(race)).position
"""
from f1_pipelines.sim.engine.drive import NO_CALLS, Calls, drive_code
from f1_pipelines.sim.engine.parameters import CircuitParameters, EngineParameters
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.engine.race import Race, prepare
from f1_pipelines.sim.engine.results import Classification, check_race, classify, explain
from f1_pipelines.sim.engine.setup import BadSetup, RaceSetup
from f1_pipelines.sim.engine.state import RaceState, new_state
from f1_pipelines.sim.engine.step import RaceOver, run, step

__all__ = [
    "NO_CALLS", "BadSetup", "Calls", "CircuitParameters", "Classification", "EngineParameters", "Race", "RaceOver",
    "RaceSetup", "RaceState", "check_race", "circuit_prior", "classify", "drive_code", "explain", "new_state",
    "prepare", "run", "step",
]
