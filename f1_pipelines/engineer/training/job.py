"""One training from a job file to a checkpoint: here, or as `python -m f1_pipelines.engineer.training.job JOB.json`.

The same function trains inside a Dagster step, in a process of its own and in each of several that `accelerate launch`
starts; what differs is who takes the lines of progress.
"""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from f1_pipelines.engineer.profiles import GrpoSettings, Profile, SftSettings, profile_of
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.evaluation.bootstrap import mean_interval

if TYPE_CHECKING:
    from accelerate import PartialState

    from f1_pipelines.engineer.inference.checkpoints import EngineerCheckpoint
    from f1_pipelines.engineer.progress import MetricHistory, Reporter
    from f1_pipelines.engineer.training.resuming import Usage

    _Found = tuple[EngineerCheckpoint, str, MetricHistory,
                   int]  # stored, id of the one before, what was measured, turns

JOB, BEGAN, RESULT, FAILED = "job.json", "began.json", "result.json", "failed.txt"
GIB = 2**30
SELECTION_RACES = 24  # of each trained family, validation split: to choose a GRPO checkpoint, never to report


@dataclass(frozen=True)
class Job:
    """All that a training needs. Paths are absolute, so that any process can run it.

    Attributes:
        stage: sft or grpo.
        profile: Name.
        settings: Fields of the profile's `sft` or `grpo` that differ from it.
        turns: JSON lines with prompt and completion, for SFT.
        parent: Folder of the checkpoint to begin with, for GRPO.
        sampler: JSON of the scenes.
        seed: Of the training.
        work: Folder of the run: what to resume from, and the result.
        checkpoints: Folder of engineers.
        weights: Folder with the weights of a hub profile, empty for the hub.
        device, precision: cpu, cuda, cuda:1; float32 or bfloat16.
        processes: That train together, each on a GPU of its own (device cuda), or all on the CPU. `batch` of the
            settings is what each of them takes.
    """

    stage: str
    profile: str
    settings: dict[str, Any]
    turns: str
    parent: str
    sampler: str
    seed: int
    work: str
    checkpoints: str
    weights: str = ""
    device: str = "cpu"
    precision: str = "float32"
    processes: int = 1

    def begin(self, inputs: Mapping[str, str]) -> Path:
        """Lay out the work folder and name its job file.

        What lies there is gone on from only if it began as the very same thing: job, profile, inputs, versions of
        environment and prompt. Anything else is cleared.

        Args:
            inputs: Text of the files that the job reads, by name in the work folder.
        """
        from f1_pipelines.sim.environment.prompt import PROMPT_VERSION
        from f1_pipelines.sim.scenarios import ENV_VERSION

        work, whole = Path(self.work), json.dumps(asdict(self), indent=2)
        began = json.dumps({
            "job": asdict(self), "profile": asdict(profile_of(self.profile)), "env_version": ENV_VERSION,
            "prompt_version": PROMPT_VERSION,
            "inputs": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in inputs.items()}}, indent=2)
        if not (work / BEGAN).is_file() or (work / BEGAN).read_text() != began:
            (work / BEGAN).unlink(missing_ok=True)  # first: what is half cleared is not resumed by the job before
            shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        (work / FAILED).unlink(missing_ok=True)
        for name, text in {**inputs, JOB: whole, BEGAN: began}.items():
            (work / name).write_text(text)
        return work / JOB

    def end(self) -> None:
        """Its result is kept elsewhere: the same job begins anew next time."""
        (Path(self.work) / BEGAN).unlink()


@dataclass(frozen=True)
class TrainingResult:
    """What came of a job."""

    checkpoint: str
    untrained: str  # SFT: the model before any training; GRPO: its parent
    points: list[tuple[int, str, float]]
    n_turns: int
    n_parameters: int
    seconds: float  # over all attempts; one that was killed counts up to its last report
    tokens_per_s: float | None
    peak_memory_gib: float  # of the attempt that took most
    settings: dict[str, Any]

    @classmethod
    def read(cls, work: Path) -> TrainingResult:
        """The result that a process left."""
        return cls(**json.loads((work / RESULT).read_text()))


def run(job: Job, reporter: Reporter | None = None) -> TrainingResult:
    """Train, store the checkpoint, and leave the result in the work folder.

    Of several processes, each calls this. The main one alone stores and tells, all return its result.

    Raises:
        WrongCrew: More or fewer processes were started than the job is for.
        TrainingFailed: It went wrong, or learnt nothing.
    """
    for name, value in (("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "0"), ("TOKENIZERS_PARALLELISM", "false")):
        os.environ.setdefault(name, value)
    if profile_of(job.profile).weights != "hub" or job.weights:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # libraries ask the hub about any model, and wait for it
    import torch

    from f1_pipelines.engineer.inference.cpu import use_fast_matmul
    from f1_pipelines.engineer.progress import SILENT, Reporter, memory_for
    from f1_pipelines.engineer.training.distributed import WorldSizeError, accelerator_on, own_device
    from f1_pipelines.engineer.training.resuming import Usage

    accelerator = accelerator_on(job.device)
    if accelerator.num_processes != job.processes:
        raise WorldSizeError(f"the job is for {job.processes} processes and {accelerator.num_processes} were started; "
                             "start as many, or change `processes` of the resource `compute`")
    job = replace(job, device=own_device(accelerator, job.device))
    reporter = (reporter or Reporter(print, warn=print)) if accelerator.is_main_process else SILENT
    if job.device == "cpu":  # two spinning threads on a busy machine are slower than one
        torch.set_num_threads(1)
    usage = Usage(Path(job.work), job.device)
    if accelerator.is_main_process:
        reporter = usage.written_by(reporter)
    profile = _profile_of(job)
    sampler = ScenarioSampler.from_json(Path(job.sampler).read_text())
    with memory_for(f"{job.stage} of profile {profile.name}", job.device, "set a smaller batch in its settings"), \
            use_fast_matmul():
        outcome = (_sft if job.stage == "sft" else _grpo)(job, profile, sampler, reporter, accelerator)
    if outcome is not None:
        _leave(job, profile, usage, *outcome)
    accelerator.wait_for_everyone()
    accelerator.destroy_process_group()
    return TrainingResult.read(Path(job.work))


def _leave(job: Job, profile: Profile, usage: Usage, stored: EngineerCheckpoint, untrained: str, curve: MetricHistory,
           n_turns: int) -> None:
    speeds = curve.of("tokens_per_s")
    result = TrainingResult(
        stored.id, untrained, curve.points, n_turns, int(stored.meta["n_parameters"]), round(usage.seconds, 1),
        round(speeds[-1], 1) if speeds else None, round(usage.peak_bytes / GIB, 3),
        asdict(getattr(profile, job.stage)))
    growing = Path(job.work) / f".{RESULT}"
    growing.write_text(json.dumps(asdict(result)))
    growing.replace(Path(job.work) / RESULT)


def _profile_of(job: Job) -> Profile:
    profile = profile_of(job.profile)
    kind = SftSettings if job.stage == "sft" else GrpoSettings
    settings = kind(**{**asdict(getattr(profile, job.stage)), **job.settings})
    changed: dict[str, Any] = {job.stage: settings}
    return replace(profile, **changed, bf16=job.precision == "bfloat16")


def _meta(job: Job, profile: Profile, sampler: ScenarioSampler, **more: Any) -> dict[str, Any]:
    settings = asdict(getattr(profile, job.stage)) if more["stage"] != "untrained" else {}
    return {"profile": job.profile, "training_seed": job.seed, "scenes_version": sampler.version,
            "settings": settings, **more}


def _sft(job: Job, profile: Profile, sampler: ScenarioSampler, reporter: Reporter,
         accelerator: PartialState) -> _Found | None:
    from f1_pipelines.engineer.data.dagger import dagger_round
    from f1_pipelines.engineer.inference.checkpoints import save_engineer
    from f1_pipelines.engineer.inference.cpu import place_model
    from f1_pipelines.engineer.inference.engineer import Engineer
    from f1_pipelines.engineer.training.initial_weights import initial_model, merge_adapter, with_adapter
    from f1_pipelines.engineer.training.sft import Example, train_sft

    examples = [Example(**json.loads(line)) for line in Path(job.turns).read_text().splitlines()]
    engineers = Path(job.checkpoints)
    model, rendering = initial_model(profile, (f"{e.prompt}\n{e.completion}" for e in examples), job.seed,
                                     engineers / "weights", Path(job.weights) if job.weights else None)
    size = sum(weights.numel() for weights in model.parameters())
    before = save_engineer(model, rendering, engineers, _meta(
        job, profile, sampler, stage="untrained", parent=None, n_turns=0, n_parameters=size)
    ) if accelerator.is_main_process else None
    model = with_adapter(place_model(model, job.device), profile, job.seed)
    curve = train_sft(model, rendering, examples, profile, job.seed, Path(job.work) / "steps", job.device, reporter)
    for number in range(1, profile.sft.rounds + 1):
        engineer = Engineer(model, rendering, profile.max_new_tokens, profile.generation_batch)
        with accelerator.main_process_first():  # it drives, the others then read what it drove
            driven = dagger_round(engineer, sampler, profile.sft.round_races, number, Path(job.work), reporter)
        low, high = mean_interval(driven.scores)
        curve.add(curve.last_step, {"student_score": float(np.mean(driven.scores)), "student_low": low,
                                    "student_high": high})
        examples += [Example(turn.prompt, turn.completion) for turn in driven.turns]
        again = replace(profile, sft=replace(profile.sft, epochs=profile.sft.round_epochs))
        curve.append(train_sft(model, rendering, examples, again, job.seed + number,
                               Path(job.work) / f"steps-{number}", job.device, reporter, taught=True))
    if before is None:
        return None
    model = merge_adapter(model, profile, rendering, [example.prompt for example in examples])
    learnt = profile.sft.taken(len(examples))
    stored = save_engineer(model, rendering, engineers, _meta(
        job, profile, sampler, stage="sft", parent=before.id, n_turns=learnt, n_parameters=size))
    return stored, before.id, curve, learnt


def _grpo(job: Job, profile: Profile, sampler: ScenarioSampler, reporter: Reporter,
          accelerator: PartialState) -> _Found | None:
    from f1_pipelines.engineer.inference.checkpoints import load_engineer, read_checkpoint, save_engineer
    from f1_pipelines.engineer.training.checkpoint_selection import BestCheckpoint
    from f1_pipelines.engineer.training.grpo import train_grpo
    from f1_pipelines.engineer.training.initial_weights import merge_adapter, with_adapter
    from f1_pipelines.engineer.training.resuming import resumed_step

    parent, start = read_checkpoint(Path(job.parent)), load_engineer(Path(job.parent), job.device)
    model = with_adapter(start.model, profile, job.seed)
    steps = Path(job.work) / "steps"
    if not accelerator.is_main_process:  # all hold the same weights: the main one evaluates, selects and stores them
        train_grpo(model, start.rendering, sampler, profile, job.seed, steps, job.device)
        return None
    best = BestCheckpoint(model, sampler, SELECTION_RACES, Path(job.work) / "best.safetensors", reporter,
                    resumed_step(steps, job.processes))
    untaught = best.evaluate(0, start)
    curve = train_grpo(model, start.rendering, sampler, profile, job.seed, steps, job.device, reporter, best.evaluate)
    best.restore()
    curve.add(0, {"selection_score": untaught})
    model = merge_adapter(model, profile, start.rendering, [seen.text for seen in best.seen])
    settings = profile.grpo
    tried = settings.steps * settings.states * settings.samples
    stored = save_engineer(model, start.rendering, Path(job.checkpoints), _meta(
        job, profile, sampler, stage="grpo", parent=parent.id, n_turns=tried,
        n_parameters=parent.meta["n_parameters"], chosen_step=best.step))
    return stored, parent.id, curve, tried


def main() -> None:
    """Run the job whose file is named on the command line; under Dagster Pipes, progress goes to the run's log."""
    from dagster_pipes import PipesContext, open_dagster_pipes

    from f1_pipelines.engineer.progress import Reporter
    from f1_pipelines.engineer.training.parent_process import exit_with_parent

    exit_with_parent()
    job, rank = Job(**json.loads(Path(sys.argv[1]).read_text())), int(os.environ.get("RANK", "0"))
    try:
        if rank == 0 and "DAGSTER_PIPES_CONTEXT" in os.environ:
            with open_dagster_pipes():
                run(job, Reporter(PipesContext.get().log.info, warn=PipesContext.get().log.warning))
        else:
            trained = run(job)
            if rank == 0:
                print(json.dumps({"checkpoint": trained.checkpoint}))
    except Exception as problem:  # Dagster sees nothing of a process but its exit status
        _last_words(Path(job.work) / FAILED, problem)
        raise


def _last_words(file: Path, problem: Exception) -> None:
    """Leave why this process failed, unless another did first: then all that this one knows is that it lost it."""
    message = f"{type(problem).__name__}: {problem}"
    if any(words in message for words in _LOST):
        message = ("another process of the training ended without a report, most often for want of memory; stop what "
                   "else runs there, or take a smaller profile (F1_PROFILE=tiny)")
    with suppress(FileExistsError), file.open("x") as words:
        words.write(message)


_LOST = ("closed by peer", "reset by peer", "NCCL")  # what gloo and NCCL say of it


if __name__ == "__main__":
    main()
