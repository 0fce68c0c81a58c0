"""The two stages of a training, SFT and GRPO, each from its start to a stored checkpoint."""
from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from f1_pipelines.engineer.data.dagger import dagger_round
from f1_pipelines.engineer.inference.checkpoints import (
    EngineerCheckpoint,
    load_engineer,
    read_checkpoint,
    save_engineer,
)
from f1_pipelines.engineer.inference.cpu import place_model
from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.profiles import Profile, stored_settings
from f1_pipelines.engineer.progress import MetricHistory, Reporter
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.training.checkpoint_selection import BestCheckpoint
from f1_pipelines.engineer.training.grpo import train_grpo
from f1_pipelines.engineer.training.initial_weights import initial_model, merge_adapter, with_adapter
from f1_pipelines.engineer.training.resuming import resumed_step
from f1_pipelines.engineer.training.sft import Example, train_sft
from f1_pipelines.evaluation.bootstrap import mean_interval

if TYPE_CHECKING:
    from accelerate import PartialState

    from f1_pipelines.engineer.training.job import Job

SELECTION_RACES = 24  # of each trained family: they select the GRPO checkpoint, and are never reported


@dataclass(frozen=True)
class Outcome:
    """A finished stage: its checkpoint, the id of the parent checkpoint, all metrics, and the number of turns."""

    checkpoint: EngineerCheckpoint
    parent: str
    history: MetricHistory
    n_turns: int


def sft(job: Job, profile: Profile, sampler: ScenarioSampler, reporter: Reporter,
        accelerator: PartialState) -> Outcome | None:
    """Train an engineer to imitate the expert, with DAgger rounds. Only the main process returns an outcome."""
    examples = [Example(**json.loads(line)) for line in Path(job.turns).read_text().splitlines()]
    engineers = Path(job.checkpoints)
    model, rendering = initial_model(profile, (f"{e.prompt}\n{e.completion}" for e in examples), job.seed,
                                     engineers / "weights", Path(job.weights) if job.weights else None)
    n_parameters = sum(weights.numel() for weights in model.parameters())
    untrained = save_engineer(model, rendering, engineers, _meta(
        job, profile, sampler, stage="untrained", parent=None, n_turns=0, n_parameters=n_parameters)
    ) if accelerator.is_main_process else None
    model = with_adapter(place_model(model, job.device), profile, job.seed)
    work = Path(job.work)
    history = train_sft(model, rendering, examples, profile, job.seed, work / "steps", job.device, reporter)
    for number in range(1, profile.sft.dagger_rounds + 1):
        engineer = Engineer(model, rendering, profile.max_new_tokens, profile.generation_batch)
        with accelerator.main_process_first():  # which stores the round for the others to read
            dagger = dagger_round(engineer, sampler, profile.sft.dagger_races, number, work, reporter)
        low, high = mean_interval(dagger.scores)
        history.add(history.last_step, {
            "student_score": float(np.mean(dagger.scores)), "student_low": low, "student_high": high})
        examples += [Example(lap.prompt, lap.completion) for lap in dagger.demonstrations]
        round_profile = replace(profile, sft=replace(profile.sft, epochs=profile.sft.dagger_epochs))
        history.extend(train_sft(model, rendering, examples, round_profile, job.seed + number, work / f"steps-{number}",
                                 job.device, reporter, continued=True))
    if untrained is None:
        return None
    model = merge_adapter(model, profile, rendering, [example.prompt for example in examples])
    n_turns = profile.sft.turns_used(len(examples))
    stored = save_engineer(model, rendering, engineers, _meta(
        job, profile, sampler, stage="sft", parent=untrained.id, n_turns=n_turns, n_parameters=n_parameters))
    return Outcome(stored, untrained.id, history, n_turns)


def grpo(job: Job, profile: Profile, sampler: ScenarioSampler, reporter: Reporter,
         accelerator: PartialState) -> Outcome | None:
    """Train the parent engineer with GRPO. Only the main process returns an outcome."""
    parent, start = read_checkpoint(Path(job.parent)), load_engineer(Path(job.parent), job.device)
    model = with_adapter(start.model, profile, job.seed)
    steps = Path(job.work) / "steps"
    if not accelerator.is_main_process:  # the main process evaluates and stores the weights, which are the same in all
        train_grpo(model, start.rendering, sampler, profile, job.seed, steps, job.device)
        return None
    best = BestCheckpoint(model, sampler, SELECTION_RACES, Path(job.work) / "best.safetensors", reporter,
                          resumed_step(steps, job.processes))
    start_score = best.evaluate(0, start)
    history = train_grpo(model, start.rendering, sampler, profile, job.seed, steps, job.device, reporter,
                         best.evaluate)
    best.restore()
    history.add(0, {"selection_score": start_score})
    model = merge_adapter(model, profile, start.rendering, [observation.text for observation in best.observations])
    n_turns = profile.grpo.steps * profile.grpo.states * profile.grpo.num_generations
    stored = save_engineer(model, start.rendering, Path(job.checkpoints), _meta(
        job, profile, sampler, stage="grpo", parent=parent.id, n_turns=n_turns,
        n_parameters=parent.meta["n_parameters"], chosen_step=best.step))
    return Outcome(stored, parent.id, history, n_turns)


def _meta(job: Job, profile: Profile, sampler: ScenarioSampler, **more: Any) -> dict[str, Any]:
    """Return fields of `meta.json`, which checkpoint ids hash."""
    settings = {} if more["stage"] == "untrained" else stored_settings(
        profile.sft if job.stage == "sft" else profile.grpo)
    return {"profile": job.profile, "training_seed": job.seed, "scenes_version": sampler.version,
            "settings": settings, **more}
