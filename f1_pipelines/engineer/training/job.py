"""One training, from a job to a checkpoint: `run(job)`, or `python -m f1_pipelines.engineer.training.job JOB.json`.

The same function trains inside a Dagster step, in a process of its own, and in each of several processes that
`accelerate launch` starts; only the receiver of the progress differs.
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

from f1_pipelines.engineer.profiles import Profile, profile_of, stored_settings, with_changes
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler

if TYPE_CHECKING:
    from f1_pipelines.engineer.progress import Reporter
    from f1_pipelines.engineer.training.resuming import Usage
    from f1_pipelines.engineer.training.stages import Outcome

JOB, BEGAN, RESULT, FAILED = "job.json", "began.json", "result.json", "failed.txt"
GIB = 2**30


@dataclass(frozen=True)
class Job:
    """The inputs of a training. Paths are absolute, so that any process can run it.

    Attributes:
        stage: sft or grpo.
        profile: Name of the profile.
        settings: Changes to the profile's `sft` or `grpo` settings, by field or stored name.
        turns: For SFT, file with a prompt and a completion in each JSON line.
        parent: For GRPO, folder of the checkpoint to start from.
        sampler: File with the JSON of the `ScenarioSampler`.
        seed: Seed of the training.
        work: Folder of the run, to resume from and for the result.
        checkpoints: Folder of engineer checkpoints.
        weights: Folder with the weights of a hub profile; empty for the hub.
        device: cpu, cuda or cuda:1.
        precision: float32 or bfloat16.
        processes: Number of processes that train together, each on its own GPU (device cuda), or all on the CPU.
            `batch_size` in the settings is per process.
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
        """Write the work folder and return its job file.

        Keeps the folder's files, to resume from, if they come from the same job with the same profile, inputs and
        versions of environment and prompt. Deletes any others.

        Args:
            inputs: Text of the files that the job reads, by name in the work folder.
        """
        from f1_pipelines.sim.environment.prompt import PROMPT_VERSION
        from f1_pipelines.sim.scenarios import ENV_VERSION

        work, job = Path(self.work), json.dumps(asdict(self), indent=2)
        record = json.dumps({
            "job": asdict(self), "profile": asdict(profile_of(self.profile)), "env_version": ENV_VERSION,
            "prompt_version": PROMPT_VERSION,
            "inputs": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in inputs.items()}}, indent=2)
        if not (work / BEGAN).is_file() or (work / BEGAN).read_text() != record:
            (work / BEGAN).unlink(missing_ok=True)  # first, so that a half deleted folder is not resumed
            shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        (work / FAILED).unlink(missing_ok=True)
        for name, text in {**inputs, JOB: job, BEGAN: record}.items():
            (work / name).write_text(text)
        return work / JOB

    def end(self) -> None:
        """Mark the result as stored elsewhere: the same job starts over next time."""
        (Path(self.work) / BEGAN).unlink()


@dataclass(frozen=True)
class TrainingResult:
    """The result of a job."""

    checkpoint: str
    untrained: str  # SFT: checkpoint of the untrained model; GRPO: its parent
    points: list[tuple[int, str, float]]  # step, metric, value
    n_turns: int
    n_parameters: int
    seconds: float  # of all attempts, killed ones up to their last report
    tokens_per_s: float | None
    peak_memory_gib: float  # maximum of all attempts
    settings: dict[str, Any]  # by stored name

    @classmethod
    def read(cls, work: Path) -> TrainingResult:
        """Read the result from the work folder."""
        return cls(**json.loads((work / RESULT).read_text()))


def run(job: Job, reporter: Reporter | None = None) -> TrainingResult:
    """Train, store the checkpoint, and write the result to the work folder.

    Each of several processes calls this. Only the main one stores and reports; all return its result.

    Raises:
        WorldSizeError: The number of started processes is not that of the job.
        TrainingFailed: Training broke, or learnt nothing.
    """
    for name, value in (("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "0"), ("TOKENIZERS_PARALLELISM", "false")):
        os.environ.setdefault(name, value)
    if profile_of(job.profile).weights != "hub" or job.weights:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # else libraries query the hub about every model
    import torch

    from f1_pipelines.engineer.inference.cpu import use_fast_matmul
    from f1_pipelines.engineer.progress import SILENT, Reporter, explain_out_of_memory
    from f1_pipelines.engineer.training import stages
    from f1_pipelines.engineer.training.distributed import WorldSizeError, accelerator_on, own_device
    from f1_pipelines.engineer.training.resuming import Usage

    accelerator = accelerator_on(job.device)
    if accelerator.num_processes != job.processes:
        raise WorldSizeError(f"the job needs {job.processes} processes, but {accelerator.num_processes} were started; "
                             "start as many, or change `processes` of the resource `compute`")
    job = replace(job, device=own_device(accelerator, job.device))
    reporter = (reporter or Reporter(print, warn=print)) if accelerator.is_main_process else SILENT
    if job.device == "cpu":  # two threads on a busy machine are slower than one
        torch.set_num_threads(1)
    usage = Usage(Path(job.work), job.device)
    if accelerator.is_main_process:
        reporter = usage.recorded_by(reporter)
    profile = _profile_of(job)
    sampler = ScenarioSampler.from_json(Path(job.sampler).read_text())
    with explain_out_of_memory(f"{job.stage} of profile {profile.name}", job.device,
                               "set a smaller batch in its settings"), use_fast_matmul():
        outcome = (stages.sft if job.stage == "sft" else stages.grpo)(job, profile, sampler, reporter, accelerator)
    if outcome is not None:
        _store_result(job, profile, usage, outcome)
    accelerator.wait_for_everyone()
    accelerator.destroy_process_group()
    return TrainingResult.read(Path(job.work))


def _store_result(job: Job, profile: Profile, usage: Usage, outcome: Outcome) -> None:
    stored, history = outcome.checkpoint, outcome.history
    speeds = history.values("tokens_per_s")
    result = TrainingResult(
        stored.id, outcome.parent, history.points, outcome.n_turns, int(stored.meta["n_parameters"]),
        round(usage.seconds, 1), round(speeds[-1], 1) if speeds else None, round(usage.peak_bytes / GIB, 3),
        stored_settings(profile.sft if job.stage == "sft" else profile.grpo))
    temporary = Path(job.work) / f".{RESULT}"
    temporary.write_text(json.dumps(asdict(result)))
    temporary.replace(Path(job.work) / RESULT)


def _profile_of(job: Job) -> Profile:
    """The job's profile with its changes."""
    profile = replace(profile_of(job.profile), bf16=job.precision == "bfloat16")
    if job.stage == "sft":
        return replace(profile, sft=with_changes(profile.sft, job.settings))
    return replace(profile, grpo=with_changes(profile.grpo, job.settings))


def main() -> None:
    """Run the job file of the command line. Under Dagster Pipes, progress goes to the run's log."""
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
            result = run(job)
            if rank == 0:
                print(json.dumps({"checkpoint": result.checkpoint}))
    except Exception as error:  # Dagster itself sees only the exit status of a process
        _store_failure(Path(job.work) / FAILED, error)
        raise


_LOST_PEER = ("closed by peer", "reset by peer", "NCCL")  # in messages of gloo and NCCL


def _store_failure(file: Path, error: Exception) -> None:
    """Write why this process failed, unless another process failed first: its error is the cause."""
    message = f"{type(error).__name__}: {error}"
    if any(phrase in message for phrase in _LOST_PEER):
        message = ("another process of the training ended unexpectedly, usually killed for lack of memory; stop "
                   "other processes there, or use a smaller profile (F1_PROFILE=tiny)")
    with suppress(FileExistsError), file.open("x") as stream:
        stream.write(message)


if __name__ == "__main__":
    main()
