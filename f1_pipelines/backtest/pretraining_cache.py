"""Stored pretrainings that an evaluation reuses: those of the asset `pretrained_ranker` and of earlier evaluations."""
from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from f1_pipelines.checkpoints.store import META, CheckpointError
from f1_pipelines.models.checkpoints import load_checkpoint, save_checkpoint, stored_checkpoints
from f1_pipelines.models.config import TrainConfig
from f1_pipelines.models.continual.fisher import load_fisher
from f1_pipelines.models.continual.update import LearntState

FOLDER = "evaluation"  # folder beside the checkpoints; predictions never use its contents


@dataclass(frozen=True)
class PretrainingCache:
    """Pretrained rankers with their Fisher information in a checkpoint folder."""

    folder: Path

    def load(self, config: TrainConfig, data_version: str) -> LearntState | None:
        """Load the ranker trained with exactly these hyperparameters and rows; None if no intact one is stored.

        Args:
            config: Hyperparameters, seasons included.
            data_version: Version of the training rows (`features.history.data_version`).
        """
        stored_config = json.loads(json.dumps(asdict(config)))
        for path in (*stored_checkpoints(self.folder), *stored_checkpoints(self.folder / FOLDER)):
            try:
                meta = json.loads((path / META).read_text())
                if (meta["kind"], meta["config"], meta["data_version"]) == ("pretrained", stored_config, data_version):
                    checkpoint = load_checkpoint(path)
                    return LearntState(checkpoint.trained, load_fisher(checkpoint))
            except (CheckpointError, OSError, ValueError, KeyError):
                continue  # damaged or from other code: train it again
        return None

    def save(self, known: LearntState, data_version: str) -> None:
        """Store a pretraining of an evaluation, apart from the checkpoints that predictions use."""
        save_checkpoint(known.trained, self.folder / FOLDER, kind="pretrained", data_version=data_version,
                        fisher=known.fisher)
