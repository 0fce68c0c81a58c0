"""A round of DAgger: the student drives, the expert relabels each lap.

A student that was trained on the expert's races alone has not seen the states that its own mistakes lead to: it agrees
with the expert in 73 % of the expert's laps and in 47 % of its own (docs/lab-notes/race-engineer.md).
"""
from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from f1_pipelines.engineer.data.demonstrations import Turn, relabel_with_expert, without_needless_call
from f1_pipelines.engineer.progress import Reporter
from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import dagger_keys

if TYPE_CHECKING:
    from f1_pipelines.engineer.inference.engineer import Engineer


@dataclass(frozen=True)
class DaggerRound:
    """The turns of a round, labelled by the expert, and the student's score in each race."""

    turns: list[Turn]
    scores: list[float]


def dagger_round(engineer: Engineer, sampler: ScenarioSampler, races: int, number: int, work: Path,
                 reporter: Reporter) -> DaggerRound:
    """Let the engineer drive and the expert relabel. A resumed run reads the round from the work folder.

    Args:
        engineer: The student after the training so far.
        sampler: Makes the races.
        races: Races of each trained family.
        number: Number of the round, from 1.
        work: Folder of the training.
        reporter: Receives the student's score and its agreement with the expert.
    """
    path, scored = work / f"round-{number}.jsonl", work / f"round-{number}.scores.json"
    if path.is_file():
        return DaggerRound(read_demonstrations(path), json.loads(scored.read_text()))
    keys = dagger_keys(races, number)
    driven = batched_rollout([sampler.scenario(*key) for key in keys], engineer.commands)
    outputs = {key: race.outputs for key, race in zip(keys, driven, strict=True)}
    turns = [without_needless_call(turn) for race_turns in relabel_with_expert(sampler, outputs, os.cpu_count() or 1)
             for turn in race_turns]
    commands = [output for race in driven for output in race.outputs]
    agree = np.mean([turn.completion == output for turn, output in zip(turns, commands, strict=True)])
    scores = [race.info["score"] for race in driven]
    reporter.line(f"round {number}: the student scores {np.mean(scores):.3f} in {len(driven)} training races, agrees "
                  f"with the expert in {agree:.0%} of {len(turns)} laps")
    scored.write_text(json.dumps(scores))  # first: whoever finds the turns finds these
    growing = path.with_suffix(".growing")
    growing.write_text("\n".join(json.dumps(asdict(turn)) for turn in turns))
    growing.rename(path)
    return DaggerRound(turns, scores)


def read_demonstrations(path: Path) -> list[Turn]:
    """The turns of a round."""
    return [Turn(**json.loads(line)) for line in path.read_text().splitlines()]
