"""Files that a killed training resumes from, and the time and memory of all its attempts.

Notable choices:
- An unfinished training resumes from the trainer's latest complete checkpoint. It also holds the log, so weights and
  metrics are of the same step.
- A finished training has its weights and metrics in one file, so nothing of it is trained or measured again.
- Our files are written under a temporary name and renamed, so each is complete or absent.
"""
from __future__ import annotations

import json
import resource
import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from f1_pipelines.engineer.progress import MetricHistory, Reporter

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FINISHED, USAGE = "finished.safetensors", "usage.json"
_STATE = "trainer_state.json"  # the last file that the trainer writes
# The latest may be incomplete, or of the last step, which can't be resumed (`_is_complete`). With several processes the
# main one deletes older checkpoints before the others have written their part of the latest.
KEPT_CHECKPOINTS = 2


def last_checkpoint(folder: Path, processes: int = 1) -> str | None:
    """Return the path of the latest complete checkpoint; None to start at step 0.

    Args:
        folder: Output folder of the trainer.
        processes: Number of processes that train together; each writes its random state.
    """
    steps = [path for path in folder.glob("checkpoint-*") if _is_complete(path, processes)]
    return str(max(steps, key=step_of)) if steps else None


def resumed_step(folder: Path, processes: int = 1) -> int:
    """Return the step at which a training here resumes: 0 for a new one, the last step for a finished one."""
    if (folder / FINISHED).is_file():
        return int(read_metadata(folder / FINISHED)["step"])
    checkpoint = last_checkpoint(folder, processes)
    return step_of(Path(checkpoint)) if checkpoint else 0


def step_of(checkpoint: Path) -> int:
    """Return the step of a trainer's checkpoint, from its name."""
    return int(checkpoint.name.rpartition("-")[2])


def remove_incomplete_checkpoints(folder: Path, processes: int = 1) -> None:
    """Delete incomplete checkpoints, so that their files don't mix with new ones."""
    for path in folder.glob("checkpoint-*"):
        if not _is_complete(path, processes):
            shutil.rmtree(path, ignore_errors=True)


def save_finished(model: PreTrainedModel, folder: Path, history: MetricHistory) -> None:
    """Store a finished training: its weights and metrics in one file."""
    save_weights(model, folder / FINISHED, {"step": str(history.last_step), "points": json.dumps(history.points)})


def restore_finished(model: PreTrainedModel, folder: Path) -> MetricHistory | None:
    """Load the weights of a finished training into the model.

    Returns:
        Its metrics; None, with the model unchanged, if the training is not finished.
    """
    if not (folder / FINISHED).is_file():
        return None
    load_weights(model, folder / FINISHED)
    points = json.loads(read_metadata(folder / FINISHED)["points"])
    return MetricHistory([(step, name, value) for step, name, value in points])


def save_weights(model: PreTrainedModel, path: Path, metadata: dict[str, str]) -> None:
    """Write the trainable weights with metadata to one file, atomically."""
    from safetensors.torch import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".growing")
    save_file({name: weights.detach().cpu().contiguous().clone() for name, weights in _trainable(model)}, temporary,
              metadata)
    temporary.replace(path)


def load_weights(model: PreTrainedModel, path: Path) -> None:
    """Load weights of `save_weights` into a model."""
    import torch
    from safetensors.torch import load_file

    stored = load_file(path)
    with torch.no_grad():
        for name, weights in _trainable(model):
            weights.copy_(stored[name])


def read_metadata(path: Path) -> dict[str, str]:
    """Read the metadata of a file of `save_weights`."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return dict(file.metadata())


class Usage:
    """Time and memory of a training over all its attempts, killed ones up to their last report."""

    def __init__(self, work: Path, device: str) -> None:
        """
        Args:
            work: Folder of the training.
            device: cpu, cuda or cuda:1, whose memory is measured.
        """
        self._file, self._device, self._started = work / USAGE, device, time.monotonic()
        self._before_s, self._before_bytes = _read_usage(self._file)

    @property
    def seconds(self) -> float:
        """Wall time of all attempts [s]."""
        return self._before_s + time.monotonic() - self._started

    @property
    def peak_bytes(self) -> int:
        """Peak memory, the maximum of all attempts [bytes]."""
        if self._device == "cpu":
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        else:
            import torch

            peak = torch.cuda.max_memory_allocated(self._device)
        return max(self._before_bytes, peak)

    def write(self) -> None:
        """Store the usage so far for the next attempt."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._file.with_suffix(".growing")
        temporary.write_text(json.dumps({"seconds": self.seconds, "peak_bytes": self.peak_bytes}))
        temporary.replace(self._file)

    def recorded_by(self, reporter: Reporter) -> Reporter:
        """Return the reporter, extended to store the usage with each report."""
        def metrics(step: int, values: dict[str, Any]) -> None:
            self.write()
            reporter.metrics(step, values)

        def info(text: str) -> None:
            self.write()
            reporter.info(text)

        return replace(reporter, info=info, metrics=metrics)


def _read_usage(file: Path) -> tuple[float, int]:
    if not file.is_file():
        return 0.0, 0
    usage = json.loads(file.read_text())
    return usage["seconds"], usage["peak_bytes"]


def _is_complete(checkpoint: Path, processes: int) -> bool:
    """Whether a checkpoint is complete and not of the last step, from which transformers 5.24 would train another one.
    """
    try:
        state = json.loads((checkpoint / _STATE).read_text())
        unfinished = 0 < state["global_step"] < state["max_steps"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    random_states = list(checkpoint.glob("rng_state*.pth"))
    return unfinished and len(random_states) >= processes and all(
        zipfile.is_zipfile(path) for path in (checkpoint / "optimizer.pt", *random_states))


def _trainable(model: PreTrainedModel) -> list[tuple[str, Any]]:
    return [(name, weights) for name, weights in model.named_parameters() if weights.requires_grad]
