"""Episodes: every policy drives the same held-out races, and each raw output is stored.

Engineers drive batches of races; their outputs are then replayed in the races. An output that does not parse is stored
unchanged, counted, and costs what the environment charges; no script ever calls in a model's place.
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
BATCH_RACES = 64  # maximum number of races driven together


@dataclass(frozen=True)
class Candidate:
    """An engineer to evaluate: its checkpoint and the variant of its races (plain, renamed, hints, training)."""

    policy: str
    checkpoint: str
    path: Path
    variant: str = "plain"


@dataclass(frozen=True)
class RaceCalls:
    """One policy's raw outputs in one race."""

    policy: str
    variant: str
    outputs: tuple[str, ...]
    checkpoint: str | None = None


@dataclass(frozen=True)
class EpisodeResult:
    """Rows of one race for `strategy.episodes`, `decisions` and `postmortems`, without versions and time."""

    episode: dict[str, Any]
    decisions: list[dict[str, Any]]
    postmortem: dict[str, Any] | None  # None without regret


def run_episodes(engineer: Engineer, sampler: ScenarioSampler, keys: Sequence[RaceKey], policy: str,
                 checkpoint: str | None, variant: str = "plain",
                 hints: Mapping[RaceKey, str] | None = None) -> dict[RaceKey, RaceCalls]:
    """Drive races with an engineer, greedily and in one batch.

    Args:
        engineer: The engineer.
        sampler: Makes the races.
        keys: The races.
        policy: Name of the engineer's stage.
        checkpoint: Id of its checkpoint.
        variant: `renamed` changes car numbers and the circuit's name.
        hints: By race, the line under its observations.
    """
    scenarios = [sampler.scenario(*key, renamed=variant == "renamed") for key in keys]
    rollouts = batched_rollout(scenarios, engineer.commands, [(hints or {}).get(key, "") for key in keys])
    return {key: RaceCalls(policy, variant, tuple(rollout.outputs), checkpoint)
            for key, rollout in zip(keys, rollouts, strict=True)}


def episode_results(sampler: ScenarioSampler, key: RaceKey, race_calls: Sequence[RaceCalls],
                    oracle: Sequence[str] = ()) -> list[EpisodeResult]:
    """Return the results of several policies in one race.

    Args:
        sampler: Makes the race.
        key: The race.
        race_calls: The outputs of each policy.
        oracle: The oracle's calls; searched for if empty. Renamed races have no regret.
    """
    scenario = sampler.scenario(*key)
    best = [parse(text) for text in oracle] or best_commands(scenario)
    return [_result(sampler.scenario(*key, renamed=True), calls, None) if calls.variant == "renamed"
            else _result(scenario, calls, best) for calls in race_calls]


def scripted_results(sampler: ScenarioSampler, keys: Sequence[RaceKey], policies: Sequence[str] = SCRIPTED,
                     workers: int = 1) -> Iterator[list[EpisodeResult]]:
    """Yield the results of scripted policies: a list for each race, an entry for each policy.

    Args:
        sampler: Makes the races.
        keys: The races.
        policies: Names of the policies.
        workers: Number of processes.
    """
    yield from map_races(partial(_scripted_race, sampler=sampler, policies=tuple(policies)), keys, workers)


def engineer_results(sampler: ScenarioSampler, candidates: Sequence[Candidate], keys: Sequence[RaceKey],
                     oracle: Mapping[RaceKey, Sequence[str]], hints: Mapping[RaceKey, str] | None = None,
                     workers: int = 1, device: str = "cpu", bf16: bool = False) -> Iterator[list[EpisodeResult]]:
    """Yield the results of engineers: a list for each race, an entry for each candidate.

    Args:
        sampler: Makes the races.
        candidates: The engineers.
        keys: The races.
        oracle: By race, the oracle's calls; searched for if missing.
        hints: By race, the line under its observations in variant `hints`.
        workers: Number of processes; each loads the engineers.
        device: Device of the engineers.
        bf16: Use bfloat16 weights instead of float32.
    """
    count = min(max(-(-len(keys) // BATCH_RACES), workers), len(keys))
    batches = [[(key, tuple(oracle.get(key, ())), (hints or {}).get(key, "")) for key in keys[k::count]]
               for k in range(count)]
    drive = partial(_engineer_batch, sampler=sampler, candidates=tuple(candidates), device=device, bf16=bf16)
    for results in map_races(drive, batches, workers, at_once=1):
        yield from results


def replay_calls(scenario: Scenario, policy: str, outputs: Sequence[str]) -> Played:
    """Replay outputs in a race, with all data for a plot."""
    class Replay:
        """Repeats the outputs."""

        def begin(self, observation: Observation) -> None:
            self._remaining = iter(outputs)

        def decide(self, observation: Observation) -> Decision:
            return Decision(next(self._remaining), "")

    return played(scenario, Replay(), policy)


def _scripted_race(key: RaceKey, sampler: ScenarioSampler, policies: Sequence[str]) -> list[EpisodeResult]:
    scenario = sampler.scenario(*key)
    best = best_commands(scenario)
    return [_result(scenario, RaceCalls(name, "plain", tuple(map(str, best))) if name == "oracle"
                    else _scripted_calls(scenario, name), best) for name in policies]


def _engineer_batch(batch: Sequence[tuple[RaceKey, Sequence[str], str]], sampler: ScenarioSampler,
                    candidates: Sequence[Candidate], device: str, bf16: bool) -> list[list[EpisodeResult]]:
    keys, hints = [key for key, *_ in batch], {key: hint for key, _, hint in batch}
    by_candidate = [run_episodes(_loaded(candidate.path, device, bf16), sampler, keys, candidate.policy,
                                 candidate.checkpoint, candidate.variant,
                                 hints if candidate.variant == "hints" else None) for candidate in candidates]
    return [episode_results(sampler, key, [calls[key] for calls in by_candidate], oracle) for key, oracle, _ in batch]


@lru_cache(maxsize=4)
def _loaded(path: Path, device: str, bf16: bool) -> Engineer:
    from f1_pipelines.engineer.inference.checkpoints import load_engineer

    if parent_process() is not None:  # worker processes share the cores
        import torch

        torch.set_num_threads(1)
    return load_engineer(path, device, bf16)


def _scripted_calls(scenario: Scenario, name: str) -> RaceCalls:
    environment, policy, outputs = RaceEnvironment(), policy_for(name, scenario), []
    observation, done = environment.begin(scenario), False
    policy.begin(observation)
    while not done:
        outputs.append(str(policy.decide(observation).command))
        step = environment.step(outputs[-1])
        observation, done = step.observation, step.done
    return RaceCalls(name, "plain", tuple(outputs))


def _result(scenario: Scenario, calls: RaceCalls, best: Sequence[Command] | None) -> EpisodeResult:
    """Return the rows of a race with these outputs. `best` are the oracle's commands; None omits the regret."""
    race = replay_rollout(scenario, calls.outputs)
    regret = regret_of(scenario, calls.outputs, best) if best else None
    lost = regret.lost.tolist() if regret else [None] * scenario.laps
    key = {"policy": calls.policy, "variant": calls.variant, "family": scenario.family, "seed": scenario.seed}
    decisions = [{
        **key, "lap": observation.lap,
        "observation_hash": hashlib.sha256(observation.text.encode()).hexdigest()[:16],
        "raw_output": output, "command": None if error else str(parse(output)), "error": error, "reward": reward,
        "oracle_command": str(best[observation.lap - 1]) if best and observation.lap <= len(best) else None,
        "regret": lost[observation.lap - 1],
    } for observation, output, error, reward in zip(
        race.observations, race.outputs, race.errors, race.rewards, strict=True)]
    info, score = race.info, race.environment.score
    assert score is not None  # the race is over
    common = {**key, "split": scenario.split, "circuit": scenario.circuit.circuit, "checkpoint": calls.checkpoint}
    episode = {
        **common, **score.as_dict(), "finish_position": info["position"] if info["finished"] else None,
        "best_position": info["best_position"], "regret": regret.total if regret else None,
        "regret_s": info["regret_s"], "laps_called": len(decisions), "parse_failures": info["illegal"], "fallbacks": 0}
    analysis = {**common, **asdict(postmortem(race, regret))} if regret else None
    return EpisodeResult(episode, decisions, analysis)
