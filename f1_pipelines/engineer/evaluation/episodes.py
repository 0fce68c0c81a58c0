"""Evaluation: every policy on the same held-out races; raw outputs are stored unchanged.

Engineers generate in lockstep, some races at a time; their calls are then carried into the races again. What does not
parse stays what it is: it is counted and costs what it costs, and no script ever calls in a model's place.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from multiprocessing import parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any

from f1_pipelines.engineer.evaluation.postmortems import postmortem, replay_rollout
from f1_pipelines.engineer.evaluation.regret import regret_of
from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import RaceKey
from f1_pipelines.sim.environment.commands import Command, parse
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.foresight import best_commands
from f1_pipelines.sim.policies.play import Played, played, policy_for
from f1_pipelines.sim.policies.policy import Decision
from f1_pipelines.sim.policies.registry import POLICIES
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.workers import map_races

if TYPE_CHECKING:
    from f1_pipelines.engineer.inference.engineer import Engineer

SCRIPTED = tuple(POLICIES)
BATCH_RACES = 64  # races that an engineer drives together at most


@dataclass(frozen=True)
class Candidate:
    """An engineer to evaluate: its checkpoint, and the variant of its races (plain, renamed, hints, training)."""

    policy: str
    checkpoint: str
    path: Path
    variant: str = "plain"


@dataclass(frozen=True)
class RaceCalls:
    """One policy's calls in one race, as they were put out."""

    policy: str
    variant: str
    outputs: tuple[str, ...]
    checkpoint: str | None = None


@dataclass(frozen=True)
class EpisodeResult:
    """Rows of one race for `strategy.episodes`, `decisions` and `postmortems`, less versions and time."""

    episode: dict[str, Any]
    decisions: list[dict[str, Any]]
    postmortem: dict[str, Any] | None  # where there is a regret


def run_episodes(engineer: Engineer, sampler: ScenarioSampler, keys: Sequence[RaceKey], policy: str,
                 checkpoint: str | None,
                 variant: str = "plain", hints: Mapping[RaceKey, str] | None = None) -> dict[RaceKey, RaceCalls]:
    """An engineer's commands in each race: greedy, all races batched."""
    scenarios = [sampler.scenario(*key, renamed=variant == "renamed") for key in keys]
    races = batched_rollout(scenarios, engineer.commands, [(hints or {}).get(key, "") for key in keys])
    return {key: RaceCalls(policy, variant, tuple(race.outputs), checkpoint)
            for key, race in zip(keys, races, strict=True)}


def episode_results(sampler: ScenarioSampler, key: RaceKey, race_calls: Sequence[RaceCalls],
                    oracle: Sequence[str] = ()) -> list[EpisodeResult]:
    """The result of each policy in a race; renamed races have no regret. Missing oracle commands are searched."""
    scenario = sampler.scenario(*key)
    best = [parse(text) for text in oracle] or best_commands(scenario)
    return [_result(sampler.scenario(*key, renamed=True), own_calls, None) if own_calls.variant == "renamed"
            else _result(scenario, own_calls, best) for own_calls in race_calls]


def scripted_results(sampler: ScenarioSampler, keys: Sequence[RaceKey], scripted: Sequence[str] = SCRIPTED,
                     workers: int = 1) -> Iterator[list[EpisodeResult]]:
    """Results of the policies that do not learn, a list for each race.

    Args:
        sampler: What the races are made of.
        keys: The races.
        scripted: Who plays.
        workers: Processes.
    """
    yield from map_races(partial(_scripted_race, sampler=sampler, scripted=tuple(scripted)), keys, workers)


def engineer_results(sampler: ScenarioSampler, candidates: Sequence[Candidate], keys: Sequence[RaceKey],
                     oracle: Mapping[RaceKey, Sequence[str]], hints: Mapping[RaceKey, str] | None = None,
                     workers: int = 1, device: str = "cpu", bf16: bool = False) -> Iterator[list[EpisodeResult]]:
    """Results of engineers, a list for each race.

    Args:
        sampler: What the races are made of.
        candidates: Who plays.
        keys: The races.
        oracle: The oracle's commands by race; missing ones are searched.
        hints: The line that stands under the observations of a race in the variant of that name.
        workers: Processes; each loads the engineers.
        device, bf16: Where and in which precision they compute.
    """
    count = min(max(-(-len(keys) // BATCH_RACES), workers), len(keys))
    jobs = [[(key, tuple(oracle.get(key, ())), (hints or {}).get(key, "")) for key in keys[at::count]]
            for at in range(count)]
    batch_job = partial(_engineer_batch, sampler=sampler, candidates=tuple(candidates), device=device, bf16=bf16)
    for batch in map_races(batch_job, jobs, workers, at_once=1):
        yield from batch


def replay_calls(scenario: Scenario, policy: str, outputs: Sequence[str]) -> Played:
    """The race that these calls make, with all that a picture needs."""
    class Calls:
        """What was called, call by call."""

        def begin(self, observation: Observation) -> None:
            self._left = iter(outputs)

        def decide(self, observation: Observation) -> Decision:
            return Decision(next(self._left), "")

    return played(scenario, Calls(), policy)


def _scripted_race(key: RaceKey, sampler: ScenarioSampler, scripted: Sequence[str]) -> list[EpisodeResult]:
    scenario = sampler.scenario(*key)
    best = best_commands(scenario)
    return [_result(scenario, RaceCalls(name, "plain", tuple(map(str, best))) if name == "oracle"
                      else _scripted_calls(scenario, name), best) for name in scripted]


def _engineer_batch(job: Sequence[tuple[RaceKey, Sequence[str], str]], sampler: ScenarioSampler,
                    candidates: Sequence[Candidate], device: str, bf16: bool) -> list[list[EpisodeResult]]:
    keys, hints = [key for key, *_ in job], {key: hint for key, _, hint in job}
    sat = [run_episodes(_loaded(one.path, device, bf16), sampler, keys, one.policy, one.checkpoint, one.variant,
                        hints if one.variant == "hints" else None) for one in candidates]
    return [episode_results(sampler, key, [race_calls[key] for race_calls in sat], oracle) for key, oracle, _ in job]


@lru_cache(maxsize=4)
def _loaded(path: Path, device: str, bf16: bool) -> Engineer:
    from f1_pipelines.engineer.inference.checkpoints import load_engineer

    if parent_process() is not None:  # one of several, which share the cores
        import torch

        torch.set_num_threads(1)
    return load_engineer(path, device, bf16)


def _scripted_calls(scenario: Scenario, name: str) -> RaceCalls:
    environment, player, outputs = RaceEnvironment(), policy_for(name, scenario), []
    seen, over = environment.begin(scenario), False
    player.begin(seen)
    while not over:
        outputs.append(str(player.decide(seen).command))
        step = environment.step(outputs[-1])
        seen, over = step.observation, step.done
    return RaceCalls(name, "plain", tuple(outputs))


def _result(scenario: Scenario, own_calls: RaceCalls, best: Sequence[Command] | None) -> EpisodeResult:
    """The rows of a race driven by these calls. `best` are the oracle's, None for no regret."""
    race = replay_rollout(scenario, own_calls.outputs)
    regret = regret_of(scenario, own_calls.outputs, best) if best else None
    lost = regret.lost.tolist() if regret else [None] * scenario.laps
    whose = {"policy": own_calls.policy, "variant": own_calls.variant, "family": scenario.family, "seed": scenario.seed}
    decisions = [{
        **whose, "lap": seen.lap, "observation_hash": hashlib.sha256(seen.text.encode()).hexdigest()[:16],
        "raw_output": output, "command": None if error else str(parse(output)), "error": error, "reward": reward,
        "oracle_command": str(best[seen.lap - 1]) if best and seen.lap <= len(best) else None,
        "regret": lost[seen.lap - 1],
    } for seen, output, error, reward in zip(race.seen, race.outputs, race.errors, race.rewards, strict=True)]
    info = race.info
    whole = {**whose, "split": scenario.split, "circuit": scenario.circuit.circuit, "checkpoint": own_calls.checkpoint}
    episode = {
        **whole, **race.environment.final_score.as_dict(),
        "finish_position": info["position"] if info["finished"] else None,
        "best_position": info["best_position"], "regret": regret.total if regret else None,
        "regret_s": info["regret_s"], "laps_called": len(decisions), "parse_failures": info["illegal"], "fallbacks": 0}
    explained = {**whole, **asdict(postmortem(race, regret))} if regret else None
    return EpisodeResult(episode, decisions, explained)
