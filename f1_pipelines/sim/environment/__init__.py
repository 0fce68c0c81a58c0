"""The race engineer's environment: commands, their effects, observations."""
from f1_pipelines.sim.environment.commands import VERBS, BadCommand, Command, parse, usage

__all__ = ["VERBS", "BadCommand", "Command", "EpisodeOver", "Observation", "RaceEnvironment", "Step", "parse", "usage"]


def __getattr__(name: str) -> object:
    """Load the environment on first use: `scoring` imports the commands, and the environment imports `scoring`."""
    if name in ("RaceEnvironment", "EpisodeOver", "Step"):
        from f1_pipelines.sim.environment import environment
        return getattr(environment, name)
    if name == "Observation":
        from f1_pipelines.sim.environment.observation import Observation
        return Observation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
