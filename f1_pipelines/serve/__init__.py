"""The web server (OpenEnv environment, simulator, predictions, operations, pages) and the environment's client."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from f1_pipelines.serve.openenv.client import F1Env
    from f1_pipelines.serve.openenv.models import F1Action, F1Observation, F1State

__all__ = ["F1Action", "F1Env", "F1Observation", "F1State"]


def __getattr__(name: str) -> object:
    """Import OpenEnv on first use: it takes two seconds."""
    if name == "F1Env":
        from f1_pipelines.serve.openenv.client import F1Env
        return F1Env
    if name in __all__:
        from f1_pipelines.serve.openenv import models
        return getattr(models, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
