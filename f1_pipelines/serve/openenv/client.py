"""The typed client: `with F1Env(base_url="http://127.0.0.1:8000").sync() as env`, or `async with F1Env(...) as env`."""
from __future__ import annotations

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient

from f1_pipelines.serve.openenv.models import F1Action, F1Observation, F1State


class F1Env(EnvClient[F1Action, F1Observation, F1State]):
    """Client with its own session on the server.

    Call `reset(family=..., seed=..., split=..., circuit=..., weekend=..., car=..., text=...)`,
    `step(F1Action(command="STAY_OUT"))` and `state()`. They raise RuntimeError with the server's message if the server
    rejects the request.
    """

    def _step_payload(self, action: F1Action) -> dict[str, Any]:
        return {"command": action.command}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[F1Observation]:
        observation = F1Observation.model_validate(
            {**payload["observation"], "reward": payload["reward"], "done": payload["done"]})
        return StepResult(observation=observation, reward=payload["reward"], done=payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> F1State:
        return F1State.model_validate(payload)
