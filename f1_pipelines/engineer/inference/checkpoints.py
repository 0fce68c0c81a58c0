"""Checkpoints of engineers: weights, tokenizer and `meta.json`, stored by `checkpoints.store`.

The folder has transformers' format (`model.safetensors`, `config.json`, `tokenizer.json`), so any tool can load it;
adapters are already merged. `meta.json` holds digests of weights and tokenizer, and the versions of environment and
prompt that the model was trained on. A checkpoint of other versions is refused: it was trained on other text.
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
    """A stored engineer: id, folder and content of `meta.json`."""

    id: str
    path: Path
    meta: dict[str, Any]


def save_engineer(model: PreTrainedModel, rendering: Rendering, folder: Path,
                  meta: Mapping[str, Any]) -> EngineerCheckpoint:
    """Store an engineer under `folder / id`. Saving an engineer again keeps the stored checkpoint.

    Args:
        model: Model without an adapter.
        rendering: Rendering with its tokenizer.
        folder: Folder of engineer checkpoints, created if missing.
        meta: Description and origin: stage, profile, parent, training_seed, settings, scenes_version, n_turns.
    """
    with temporary_folder(folder) as temporary:
        model.save_pretrained(temporary)
        rendering.tokenizer.save_pretrained(temporary)
        identity = {**meta, "env_version": ENV_VERSION, "prompt_version": PROMPT_VERSION, "system": rendering.system,
                    "weights_sha256": _weights_sha256(temporary),
                    "tokenizer_sha256": sha256_of([temporary / TOKENIZER])}
        name = checkpoint_id(identity)
        stored_meta = identity | {
            "id": name, "created_at": datetime.now(UTC).isoformat(),
            "code_version": {package: version(package) for package in ("f1-pipelines", "torch", "transformers")}}
        target = folder / name
        if not commit(temporary, target, stored_meta, lambda path: not damage_of(path)):
            stored_meta = read_meta(target)
    return EngineerCheckpoint(name, target, stored_meta)


def read_checkpoint(path: Path) -> EngineerCheckpoint:
    """Read a checkpoint's `meta.json` and check its digests and versions.

    Raises:
        CheckpointError: The checkpoint is missing, damaged, or of another version of environment or prompt.
    """
    problem = damage_of(path)
    if problem:
        raise CheckpointError(f"{path}: {problem}; delete the folder and train again")
    meta = read_meta(path)
    for name, current in (("env_version", ENV_VERSION), ("prompt_version", PROMPT_VERSION)):
        if meta.get(name) != current:
            raise CheckpointError(f"{path}: trained on {name} {meta.get(name)}, this code has {current}; train again")
    return EngineerCheckpoint(meta["id"], path, meta)


def finite_weights(path: Path) -> bool:
    """Whether all weights of a checkpoint are finite. Loads one tensor at a time."""
    from safetensors import safe_open

    for file in sorted(path.glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            if not all(bool(tensors.get_tensor(name).isfinite().all()) for name in tensors.keys()):  # noqa: SIM118
                return False
    return True


def load_engineer(path: Path, device: str = "cpu", bf16: bool = False) -> Engineer:
    """Load an engineer in evaluation mode.

    Args:
        path: Folder of the checkpoint.
        device: Torch device, for example cpu, cuda or cuda:1.
        bf16: Use bfloat16 weights instead of float32.

    Raises:
        CheckpointError: See `read_checkpoint`; or transformers can't read the files.
    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from f1_pipelines.engineer.inference.engineer import Engineer
    from f1_pipelines.engineer.prompting.rendering import Rendering

    meta = read_checkpoint(path).meta
    profile = profile_of(meta["profile"])
    try:
        # A checkpoint may be untrusted: load no pickle and run no code from its folder.
        data_only = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(path, **data_only)
        model = AutoModelForCausalLM.from_pretrained(path, use_safetensors=True, **data_only,
                                                     dtype=torch.bfloat16 if bf16 else torch.float32)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(f"{path}: transformers can't read it ({str(error).splitlines()[0][:200]}); train "
                              "again") from error
    model = place_model(model, device).train(False)
    return Engineer(model, Rendering(tokenizer, meta["system"]), profile.max_new_tokens, profile.generation_batch)


def damage_of(path: Path) -> str:
    """Describe the damage to a checkpoint's files; empty if they are intact."""
    try:
        meta, weights, tokenizer = read_meta(path), _weights_sha256(path), sha256_of([path / TOKENIZER])
    except FileNotFoundError:
        return f"{META}, weights or {TOKENIZER} is missing"
    except (OSError, ValueError) as error:
        return f"can't be read ({error})"
    if weights != meta.get("weights_sha256"):
        return f"the weights do not match {META}, one of them is damaged"
    return "" if tokenizer == meta.get("tokenizer_sha256") else f"{TOKENIZER} is not the one it was trained with"


def _weights_sha256(folder: Path) -> str:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(folder / "model.safetensors")
    return sha256_of(files)
