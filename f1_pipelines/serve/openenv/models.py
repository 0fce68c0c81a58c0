"""Action, observation and state of the environment, for WebSocket and HTTP alike."""
from __future__ import annotations

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field

from f1_pipelines.serve.live_race import RaceEnd
from f1_pipelines.sim.environment.observation import Observation as RaceObservation


class F1Action(Action):
    """A command for the coming lap, such as `PIT_NOW hard`. An invalid command is counted, and the car stays out."""

    command: str = Field(max_length=4000, examples=["STAY_OUT", "PIT_NOW hard"])


class F1Observation(Observation):
    """The observation before a lap, with `reward` and `done`."""

    text: str = Field("", description="The prompt text for a language model; empty after reset with text=false.")
    race: RaceObservation = Field(description="The same observation as typed fields.")
    error: str | None = Field(None, description="Why the last command was invalid.")
    end: RaceEnd | None = Field(None, description="Score, its dimensions and the facts behind them; set when done.")


class F1State(State):
    """The race and its progress. It reveals nothing of the future."""

    family: str | None = None
    seed: int | None = None
    split: str | None = None
    circuit: str | None = None
    weekend: str | None = None
    lap: int = Field(0, description="Number of laps driven")
    laps: int = 0
    done: bool = False
    score_so_far: float = Field(0.0, description="Sum of the rewards")
    env_version: int
