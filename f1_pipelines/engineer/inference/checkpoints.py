"""Checkpoints of engineers: weights, tokenizer and `meta.json`, stored by `checkpoints.store`.

The folder is what transformers writes and reads (`model.safetensors`, `config.json`, `tokenizer.json`), so any tool
loads it; adapters are merged before. `meta.json` holds digests of weights and tokenizer, and the versions of
environment and prompt that the model was trained on. A checkpoint of other versions is refused: it never saw such a
text.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from f1_pipelines.checkpoints.store import (
    META,
    CheckpointError,
    checkpoint_id,
    commit,
    read_meta,
    sha256_of,
    temporary_folder,
)
from f1_pipelines.engineer.inference.cpu import place_model
from f1_pipelines.engineer.profiles import profile_of
from f1_pipelines.sim.environment.prompt import PROMPT_VERSION
from f1_pipelines.sim.scenarios import ENV_VERSION

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from f1_pipelines.engineer.inference.engineer import Engineer
    from f1_pipelines.engineer.prompting.rendering import Rendering

TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class EngineerCheckpoint:
    """A stored engineer: id, folder and all of `meta.json`."""

    id: str
    path: Path
    meta: dict[str, Any]


def save_engineer(model: PreTrainedModel, rendering: Rendering, folder: Path,
                  meta: Mapping[str, Any]) -> EngineerCheckpoint:
    """Store an engineer under `folder / id`; the same one twice is stored once.

    Args:
        model: Without an adapter.
        rendering: Of its tokenizer.
        folder: Where checkpoints of engineers lie; made when it is not there.
        meta: stage, profile, parent, training_seed, settings, scenes_version, n_turns: what it is and came from.
    """
    with temporary_folder(folder) as growing:
        model.save_pretrained(growing)
        rendering.tokenizer.save_pretrained(growing)
        meaning = {**meta, "env_version": ENV_VERSION, "prompt_version": PROMPT_VERSION, "system": rendering.system,
                   "weights_sha256": _weights_sha256(growing), "tokenizer_sha256": sha256_of([growing / TOKENIZER])}
        name = checkpoint_id(meaning)
        stored = meaning | {
            "id": name, "created_at": datetime.now(UTC).isoformat(),
            "code_version": {package: version(package) for package in ("f1-pipelines", "torch", "transformers")}}
        target = folder / name
        if not commit(growing, target, stored, lambda path: not damage_of(path)):
            stored = read_meta(target)
    return EngineerCheckpoint(name, target, stored)


def read_checkpoint(path: Path) -> EngineerCheckpoint:
    """What a checkpoint says of itself, after its digests and versions were checked.

    Raises:
        CheckpointError: It is absent, damaged, or of another environment or prompt.
    """
    problem = damage_of(path)
    if problem:
        raise CheckpointError(f"{path}: {problem}; delete the folder and train again")
    meta = read_meta(path)
    for name, now in (("env_version", ENV_VERSION), ("prompt_version", PROMPT_VERSION)):
        if meta.get(name) != now:
            raise CheckpointError(f"{path}: trained on {name} {meta.get(name)}, this code has {now}; train again")
    return EngineerCheckpoint(meta["id"], path, meta)


def finite_weights(path: Path) -> bool:
    """Whether every weight of a checkpoint is a finite number; one tensor at a time is in memory."""
    from safetensors import safe_open

    for file in sorted(path.glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            if not all(bool(tensors.get_tensor(name).isfinite().all()) for name in tensors.keys()):  # noqa: SIM118
                return False
    return True


def load_engineer(path: Path, device: str = "cpu", bf16: bool = False) -> Engineer:
    """An engineer ready to call races.

    Args:
        path: Folder of the checkpoint.
        device: cpu, cuda or cuda:1.
        bf16: Weights in bfloat16.

    Raises:
        CheckpointError: See `read_checkpoint`; or its files are none that transformers can read.
    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from f1_pipelines.engineer.inference.engineer import Engineer
    from f1_pipelines.engineer.prompting.rendering import Rendering

    meta = read_checkpoint(path).meta
    profile = profile_of(meta["profile"])
    try:
        # A checkpoint is data, whoever it comes from: no pickle, and no code that lies beside it.
        data_only = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(path, **data_only)
        model = AutoModelForCausalLM.from_pretrained(path, use_safetensors=True, **data_only,
                                                     dtype=torch.bfloat16 if bf16 else torch.float32)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as problem:
        raise CheckpointError(f"{path}: transformers can't read it ({str(problem).splitlines()[0][:200]}); train "
                              "again") from problem
    model = place_model(model, device).train(False)
    return Engineer(model, Rendering(tokenizer, meta["system"]), profile.max_new_tokens, profile.generation_batch)


def damage_of(path: Path) -> str:
    """What is wrong with a checkpoint's files, empty for nothing."""
    try:
        meta, weights, tokenizer = read_meta(path), _weights_sha256(path), sha256_of([path / TOKENIZER])
    except FileNotFoundError:
        return f"{META}, weights or {TOKENIZER} is not there"
    except (OSError, ValueError) as problem:
        return f"can't be read ({problem})"
    if weights != meta.get("weights_sha256"):
        return f"the weights are not what {META} says they are, one of them is damaged"
    return "" if tokenizer == meta.get("tokenizer_sha256") else f"{TOKENIZER} is another one than it was trained with"


def _weights_sha256(folder: Path) -> str:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(folder / "model.safetensors")
    return sha256_of(files)
