"""Selects the best step of a GRPO training, by its score on validation races, which are never reported."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import selection_races
from f1_pipelines.engineer.training.resuming import load_weights, read_metadata, save_weights
from f1_pipelines.sim.environment.observation import Observation

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from f1_pipelines.engineer.inference.engineer import Engineer
    from f1_pipelines.engineer.progress import Reporter


class BestCheckpoint:
    """Evaluates a policy and stores its weights if its score is the best so far.

    Step 0 is evaluated but never stored: a GRPO engineer always comes from a GRPO step, and the acceptance test decides
    whether it is better. `observations` are those of the last evaluation.
    """

    def __init__(self, model: PreTrainedModel, sampler: ScenarioSampler, races: int, path: Path,
                 reporter: Reporter, resumed_at: int | None = None) -> None:
        """
        Args:
            model: The model whose trainable weights are stored.
            sampler: Makes the races.
            races: Races of each trained family.
            path: File for the best weights, kept from a killed training. The previous best stays beside it until the
                next evaluation; by then the trainer has a checkpoint of the best step.
            reporter: Receives a line for each evaluation.
            resumed_at: Step at which the training resumes. Deletes weights of later steps, which are trained again.
                None keeps them.
        """
        self._model, self._path, self._reporter = model, path, reporter
        self._previous = path.with_name(f"{path.stem}.previous{path.suffix}")
        self._scenarios = [sampler.scenario(*key) for key in selection_races(races)]
        self._best, self.step = -np.inf, 0
        if resumed_at is not None:
            self._delete_later_than(resumed_at)
        if path.is_file():
            metadata = read_metadata(path)
            self._best, self.step = float(metadata["score"]), int(metadata["step"])
        self.observations: list[Observation] = []

    def evaluate(self, step: int, engineer: Engineer) -> float:
        """Return the engineer's mean score, and store its weights if it is the best so far."""
        rollouts = batched_rollout(self._scenarios, engineer.commands)
        self.observations = [observation for rollout in rollouts for observation in rollout.observations]
        score = float(np.mean([rollout.info["score"] for rollout in rollouts]))
        self._reporter.info(f"step {step}: {score:.3f} on {len(rollouts)} validation races")
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
        """Load the best weights. Without an evaluation after step 0, change nothing."""
        if self.step:
            load_weights(self._model, self._path)

    def _delete_later_than(self, step: int) -> None:
        for path in (self._path, self._previous):
            if path.is_file() and int(read_metadata(path)["step"]) > step:
                path.unlink()
        if self._previous.is_file() and not self._path.is_file():
            self._previous.replace(self._path)
