"""Pretrainings that an evaluation need not repeat: those of `pretrained_ranker`, and its own of earlier runs."""
from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from f1_pipelines.checkpoints.store import META, CheckpointError
from f1_pipelines.models.checkpoints import load_checkpoint, save_checkpoint, stored_checkpoints
from f1_pipelines.models.config import TrainConfig
from f1_pipelines.models.continual.fisher import load_fisher
from f1_pipelines.models.continual.update import LearntState

FOLDER = "evaluation"  # folder beside the checkpoints: nothing predicts by what lies in there


@dataclass(frozen=True)
class PretrainingCache:
    """Pretrained rankers with their Fisher under a folder of checkpoints."""

    folder: Path

    def find(self, config: TrainConfig, data_version: str) -> LearntState | None:
        """The ranker trained by exactly these settings on exactly these rows, if one is stored intact.

        Args:
            config: Its dial settings, seasons included.
            data_version: Of its rows (`features.history.data_version`).
        """
        wanted = json.loads(json.dumps(asdict(config)))
        for path in (*stored_checkpoints(self.folder), *stored_checkpoints(self.folder / FOLDER)):
            try:
                meta = json.loads((path / META).read_text())
                if (meta["kind"], meta["config"], meta["data_version"]) == ("pretrained", wanted, data_version):
                    checkpoint = load_checkpoint(path)
                    return LearntState(checkpoint.trained, load_fisher(checkpoint))
            except (CheckpointError, OSError, ValueError, KeyError):
                continue  # what is damaged or of other code is trained again
        return None

    def keep(self, known: LearntState, data_version: str) -> None:
        """Store one that an evaluation made, apart from those that are predicted by."""
        save_checkpoint(known.trained, self.folder / FOLDER, kind="pretrained", data_version=data_version,
                        fisher=known.fisher)
