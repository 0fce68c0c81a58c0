"""The race simulator: numpy only, deterministic, one engine for one race and for thousands.

    setup = RaceSetup(circuits=(circuit_prior("monza"),), seeds=[7], car_pace_s=[-0.4, 0.0, 0.4])
    race = prepare(setup)
    state = new_state(race)
    state = step(race, state, Calls(pit=np.array([[-1, HARD, -1]])))
    classify(race, run(race)).position
"""
from f1_pipelines.sim.drive import NO_CALLS, Calls, drive_code
from f1_pipelines.sim.engine import RaceOver, run, step
from f1_pipelines.sim.parameters import CircuitParameters, EngineParameters
from f1_pipelines.sim.priors import circuit_prior
from f1_pipelines.sim.race import Race, prepare
from f1_pipelines.sim.results import Classification, check_race, classify, explain
from f1_pipelines.sim.setup import BadSetup, RaceSetup
from f1_pipelines.sim.state import RaceState, new_state

__all__ = [
    "NO_CALLS", "BadSetup", "Calls", "CircuitParameters", "Classification", "EngineParameters", "Race", "RaceOver",
    "RaceSetup", "RaceState", "check_race", "circuit_prior", "classify", "drive_code", "explain", "new_state",
    "prepare", "run", "step",
]
