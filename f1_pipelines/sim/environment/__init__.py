"""The race engineer's environment: commands, what they do, what is seen."""
from f1_pipelines.sim.environment.commands import VERBS, BadCommand, Command, parse, usage

__all__ = ["VERBS", "BadCommand", "Command", "EpisodeOver", "Observation", "RaceEnvironment", "Step", "parse", "usage"]


def __getattr__(name: str) -> object:
    """The environment itself is loaded when asked for: scoring imports the commands."""
    if name in ("RaceEnvironment", "EpisodeOver", "Step"):
        from f1_pipelines.sim.environment import environment
        return getattr(environment, name)
    if name == "Observation":
        from f1_pipelines.sim.environment.observation import Observation
        return Observation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
