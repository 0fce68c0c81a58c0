"""Which step of a GRPO run is kept: the best on races of the validation split, which no report ever uses."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from f1_pipelines.engineer.lockstep import play_together
from f1_pipelines.engineer.scenes import Scenes
from f1_pipelines.engineer.turns import race_keys
from f1_pipelines.sim.environment.observation import Observation

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from f1_pipelines.engineer.engineer import Engineer
    from f1_pipelines.engineer.progress import Listener


class BestSoFar:
    """Examines a policy now and then and keeps its weights when it is the best yet.

    The start counts as step 0 and is never kept: what came of the practice is published, better or not, and the
    promotion decides. `seen` is what was seen in the last examination.
    """

    def __init__(self, model: PreTrainedModel, scenes: Scenes, races: int, path: Path,
                 listener: Listener) -> None:
        """
        Args:
            model: Its trainable weights are kept.
            scenes: What the races are made of.
            races: Of each trained family.
            path: File for the best weights.
            listener: Takes a line for each examination.
        """
        self._model, self._path, self._listener = model, path, listener
        self._scenarios = [scenes.scenario(*key) for key in race_keys("validation", races)]
        self._best, self.step = -np.inf, 0
        if path.is_file():  # of a run that is gone on with
            told = _told(path)
            self._best, self.step = float(told["score"]), int(told["step"])
        self.seen: list[Observation] = []

    def examine(self, step: int, engineer: Engineer) -> float:
        """Mean score of the engineer as it is; its weights are kept if it is the best yet."""
        races = play_together(self._scenarios, engineer.commands)
        self.seen = [seen for race in races for seen in race.seen]
        score = float(np.mean([race.info["score"] for race in races]))
        self._listener.line(f"step {step}: {score:.3f} on {len(races)} validation races")
        if step == 0 or score <= self._best:
            return score
        from safetensors.torch import save_file

        self._best, self.step = score, step
        growing = self._path.with_suffix(".growing")
        save_file({name: weights.detach().cpu().contiguous().clone() for name, weights in self._trained()},
                  growing, {"score": repr(score), "step": str(step)})
        growing.replace(self._path)
        return score

    def restore(self) -> None:
        """Put the best weights back; without an examination after the start they stay as they are."""
        if not self.step:
            return
        import torch
        from safetensors.torch import load_file

        kept = load_file(self._path)
        with torch.no_grad():
            for name, weights in self._trained():
                weights.copy_(kept[name])

    def _trained(self) -> list[tuple[str, object]]:
        return [(name, weights) for name, weights in self._model.named_parameters() if weights.requires_grad]


def _told(path: Path) -> dict[str, str]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return file.metadata()
