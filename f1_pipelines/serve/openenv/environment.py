"""The race engineer's environment for OpenEnv: one `F1Environment` per session."""
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
from f1_pipelines.sim.environment.commands import VERBS
from f1_pipelines.sim.environment.environment import EpisodeOver, RaceEnvironment, Step
from f1_pipelines.sim.environment.observation import Observation as RaceObservation
from f1_pipelines.sim.scenarios import (
    ENV_VERSION,
    FAMILIES,
    GRAND_PRIX,
    MAX_SEED,
    UNSEEN_FAMILY,
    BadScenario,
    seeds_of,
)
from f1_pipelines.sim.scoring.dimensions import WEIGHTS

T = TypeVar("T")


class ServerFault(RuntimeError):
    """An internal error. The log has the details."""


class F1Environment(Environment[F1Action, F1Observation, F1State]):
    """A sequence of races, one per `reset`, with the commands, rewards and score of `RaceEnvironment`.

    The async methods drive a lap on the event loop, because that is faster than handing it to a thread. The last lap
    runs in a thread, because scoring takes longer.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._race = RaceEnvironment(weekends=published_weekend)
        self._closed, self._with_text = False, True
        self._observation: RaceObservation | None = None
        self._state = F1State(env_version=ENV_VERSION)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **fields: Any) -> F1Observation:
        """Start a race.

        Args:
            seed: Seed of the race; None for a random one from the split, which `state` then contains.
            episode_id: Id of the episode; None for a random one.
            **fields: The other fields of `ResetRequest`.

        Raises:
            EpisodeOver: The session is closed.
            BadScenario, UnknownFamily, NoGrandPrix, NoWarehouse: The request is invalid or has no data.
        """
        return _hide_faults(lambda: self._begin(_parse_request({**fields, "seed": seed}), episode_id))

    def step(self, action: F1Action, timeout_s: float | None = None, **_: Any) -> F1Observation:
        """Drive the next lap with this command.

        Raises:
            EpisodeOver: The race is over, no race has started, or the session is closed.
        """
        return _hide_faults(lambda: self._step(action))

    async def reset_async(self, seed: int | None = None, episode_id: str | None = None,
                          **fields: Any) -> F1Observation:
        """Like `reset`. A Grand Prix, which reads the warehouse, starts in a thread."""
        if fields.get("weekend") is None:
            return self.reset(seed, episode_id, **fields)
        return await asyncio.to_thread(self.reset, seed, episode_id, **fields)

    async def step_async(self, action: F1Action, timeout_s: float | None = None, **_: Any) -> F1Observation:
        """Like `step`. Laps that take long (the last one, DONE, any lap of a Grand Prix) run in a thread."""
        last = self._observation
        slow = last is not None and (last.lap >= last.laps or action.command.strip().upper() == "DONE"
                                     or last.weekend != "")
        return await asyncio.to_thread(self.step, action) if slow else self.step(action)

    @property
    def state(self) -> F1State:
        """The race and its progress."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Describe the environment."""
        return EnvironmentMetadata(
            name="f1_race_engineer", version=str(ENV_VERSION), author="f1_pipelines",
            description=f"Call the strategy of a Formula 1 race lap by lap: {len(VERBS)} commands, {len(FAMILIES)} "
                        f"scenario families and full Grands Prix, a score in [0, 1] from {len(WEIGHTS)} dimensions.")

    def close(self) -> None:
        """End the session. Later calls raise EpisodeOver."""
        self._closed = True
        self._race, self._observation = RaceEnvironment(), None

    def _begin(self, request: ResetRequest, episode_id: str | None) -> F1Observation:
        self._check_open()
        seed = _draw_seed(request) if request.seed is None else request.seed
        self._observation = self._race.reset(seed, request.family, request.split, request.circuit, request.weekend,
                                             request.car)
        self._with_text, scenario = request.text, self._race.scenario
        name = str(episode_id or uuid4()).encode("ascii", "replace").decode()
        self._state = F1State(
            episode_id=name[:255], family=scenario.family, seed=scenario.seed, split=scenario.split,
            circuit=scenario.circuit.circuit, weekend=scenario.weekend or None, laps=scenario.laps,
            env_version=ENV_VERSION)
        return F1Observation(text=self._observation.text if request.text else "", race=self._observation)

    def _step(self, action: F1Action) -> F1Observation:
        self._check_open()
        step = self._race.step(action.command)
        self._observation = step.observation
        self._state = self._state.model_copy(update={
            "step_count": self._state.step_count + 1, "lap": len(self._race.history) - 1, "done": step.done,
            "score_so_far": self._state.score_so_far + step.reward})
        return _observation(step, self._with_text)

    def _check_open(self) -> None:
        if self._closed:
            raise EpisodeOver("this session is closed: open a new one.")


def _draw_seed(request: ResetRequest) -> int:
    """Draw a random seed from the requested split; default: train, or unseen_family for that family."""
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
        name = ascii(first["loc"][0])[1:-1][:40]
        raise BadScenario(f"reset: {name}: {first['msg']}. Valid: {', '.join(ResetRequest.model_fields)}.") from None


def _observation(step: Step, with_text: bool) -> F1Observation:
    # Skips validation, which takes longer than the lap; the simulator's values are valid.
    return F1Observation.model_construct(
        text=step.observation.text if with_text else "", race=step.observation, error=step.info.get("error"),
        reward=step.reward, done=step.done, end=race_end(step) if step.done else None, metadata={})


def _hide_faults(work: Callable[[], T]) -> T:
    """Call `work`. Internal errors are logged; clients don't see their messages, which may contain paths."""
    try:
        return work()
    except CLIENT_ERRORS:
        raise
    except Exception:
        logging.getLogger(__name__).exception("a race failed")
        raise ServerFault(SERVER_FAULT) from None
