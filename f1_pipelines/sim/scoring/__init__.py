"""How a race engineer's race is judged."""
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS, WEIGHTS, Score

__all__ = ["DIMENSIONS", "WEIGHTS", "Score"]
