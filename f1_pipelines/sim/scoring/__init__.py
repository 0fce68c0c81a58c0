"""The score of a race engineer's race."""
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS, WEIGHTS, Score

__all__ = ["DIMENSIONS", "WEIGHTS", "Score"]
