"""The race engineer's environment as OpenEnv serves it: one `F1Environment` a session."""
from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import ValidationError

from f1_pipelines.serve.errors import SERVER_FAULT
from f1_pipelines.serve.live_race import race_end
from f1_pipelines.serve.openenv.models import F1Action, F1Observation, F1State
from f1_pipelines.serve.race_factory import CLIENT_ERRORS, ResetRequest, published_weekend
from f1_pipelines.sim.environment.environment import EpisodeOver, RaceEnvironment, Step
from f1_pipelines.sim.environment.observation import Observation as Seen
from f1_pipelines.sim.scenarios import ENV_VERSION, GRAND_PRIX, MAX_SEED, UNSEEN_FAMILY, BadScenario, seeds_of

EpisodeReply = TypeVar("EpisodeReply")


class ServerFault(RuntimeError):
    """Something went wrong here. The log knows what."""


class F1Environment(Environment[F1Action, F1Observation, F1State]):
    """One race after the other, seen from one pit wall.

    Commands, rewards and score are those of `RaceEnvironment`. A lap takes less than handing it to a thread would, so
    it is driven where it is asked for; to score a race takes longer, and goes to a thread.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._race = RaceEnvironment(weekends=published_weekend)
        self._closed, self._with_text = False, True
        self._seen: Seen | None = None
        self._state = F1State(env_version=ENV_VERSION)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **fields: Any) -> F1Observation:
        """Begin a race: `fields` are those of `ResetRequest`. Without a seed one of the split is drawn,
        of the training split if none is named; `state` tells which.

        Raises:
            EpisodeOver: The session is closed.
            BadScenario, UnknownFamily, NoGrandPrix, NoWarehouse: What came and what is valid.
        """
        return _hide_faults(lambda: self._begin(_parse_request({**fields, "seed": seed}), episode_id))

    def step(self, action: F1Action, timeout_s: float | None = None, **_: Any) -> F1Observation:
        """Call the coming lap.

        Raises:
            EpisodeOver: The race is over, none has begun, or the session is closed.
        """
        return _hide_faults(lambda: self._step(action))

    async def reset_async(self, seed: int | None = None, episode_id: str | None = None,
                          **fields: Any) -> F1Observation:
        """`reset`, for servers."""
        if fields.get("weekend") is None:
            return self.reset(seed, episode_id, **fields)
        return await asyncio.to_thread(self.reset, seed, episode_id, **fields)

    async def step_async(self, action: F1Action, timeout_s: float | None = None, **_: Any) -> F1Observation:
        """`step`, for servers."""
        ends = self._seen is not None and (self._seen.lap >= self._seen.laps or
                                           action.command.strip().upper() == "DONE" or self._seen.weekend != "")
        return await asyncio.to_thread(self.step, action) if ends else self.step(action)

    @property
    def state(self) -> F1State:
        """Which race, and how far."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What this environment is."""
        return EnvironmentMetadata(
            name="f1_race_engineer", version=str(ENV_VERSION), author="f1_pipelines",
            description="Call the strategy of a Formula 1 race lap by lap: 21 commands, six families of scenarios and "
                        "full Grands Prix, a score in [0, 1] of six dimensions.")

    def close(self) -> None:
        """End the session; any later call is an error."""
        self._closed = True
        self._race, self._seen = RaceEnvironment(), None

    def _begin(self, request: ResetRequest, episode_id: str | None) -> F1Observation:
        self._check_open()
        seed = _draw_seed(request) if request.seed is None else request.seed
        self._seen = self._race.reset(seed, request.family, request.split, request.circuit, request.weekend,
                                      request.car)
        self._with_text, scenario = request.text, self._race.scenario
        name = str(episode_id or uuid4()).encode("ascii", "replace").decode()
        self._state = F1State(
            episode_id=name[:255], family=scenario.family, seed=scenario.seed, split=scenario.split,
            circuit=scenario.circuit.circuit, weekend=scenario.weekend or None, laps=scenario.laps,
            env_version=ENV_VERSION)
        return F1Observation(text=self._seen.text if request.text else "", race=self._seen)

    def _step(self, action: F1Action) -> F1Observation:
        self._check_open()
        step = self._race.step(action.command)
        self._seen = step.observation
        self._state = self._state.model_copy(update={
            "step_count": self._state.step_count + 1, "lap": len(self._race.history) - 1, "done": step.done,
            "score_so_far": self._state.score_so_far + step.reward})
        return _observation(step, self._with_text)

    def _check_open(self) -> None:
        if self._closed:
            raise EpisodeOver("this session is closed: connect again.")


def _draw_seed(request: ResetRequest) -> int:
    """Any seed of the split that was named; of the training split without one."""
    start = secrets.randbelow(MAX_SEED - 1000)
    if request.family == GRAND_PRIX:
        return start
    split = request.split or ("unseen_family" if request.family == UNSEEN_FAMILY else "train")
    return seeds_of(request.family, split, 1, start)[0]


def _parse_request(fields: dict[str, Any]) -> ResetRequest:
    try:
        return ResetRequest.model_validate(fields)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ascii(first["loc"][0])[1:-1][:40]
        raise BadScenario(f"reset: {where}: {first['msg']}. It takes {', '.join(ResetRequest.model_fields)}.") from None


def _observation(step: Step, with_text: bool) -> F1Observation:
    # Made without validation, which costs more than the lap: these numbers are our own.
    return F1Observation.model_construct(
        text=step.observation.text if with_text else "", race=step.observation, error=step.info.get("error"),
        reward=step.reward, done=step.done, end=race_end(step) if step.done else None, metadata={})


def _hide_faults(work: Callable[[], EpisodeReply]) -> EpisodeReply:
    """Do it; a fault of ours reaches no client with its words, which may name paths."""
    try:
        return work()
    except CLIENT_ERRORS:
        raise
    except Exception:
        logging.getLogger(__name__).exception("a race failed")
        raise ServerFault(SERVER_FAULT) from None
