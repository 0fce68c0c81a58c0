"""The registered model `f1-ranker`: one version per checkpoint, and the aliases `candidate` and `champion`.

The files of a version are those of the checkpoint, `model.safetensors` and `meta.json`: no pickle, no code that runs on
load. The warehouse decides which checkpoint is champion (`promotion`); the aliases follow, after an outage too.
"""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from f1_pipelines.tracking.store import OpenStore

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

MODEL = "f1-ranker"
CHAMPION, CANDIDATE = "champion", "candidate"
_FILES = "checkpoint"  # the folder in the run's artifacts


def register(store: OpenStore, checkpoint: str, folder: Path, run: str | None = None) -> ModelVersion:
    """Return the version of a checkpoint; register it if there is none.

    Args:
        store: The open store.
        checkpoint: Id of the checkpoint.
        folder: Folder of its files.
        run: The MLflow run that trained it. None, for example after an outage, creates a separate run.

    Raises:
        FileNotFoundError: The folder is missing.
    """
    client = store.client
    versions = client.search_model_versions(f"name = '{MODEL}' and tags.checkpoint = '{checkpoint}'")
    if versions:
        return versions[0]
    if not folder.is_dir():  # MLflow would register an empty version
        raise FileNotFoundError(f"{folder} is missing, so checkpoint {checkpoint} can't be registered; train it again")
    run_id = run or client.create_run(store.experiment, run_name=f"checkpoint {checkpoint}").info.run_id
    client.log_artifacts(run_id, str(folder), _FILES)
    if not run:
        client.set_terminated(run_id, "FINISHED")
    if not client.search_registered_models(f"name = '{MODEL}'"):
        client.create_registered_model(MODEL)
    return client.create_model_version(MODEL, f"runs:/{run_id}/{_FILES}", run_id=run_id,
                                       tags={"checkpoint": checkpoint})


def follow(store: OpenStore, aliases: Mapping[str, str | None], folder: Path) -> None:
    """Point each alias at the version of its checkpoint; remove an alias without a checkpoint.

    Args:
        store: The open store.
        aliases: Checkpoint id by alias.
        folder: Folder of all checkpoints.
    """
    for alias, checkpoint in aliases.items():
        if checkpoint is not None:
            version = register(store, checkpoint, folder / checkpoint).version
            store.client.set_registered_model_alias(MODEL, alias, version)
        elif store.client.search_registered_models(f"name = '{MODEL}'"):
            store.client.delete_registered_model_alias(MODEL, alias)
