"""A DAgger round: the student drives races, the expert relabels every lap.

A student trained only on the expert's races does not know what to do after its own mistakes: in its own races it agrees
with the expert far less often than in the expert's (docs/lab-notes/race-engineer.md).
"""
from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from f1_pipelines.engineer.data.demonstrations import Demonstration, relabel_with_expert, without_needless_call
from f1_pipelines.engineer.progress import Reporter
from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import dagger_races

if TYPE_CHECKING:
    from f1_pipelines.engineer.inference.engineer import Engineer


@dataclass(frozen=True)
class DaggerRound:
    """The laps that the student drove, with the expert's labels, and the student's score in each race."""

    demonstrations: list[Demonstration]
    scores: list[float]


def dagger_round(engineer: Engineer, sampler: ScenarioSampler, races: int, number: int, work: Path,
                 reporter: Reporter) -> DaggerRound:
    """Let the student drive races and the expert relabel them. Reads the round from disk if it is stored.

    Args:
        engineer: The student after the training so far.
        sampler: Makes the races.
        races: Number of races of each trained family.
        number: Number of the round, from 1.
        work: Working folder of the training; the round is stored there.
        reporter: Receives the score and the share of laps in which student and expert agree.
    """
    path, scores_path = work / f"round-{number}.jsonl", work / f"round-{number}.scores.json"
    if path.is_file():
        return DaggerRound(read_demonstrations(path), json.loads(scores_path.read_text()))
    keys = dagger_races(number, races)
    rollouts = batched_rollout([sampler.scenario(*key) for key in keys], engineer.commands)
    outputs = {key: rollout.outputs for key, rollout in zip(keys, rollouts, strict=True)}
    demonstrations = [without_needless_call(turn) for race in relabel_with_expert(sampler, outputs, os.cpu_count() or 1)
                      for turn in race]
    raw_outputs = [output for rollout in rollouts for output in rollout.outputs]
    agreement = np.mean([turn.completion == output for turn, output in zip(demonstrations, raw_outputs, strict=True)])
    scores = [rollout.info["score"] for rollout in rollouts]
    reporter.info(f"round {number}: the student scores {np.mean(scores):.3f} in {len(rollouts)} training races and "
                  f"agrees with the expert in {agreement:.0%} of {len(demonstrations)} laps")
    scores_path.write_text(json.dumps(scores))  # first: the round counts as stored once its demonstrations are
    temporary = path.with_suffix(".growing")
    temporary.write_text("\n".join(json.dumps(asdict(turn)) for turn in demonstrations))
    temporary.rename(path)
    return DaggerRound(demonstrations, scores)


def read_demonstrations(path: Path) -> list[Demonstration]:
    """Read the demonstrations of a stored round."""
    return [Demonstration(**json.loads(line)) for line in path.read_text().splitlines()]
