"""Sprints as a Gymnasium environment. Importing this module registers it, together with its vector form.

    env = gymnasium.make("f1_pipelines.sim.environment.gym:F1RaceEngineer-v0", family="weather_roulette")
    features, info = env.reset(seed=7)  # info["text"] is the prompt, info["observation"] the typed object
    features, reward, terminated, truncated, info = env.step(env.unwrapped.action("PIT_NOW hard"))
"""
from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.actions import TEXT_FREE, action_of, command_of
from f1_pipelines.sim.environment.commands import parse
from f1_pipelines.sim.environment.environment import RaceEnvironment, Step
from f1_pipelines.sim.environment.features import FEATURES
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.scenarios import seeds_of

ENVIRONMENT_ID = "F1RaceEngineer-v0"
LIMIT = 100.0  # of the features
MAX_SEEDS = 512  # scenario seeds of the split that are raced


class RaceEngineerEnv(gymnasium.Env[np.ndarray, int]):
    """One sprint per episode.

    Actions are indices into `actions.ACTIONS`, messages excepted (see `call`); observations are `features.FEATURES`.
    `info` holds the prompt (`text`) and the typed observation (`observation`).

    `reset(seed=...)` seeds Gymnasium's generator, which draws a scenario seed of the split;
    `options={"scenario_seed": 12, "family": ...}` chooses the sprint instead.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(self, family: str = "dry_strategy_sprint", split: str = "train", reward: str = "shaped",
                 render_mode: str | None = None) -> None:
        self.family, self.split, self.render_mode = family, split, render_mode
        self._race, self._seeds = RaceEnvironment(reward), seeds_of(family, split, MAX_SEEDS)
        self.action_space = gymnasium.spaces.Discrete(TEXT_FREE)
        self.observation_space = gymnasium.spaces.Box(-LIMIT, LIMIT, (len(FEATURES),), np.float32)

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a sprint: `options["scenario_seed"]`, or a seed of the split drawn from Gymnasium's generator.

        Raises:
            ValueError: An option is unknown.
        """
        super().reset(seed=seed)
        options = options or {}
        unknown = set(options) - {"scenario_seed", "family"}
        if unknown:
            raise ValueError(f"options take scenario_seed and family; got {', '.join(sorted(map(str, unknown)))[:80]}.")
        number = options.get("scenario_seed", self._seeds[int(self.np_random.integers(len(self._seeds)))])
        self._observation = self._race.reset(number, options.get("family", self.family))
        return features_of(self._observation), self._info({})

    def step(self, action: int | np.integer) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Drive the next lap.

        Raises:
            ValueError: The action is not in the action space.
        """
        if not self.action_space.contains(action):
            raise ValueError(f"an action is a whole number from 0 to {TEXT_FREE - 1}; got {str(action)[:40]!r}.")
        return self._result(self._race.step(command_of(int(action), self._race.scenario)))

    def call(self, text: str) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Drive the next lap with a command as text: messages have no action."""
        return self._result(self._race.step(text))

    def action(self, text: str) -> int:
        """The index of a command."""
        return action_of(parse(text), self._race.scenario)

    def render(self) -> Any:
        """The observation as text."""
        return self._observation.text if self.render_mode == "ansi" else None

    def _result(self, step: Step) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._observation = step.observation
        return features_of(self._observation), float(step.reward), step.done, False, self._info(step.info)

    def _info(self, info: dict[str, Any]) -> dict[str, Any]:
        # The seed determines the future, so it stays out of `info` until the flag.
        seed = {"seed": self._race.scenario.seed} if self._observation.done else {}
        return {**info, "text": self._observation.text, "observation": self._observation, **seed}


def features_of(o: Observation) -> np.ndarray:
    """A typed observation as `features.FEATURES`, (F,)."""
    ahead = [-c.gap_s for c in o.cars if c.position == o.position - 1]
    behind = [c.gap_s for c in o.cars if c.position == o.position + 1]
    own, slicks = o.own, [name for name in o.used if name in COMPOUNDS[:3]]
    done = o.laps if o.done else o.lap - 1
    values = [done / o.laps, o.laps - done, o.status == "vsc", o.status == "sc", o.position,
              *(min(gap[0], 99.0) if gap else 99.0 for gap in (ahead, behind)),
              *(own.compound == name for name in COMPOUNDS), own.age_laps, own.stops,
              not o.rule or len(slicks) > 1 or len(o.used) > len(slicks), o.wetness, o.rain, o.tyre_temp_c,
              ("push", "race", "conserve", "fuel_save", "tyre_save", "defend").index(o.mode), o.wear_scale]
    return np.clip(np.array(values, dtype=np.float32), -LIMIT, LIMIT)


gymnasium.register(ENVIRONMENT_ID, entry_point="f1_pipelines.sim.environment.gym:RaceEngineerEnv",
                   vector_entry_point="f1_pipelines.sim.environment.gym_vector:RaceEngineerVectorEnv")
