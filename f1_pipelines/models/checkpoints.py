"""Checkpoints of rankers: the weights (`model.safetensors`) and `meta.json`, stored by `checkpoints.store`.

A ranker that EWC updates start from also has its Fisher information (`fisher.safetensors`, see `continual.fisher`).
The weights file includes those of the position model, which turns scores into probabilities. `meta.json` has the digest
of each file, so that loading detects damage.
"""
from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from f1_pipelines.checkpoints.store import META, CheckpointError, checkpoint_id, commit, read_meta, temporary_folder
from f1_pipelines.features.ranking import FEATURE_VERSION
from f1_pipelines.models.config import TrainConfig
from f1_pipelines.models.f1net import F1Net, F1NetConfig
from f1_pipelines.models.position_model import PositionModel
from f1_pipelines.models.ranker import Ranker, RankerConfig
from f1_pipelines.models.trained import TrainedRanker
from f1_pipelines.models.vocabulary import Vocabulary

WEIGHTS, FISHER = "model.safetensors", "fisher.safetensors"
_PLACES, _STOPS = "places.", "stops."  # prefixes of the position model's weights, followed by the stage


@dataclass(frozen=True)
class Checkpoint:
    """A stored ranker: id, folder, contents of `meta.json`, and the ranker itself."""

    id: str
    path: Path
    meta: dict[str, Any]
    trained: TrainedRanker


def save_checkpoint(
    trained: TrainedRanker, folder: Path, *, kind: str, data_version: str, parent: str | None = None,
    metrics: Mapping[str, float] | None = None, created_at: datetime | None = None,
    feature_version: str = FEATURE_VERSION, fisher: Mapping[str, Tensor] | None = None,
    learning: Mapping[str, Any] | None = None,
) -> Checkpoint:
    """Store a ranker under `folder / id`. Keeps an intact checkpoint of the same id.

    Args:
        trained: The ranker.
        folder: Checkpoint folder; created if missing.
        kind: pretrained, adapted or ewc.
        data_version: Digest of the training rows.
        parent: Id of the checkpoint that the training started from.
        metrics: Metrics to store; not part of the id.
        created_at: Time of the training, timezone-aware; now by default.
        feature_version: Version of the input features.
        fisher: Fisher information by parameter name.
        learning: Settings of the update from the parent; part of the id.
    """
    files = {WEIGHTS: _packed(_weights(trained))} | ({} if fisher is None else {FISHER: _packed(fisher)})
    meta: dict[str, Any] = {
        "kind": kind, "model": trained.config.model, "parent": parent,
        "config": asdict(trained.config), "sizes": asdict(cast("F1Net | Ranker", trained.model).config),
        "features": list(trained.config.features), "feature_version": feature_version,
        "drivers": list(trained.drivers.names), "constructors": list(trained.constructors.names),
        "standardisation": _standardisation(trained), "seasons": list(trained.seasons),
        "trained_from": trained.trained_from, "trained_through": trained.trained_through, "n_races": trained.n_races,
        "data_version": data_version, "weights_sha256": hashlib.sha256(files[WEIGHTS]).hexdigest(),
    }
    if trained.places is not None:
        meta["places_inputs"] = list(trained.places.inputs)
    if fisher is not None:
        meta["fisher_sha256"] = hashlib.sha256(files[FISHER]).hexdigest()
    if learning is not None:
        meta["learning"] = dict(learning)
    meta = json.loads(json.dumps(meta, sort_keys=True))
    meta |= {
        "id": checkpoint_id(meta), "metrics": dict(metrics or {}),
        "created_at": (created_at or datetime.now(UTC)).isoformat(),
        "code_version": {name: version(name) for name in ("f1-pipelines", "torch")},
    }
    target = folder / meta["id"]

    def is_intact(path: Path) -> bool:
        try:
            load_checkpoint(path, feature_version)
        except CheckpointError:
            return False
        return fisher is None or (path / FISHER).is_file() and (path / FISHER).read_bytes() == files[FISHER]

    with temporary_folder(folder) as temporary:
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        if not commit(temporary, target, meta, is_intact):
            return load_checkpoint(target, feature_version)
    return Checkpoint(meta["id"], target, meta, trained)


def stored_checkpoints(folder: Path) -> list[Path]:
    """Folders of all complete checkpoints, sorted by id."""
    return sorted(path.parent for path in folder.glob(f"[!.]*/{META}") if (path.parent / WEIGHTS).is_file())


def load_checkpoint(path: Path, feature_version: str = FEATURE_VERSION) -> Checkpoint:
    """Load a checkpoint onto the CPU, ready to score.

    Args:
        path: Folder of the checkpoint.
        feature_version: Version of the features to score.

    Raises:
        CheckpointError: The checkpoint is missing, damaged, or from other features or code.
    """
    try:
        weights, meta = (path / WEIGHTS).read_bytes(), read_meta(path)
    except FileNotFoundError as missing:
        raise CheckpointError(f"{path}: {Path(missing.filename).name} is missing; train or copy the checkpoint "
                              "again") from missing
    except (OSError, ValueError) as unreadable:
        raise CheckpointError(f"{path}: can't be read ({unreadable}); delete it and train again") from unreadable
    if meta.get("weights_sha256") != hashlib.sha256(weights).hexdigest():
        raise CheckpointError(f"{path}: {WEIGHTS} or {META} is damaged, their digests differ; delete the folder "
                              "and train again")
    if meta.get("feature_version") != feature_version:
        raise CheckpointError(f"{path}: trained on features of version {meta.get('feature_version')}, this code has "
                              f"version {feature_version}; train again")
    try:
        return Checkpoint(meta["id"], path, meta, _rebuild(meta, weights))
    except CheckpointError as problem:
        raise CheckpointError(f"{path}: {problem}") from None
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as problem:
        raise CheckpointError(f"{path}: does not fit the models of this code ({problem}); train again") from problem


def _rebuild(meta: dict[str, Any], weights: bytes) -> TrainedRanker:
    config: dict[str, Any]
    sizes: dict[str, Any]
    config, sizes = ({name: tuple(value) if isinstance(value, list) else value for name, value in part.items()}
                     for part in (meta["config"], meta["sizes"]))
    with torch.random.fork_rng(devices=[]):  # loaded weights replace the random ones
        model: F1Net | Ranker = (
            F1Net(F1NetConfig(**sizes)) if meta["model"] == "f1net_reference" else Ranker(RankerConfig(**sizes)))
    tensors = load(weights)
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise CheckpointError("weights that are not finite can't score; train again")
    model.load_state_dict({name: tensor for name, tensor in tensors.items() if not name.startswith((_PLACES, _STOPS))})
    places = None
    if "places_inputs" in meta:
        heads, stops = ({name.removeprefix(prefix): tensor.numpy() for name, tensor in tensors.items()
                           if name.startswith(prefix)} for prefix in (_PLACES, _STOPS))
        if heads.keys() != stops.keys():  # until 2026-11-30
            raise ValueError("its probabilities do not include how often cars stop")
        places = PositionModel(tuple(meta["places_inputs"]), heads, stops)
    return TrainedRanker(
        model.eval(), TrainConfig(**config), Vocabulary(tuple(meta["drivers"])),
        Vocabulary(tuple(meta["constructors"])), tuple(meta["seasons"]), meta["trained_from"],
        meta["trained_through"], meta["n_races"], places)


def _weights(trained: TrainedRanker) -> dict[str, Tensor]:
    """Weights of the model and of its position model."""
    by_prefix = {} if trained.places is None else {_PLACES: trained.places.weights, _STOPS: trained.places.stops}
    places = {prefix + stage: torch.from_numpy(weights) for prefix, by_stage in by_prefix.items()
              for stage, weights in by_stage.items()}
    return {**trained.model.state_dict(), **places}


def _standardisation(trained: TrainedRanker) -> dict[str, Any]:
    """How inputs are scaled, for information only: the model's weights or code contain it."""
    if isinstance(trained.model, F1Net):
        columns = zip(trained.config.features, trained.model.mean.tolist(), trained.model.spread.tolist(), strict=True)
        return {name: {"mean": mean, "spread": spread} for name, mean, spread in columns}
    return {"within": "race"}


def _packed(tensors: Mapping[str, Tensor]) -> bytes:
    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
