"""Faster computation of a language model on a CPU, with the same results (benchmarks.engineer_bench).

Notable choices:
- By default torch multiplies float32 matrices with MKL, which uses AVX-512 on Intel processors only. oneDNN uses it on
  all, and torch chooses oneDNN when bfloat16 products are allowed. It would compute in bfloat16 on processors with AMX
  units, so those are excluded; elsewhere it stays exact to float32.
- With oneDNN, torch's own attention multiplies many small blocks, which costs more than it saves. The attention here
  puts the query heads that share keys in one product.
- Freed memory is kept for the next step. glibc would return it to the system and get zeroed pages back, which takes a
  quarter of the time.
"""
from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

ATTENTION = "grouped"
# Parameter and value of glibc's `mallopt`: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD [bytes].
_TRIM_THRESHOLD, _MMAP_THRESHOLD = (-1, 1 << 28), (-3, 1 << 25)


def place_model(model: PreTrainedModel, device: str) -> PreTrainedModel:
    """Move the model to a device and select its fastest attention there."""
    import torch
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    if device == "cpu":
        AttentionInterface.register(ATTENTION, attention)
        AttentionMaskInterface.register(ATTENTION, eager_mask)
        model.set_attn_implementation(ATTENTION)
        _keep_freed_memory()
    cast("torch.nn.Module", model).to(torch.device(device))  # transformers wraps `to` with the wrong type
    return model


def _keep_freed_memory() -> None:
    """Raise glibc's thresholds; other C libraries lack the setting or don't need it."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for setting in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            mallopt(*setting)


@contextmanager
def use_fast_matmul(enabled: bool = True) -> Iterator[None]:
    """Multiply float32 matrices with oneDNN in the context, if it is as exact. Other devices are unaffected.

    Args:
        enabled: False turns oneDNN off in the context: it compiles a kernel for each new shape, which takes longer than
            a product of few rows.
    """
    import torch

    matmul: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]  # torch's stubs lack it
    previous = matmul.fp32_precision
    matmul.fp32_precision = "bf16" if enabled and _exact_in_onednn() else "ieee"
    try:
        yield
    finally:
        matmul.fp32_precision = previous


@cache
def _exact_in_onednn() -> bool:
    import torch

    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_f")) and not capabilities.get("amx_bf16")


def attention(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
              attention_mask: torch.Tensor | None, scaling: float, **_: Any) -> tuple[torch.Tensor, None]:
    """Scaled dot-product attention (Vaswani et al. 2017) with grouped queries (Ainslie et al. 2023), without dropout.

    Args:
        module: Unused; part of transformers' attention interface.
        query: (rows, heads, new tokens, size).
        key, value: (rows, key heads, tokens, size).
        attention_mask: (rows, 1, new tokens, tokens), added to the scores.
        scaling: Factor of the scores.

    Returns:
        The output (rows, new tokens, heads, size), and None instead of the weights.
    """
    import torch

    rows, heads, new, size = query.shape
    groups, tokens = key.shape[1:3]
    grouped_query = (query * scaling).reshape(rows * groups, heads // groups * new, size)
    scores = torch.bmm(grouped_query, key.reshape(rows * groups, tokens, size).transpose(1, 2))
    if attention_mask is not None:
        # Under autocast the scores are bfloat16: the smallest number of a float32 mask would become minus infinity.
        mask = attention_mask.clamp(min=torch.finfo(scores.dtype).min) if scores.dtype != attention_mask.dtype else \
            attention_mask
        scores.view(rows, groups, -1, new, tokens).add_(mask[:, :, None])
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(value.dtype)
    output = torch.bmm(weights, value.reshape(rows * groups, tokens, size))
    return output.view(rows, heads, new, size).transpose(1, 2).contiguous(), None
