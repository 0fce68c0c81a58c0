"""A DAgger round: the student drives races, the expert relabels every lap.

A student trained on the expert's races alone does not know what to do after a mistake of its own: in its own races it
agrees with the expert far less often than in the expert's (docs/lab-notes/race-engineer.md).
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
    """Every lap that the student drove, labelled by the expert, and the student's score in each race."""

    demonstrations: list[Demonstration]
    scores: list[float]


def dagger_round(engineer: Engineer, sampler: ScenarioSampler, races: int, number: int, work: Path,
                 reporter: Reporter) -> DaggerRound:
    """Have the student drive races and the expert relabel them. A stored round is read, not driven again.

    Args:
        engineer: The student after the training so far.
        sampler: Makes the races.
        races: Races of each trained family.
        number: Number of the round, from 1.
        work: Folder of the training, where the round is stored.
        reporter: Receives the score and how often student and expert agree.
    """
    path, scores_path = work / f"round-{number}.jsonl", work / f"round-{number}.scores.json"
    if path.is_file():
        return DaggerRound(read_demonstrations(path), json.loads(scores_path.read_text()))
    keys = dagger_races(number, races)
    rollouts = batched_rollout([sampler.scenario(*key) for key in keys], engineer.commands)
    outputs = {key: rollout.outputs for key, rollout in zip(keys, rollouts, strict=True)}
    demonstrations = [without_needless_call(lap) for race in relabel_with_expert(sampler, outputs, os.cpu_count() or 1)
                      for lap in race]
    student_outputs = [output for rollout in rollouts for output in rollout.outputs]
    agreement = np.mean([lap.completion == output for lap, output in zip(demonstrations, student_outputs, strict=True)])
    scores = [rollout.info["score"] for rollout in rollouts]
    reporter.info(f"round {number}: the student scores {np.mean(scores):.3f} in {len(rollouts)} training races and "
                  f"agrees with the expert in {agreement:.0%} of {len(demonstrations)} laps")
    scores_path.write_text(json.dumps(scores))  # first: a round counts as stored once its demonstrations are
    growing = path.with_suffix(".growing")
    growing.write_text("\n".join(json.dumps(asdict(lap)) for lap in demonstrations))
    growing.rename(path)
    return DaggerRound(demonstrations, scores)


def read_demonstrations(path: Path) -> list[Demonstration]:
    """The demonstrations of a stored round."""
    return [Demonstration(**json.loads(line)) for line in path.read_text().splitlines()]
