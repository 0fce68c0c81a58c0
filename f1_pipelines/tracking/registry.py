"""The registered model `f1-ranker`: a version for each checkpoint, and the aliases `candidate` and `champion`.

A version's files are the checkpoint's own, `model.safetensors` and `meta.json`: no pickle, nothing that runs on load.
The warehouse decides who is champion (`promotion`); the aliases follow it, and catch up after an outage.
"""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from f1_pipelines.tracking.store import Opened

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

MODEL = "f1-ranker"
CHAMPION, CANDIDATE = "champion", "candidate"
_FILES = "checkpoint"  # the folder in the run's artifacts


def register(to: Opened, checkpoint: str, folder: Path, run: str | None = None) -> ModelVersion:
    """The version of this checkpoint; made where there is none.

    Args:
        to: The store.
        checkpoint: Its id.
        folder: Its files.
        run: MLflow run that made it. Without one, for instance when the store was away then, it gets one of its own.
    """
    versions = _versions(to, checkpoint)
    if versions:
        return versions[0]
    if not folder.is_dir():  # MLflow would register an empty version
        raise FileNotFoundError(f"{folder} is gone, so checkpoint {checkpoint} can't be registered; train it again")
    ours = run or to.client.create_run(to.experiment, run_name=f"checkpoint {checkpoint}").info.run_id
    to.client.log_artifacts(ours, str(folder), _FILES)
    if not run:
        to.client.set_terminated(ours, "FINISHED")
    if not to.client.search_registered_models(f"name = '{MODEL}'"):
        to.client.create_registered_model(MODEL)
    return to.client.create_model_version(MODEL, f"runs:/{ours}/{_FILES}", run_id=ours,
                                          tags={"checkpoint": checkpoint})


def follow(to: Opened, aliases: Mapping[str, str | None], folder: Path) -> None:
    """Let each alias name the version of its checkpoint; of none where it has none.

    Args:
        to: The store.
        aliases: Checkpoint by alias.
        folder: Where checkpoints lie.
    """
    for alias, checkpoint in aliases.items():
        if checkpoint is not None:
            version = register(to, checkpoint, folder / checkpoint).version
            to.client.set_registered_model_alias(MODEL, alias, version)
        elif to.client.search_registered_models(f"name = '{MODEL}'"):
            to.client.delete_registered_model_alias(MODEL, alias)


def _versions(to: Opened, checkpoint: str) -> list[ModelVersion]:
    return list(to.client.search_model_versions(f"name = '{MODEL}' and tags.checkpoint = '{checkpoint}'"))
