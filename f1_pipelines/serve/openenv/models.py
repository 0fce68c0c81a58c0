"""What agents send and receive, over WebSocket and HTTP alike. Only OpenEnv's types and the simulator's observation."""
from __future__ import annotations

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field

from f1_pipelines.serve.live_race import RaceEnd
from f1_pipelines.sim.environment.observation import Observation as Seen


class F1Action(Action):
    """One command of the pit wall, `PIT_NOW hard` for one. What does not parse is counted, and the car stays out."""

    command: str = Field(max_length=4000, examples=["STAY_OUT", "PIT_NOW hard"])


class F1Observation(Observation):
    """What the pit wall sees before a lap, with `reward` and `done`."""

    text: str = Field("", description="What a model reads; empty where reset asked for none.")
    race: Seen = Field(description="The same, typed.")
    error: str | None = Field(None, description="Why the last text was no command.")
    end: RaceEnd | None = Field(None, description="Score, its six parts and what they rest on, once it is over.")


class F1State(State):
    """Which race it is and how far it has come; nothing of its future."""

    family: str | None = None
    seed: int | None = None
    split: str | None = None
    circuit: str | None = None
    weekend: str | None = None
    lap: int = Field(0, description="Laps driven")
    laps: int = 0
    done: bool = False
    score_so_far: float = Field(0.0, description="Sum of the rewards")
    env_version: int
