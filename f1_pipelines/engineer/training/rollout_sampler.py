"""What a step of practice learns from: moments of races, calls tried at them, and what became of each.

Notable choices:
- A step plays some races with the policy as it is and draws calls at some moments of them. Moments at which all draws
  are alike teach nothing and are passed over; how many there were is logged.
- A call that was drawn more than once is raced and learnt from once, with the weight of its draws: the same gradient at
  a third of the cost, so a step has room for more moments.
- The gain of a call is its final score less the mean of its moment's draws. It is the environment's score: no judge, no
  second model.
- Which races a step plays follows from (seed, step) alone, so a run that was killed goes on as if it had not been.
"""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.profiles import GrpoSettings
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import GRPO_RACES, GRPO_START, TRAINED_FAMILIES, race_keys
from f1_pipelines.engineer.training.counterfactual_returns import DecisionState, counterfactual_returns, decision_states
from f1_pipelines.engineer.training.self_play import with_self_play
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.commands import BadCommand, parse
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scenarios.rng import digest

if TYPE_CHECKING:
    from f1_pipelines.engineer.prompting.rendering import Rendering

EASIEST = "dry_strategy_sprint"  # no rain, no closed track, no rival
DRY = ("soft", "medium", "hard")


@dataclass(frozen=True)
class SampledGroup:
    """Calls at one moment.

    Attributes:
        moment: Where.
        ids: Token ids of each call, all different.
        calls: What they say.
        draws: (calls,) how often each was drawn.
    """

    moment: DecisionState
    ids: list[list[int]]
    calls: list[str]
    draws: np.ndarray


class RolloutSampler:
    """Plays the races of each step and hands the calls to trl."""

    def __init__(self, rendering: Rendering, scenes: ScenarioSampler, settings: GrpoSettings, seed: int, longest: int,
                 batch: int, share: slice = slice(None)) -> None:
        """
        Args:
            rendering: Of the policy's tokenizer.
            scenes: What the races are made of.
            settings: Settings; their `states` are those of this process.
            seed: Of races and moments.
            longest: Tokens of a call.
            batch: Prompts generated for at a time.
            share: Which of a step's races are played here; of several processes each has its own.
        """
        self._rendering, self._scenes, self._settings = rendering, scenes, settings
        self._seed, self._share = seed, share
        self._longest, self._batch = longest, batch
        self._pool = race_keys("train", GRPO_RACES // len(TRAINED_FAMILIES), start=GRPO_START)
        self.numbers: dict[str, float] = {}  # of the last step, by name

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """trl's `rollout_func`: as many calls as there are prompts, `states` x `samples`.

        Moments come in the order they were picked until the next one's calls don't fit; the rest repeats the last call
        with a gain of 0.
        """
        started = time.process_time()
        engineer = Engineer(trainer.accelerator.unwrap_model(trainer.model), self._rendering, self._longest,
                            self._batch)
        tried, dead = self.tried(engineer, trainer.state.global_step, self._settings.states * self._settings.looks)
        groups, room = [], self._settings.states * self._settings.samples
        for one in tried:
            if len(one.calls) > room:
                break
            groups.append(one)
            room -= len(one.calls)
        ends, simulated = self.raced(engineer, groups)
        gains = [self.gains(one, outcomes) for one, outcomes in zip(groups, ends, strict=True)]
        scores = [np.array([end["score"] for end in outcomes]) for outcomes in ends]
        flat = [(call, ids) for one in groups for call, ids in zip(one.calls, one.ids, strict=True)]
        draws = np.concatenate([one.draws for one in groups])
        self.numbers = {
            "score": float(np.mean([one.draws @ outcomes / one.draws.sum() for one,
                                    outcomes in zip(groups, scores, strict=True)])),
            "frac_reward_zero_std": dead, "states": len(groups),
            "reward_range": float(np.mean([np.ptp(outcomes) for outcomes in scores])),
            "parse_failures": float(np.average([not _parses(call) for call, _ in flat], weights=draws)),
            "clipped": float(np.average([len(ids) >= self._longest for _, ids in flat], weights=draws)),
            "rollout_s": time.process_time() - started, "simulator_s": simulated,
        }
        prompt_ids = [self._rendering.prompt_ids(one.moment.seen.text) for one in groups for _ in one.calls]
        completion_ids = [ids for _, ids in flat]
        gain = np.concatenate([one.draws * outcomes for one, outcomes in zip(groups, gains, strict=True)]).tolist()
        return {"prompt_ids": prompt_ids + [prompt_ids[-1]] * room, "logprobs": None,
                "completion_ids": completion_ids + [completion_ids[-1]] * room, "gain": gain + [0.0] * room}

    def tried(self, engineer: Engineer, step: int, count: int | None = None) -> tuple[list[SampledGroup], float]:
        """Calls drawn at moments of the step's races.

        Args:
            engineer: The policy.
            step: Of the practice.
            count: Moments looked at; None for every lap.

        Returns:
            The moments at which calls differ, and the share of those looked at where they do not. If they differ
            nowhere, the first moment.
        """
        settings, rng = self._settings, np.random.default_rng(digest("practice", self._seed, step))
        pool = [key for key in self._pool if key[0] == EASIEST] if step < settings.easy_steps else self._pool
        keys = [pool[k] for k in rng.choice(len(pool), settings.races, replace=False)][self._share]
        scenarios = [self._scenes.scenario(*key) for key in keys]
        if settings.copies:
            scenarios = with_self_play(scenarios, lambda texts: engineer.commands(texts, settings.copies))
        laps = [moment for race in decision_states(scenarios, engineer.commands) for moment in race]
        chosen = [laps[k] for k in rng.permutation(len(laps))[:count]]
        drawn = engineer.draws([moment.seen.text for moment in chosen], settings.samples, settings.temperature)
        groups = [self._distinct(moment, completions) for moment, completions in zip(chosen, drawn, strict=True)]
        differ = [one for one in groups if len(one.calls) > 1]
        return differ or groups[:1], 1.0 - len(differ) / len(groups)

    def raced(self, engineer: Engineer, tried: Sequence[SampledGroup]) -> tuple[list[list[dict[str, Any]]], float]:
        """How the race ends after each call, the policy going on, and the seconds of it that were not the policy's."""
        timed, started = _Timed(engineer), time.process_time()
        ends = counterfactual_returns([one.moment for one in tried], [one.calls for one in tried], timed)
        return ends, time.process_time() - started - timed.seconds

    def gains(self, one: SampledGroup, ends: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """(calls,) score of each call, shaping included, less the mean of the moment's draws."""
        rewards = np.array([end["score"] for end in ends]) + self.shaping(one, ends)
        return rewards - one.draws @ rewards / one.draws.sum()

    def shaping(self, one: SampledGroup, ends: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """(calls,) what is added to the scores."""
        added = np.zeros(len(one.calls))
        if self._settings.two_compounds:
            scenario = one.moment.environment.scenario
            added += self._settings.two_compounds * np.array([_used_two(scenario, end) for end in ends])
        if self._settings.agreement:
            best = str(one.moment.expert_call())
            added += self._settings.agreement * np.array([call == best for call in one.calls])
        return added

    def _distinct(self, moment: DecisionState, drawn: Sequence[Sequence[int]]) -> SampledGroup:
        draws = sorted(Counter(map(tuple, drawn)).items())
        return SampledGroup(moment, [list(ids) for ids, _ in draws], [self._rendering.command(ids) for ids, _ in draws],
                            np.array([often for _, often in draws]))


def _used_two(scenario: Scenario, end: Mapping[str, Any]) -> bool:
    used = {int(scenario.compound[0]), *(compound for _, compound in end["stops"])}
    return scenario.rule and sum(COMPOUNDS[compound] in DRY for compound in used) >= 2


def _parses(call: str) -> bool:
    try:
        parse(call)
    except BadCommand:
        return False
    return True


class _Timed:
    """An engineer as a caller, and the time it took."""

    def __init__(self, engineer: Engineer) -> None:
        self._engineer, self.seconds = engineer, 0.0

    def __call__(self, observations: Sequence[str]) -> list[str]:
        started = time.process_time()
        calls = self._engineer.commands(observations)
        self.seconds += time.process_time() - started
        return calls
