"""Which step of a GRPO run is kept: the best on races of the validation split, which no report ever uses."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import race_keys
from f1_pipelines.engineer.training.resuming import load_weights, read_metadata, save_weights
from f1_pipelines.sim.environment.observation import Observation

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from f1_pipelines.engineer.inference.engineer import Engineer
    from f1_pipelines.engineer.progress import Reporter


class BestCheckpoint:
    """Examines a policy now and then and keeps its weights when it is the best yet.

    The start counts as step 0 and is never kept: what came of the practice is published, better or not, and the
    promotion decides. `seen` is what was seen in the last examination.
    """

    def __init__(self, model: PreTrainedModel, sampler: ScenarioSampler, races: int, path: Path,
                 reporter: Reporter, resumed_at: int | None = None) -> None:
        """
        Args:
            model: Its trainable weights are kept.
            sampler: What the races are made of.
            races: Of each trained family.
            path: File for the best weights; that of a killed run is taken over. The best before it stays beside it
                until the next examination, by when the trainer has a checkpoint of the step that is best now.
            reporter: Takes a line for each examination.
            resumed_at: Step that the training resumes from. Weights of a later one are dropped, since that step is
                made again; None keeps them.
        """
        self._model, self._path, self._reporter = model, path, reporter
        self._previous = path.with_name(f"{path.stem}.previous{path.suffix}")
        self._scenarios = [sampler.scenario(*key) for key in race_keys("validation", races)]
        self._best, self.step = -np.inf, 0
        if resumed_at is not None:
            self._drop_later_than(resumed_at)
        if path.is_file():
            metadata = read_metadata(path)
            self._best, self.step = float(metadata["score"]), int(metadata["step"])
        self.seen: list[Observation] = []

    def evaluate(self, step: int, engineer: Engineer) -> float:
        """Mean score of the engineer as it is; its weights are kept if it is the best yet."""
        races = batched_rollout(self._scenarios, engineer.commands)
        self.seen = [seen for race in races for seen in race.seen]
        score = float(np.mean([race.info["score"] for race in races]))
        self._reporter.line(f"step {step}: {score:.3f} on {len(races)} validation races")
        if step == 0:
            return score
        self._previous.unlink(missing_ok=True)
        if score > self._best:
            self._best, self.step = score, step
            if self._path.is_file():
                self._previous.hardlink_to(self._path)
            save_weights(self._model, self._path, {"score": repr(score), "step": str(step)})
        return score

    def restore(self) -> None:
        """Put the best weights back; without an examination after the start they stay as they are."""
        if self.step:
            load_weights(self._model, self._path)

    def _drop_later_than(self, step: int) -> None:
        for path in (self._path, self._previous):
            if path.is_file() and int(read_metadata(path)["step"]) > step:
                path.unlink()
        if self._previous.is_file() and not self._path.is_file():
            self._previous.replace(self._path)
