"""Faster computation of a language model on a CPU, with the same results (benchmarks.engineer_bench).

Notable choices:
- torch multiplies float32 matrices with a library (MKL) that uses AVX-512 on Intel processors only. oneDNN uses it on
  all, and torch chooses oneDNN when bfloat16 products are allowed. It would compute in bfloat16 on processors with AMX
  units, so those are excluded; elsewhere it stays exact to float32.
- With oneDNN, torch's own attention multiplies many small blocks, which costs more than it saves. So attention is
  written out here, with the query heads that share keys in one product.
- Freed memory is kept for the next step. glibc would return it to the system, which hands out zeroed pages again: that
  costs a fourth of the time.
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
_TRIM_ABOVE, _MAP_ABOVE = (-1, 1 << 28), (-3, 1 << 25)


def place_model(model: PreTrainedModel, device: str) -> PreTrainedModel:
    """Move the model to a device and choose the fastest attention there."""
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
    """Raise glibc's thresholds; other C libraries have no such setting, or need none."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for setting in (_TRIM_ABOVE, _MAP_ABOVE):
            mallopt(*setting)


@contextmanager
def use_fast_matmul(on: bool = True) -> Iterator[None]:
    """Multiply float32 matrices with oneDNN in the body, where that is as exact. No effect on other devices.

    Args:
        on: False keeps oneDNN off in the body: it compiles a kernel for each new shape, which takes longer than a
            product of few rows.
    """
    import torch

    matmul: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]  # torch's stubs lack it
    before = matmul.fp32_precision
    matmul.fp32_precision = "bf16" if on and _exact_in_onednn() else "ieee"
    try:
        yield
    finally:
        matmul.fp32_precision = before


@cache
def _exact_in_onednn() -> bool:
    import torch

    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_f")) and not capabilities.get("amx_bf16")


def attention(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
              attention_mask: torch.Tensor | None, scaling: float, **_: Any) -> tuple[torch.Tensor, None]:
    """Scaled dot-product attention (Vaswani et al. 2017), keys shared by query heads (Ainslie et al. 2023), no dropout.

    Args:
        module: Unused; part of transformers' attention interface.
        query: (rows, heads, new tokens, size).
        key, value: (rows, key heads, tokens, size).
        attention_mask: (rows, 1, new tokens, tokens), added to the scores.
        scaling: Factor of the scores.

    Returns:
        (rows, new tokens, heads, size), and None for the weights.
    """
    import torch

    rows, heads, new, size = query.shape
    groups, tokens = key.shape[1:3]
    grouped = (query * scaling).reshape(rows * groups, heads // groups * new, size)
    scores = torch.bmm(grouped, key.reshape(rows * groups, tokens, size).transpose(1, 2))
    if attention_mask is not None:
        # Under autocast scores are bfloat16 and the mask is not: its smallest number would become minus infinity.
        mask = attention_mask.clamp(min=torch.finfo(scores.dtype).min) if scores.dtype != attention_mask.dtype else \
            attention_mask
        scores.view(rows, groups, -1, new, tokens).add_(mask[:, :, None])
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(value.dtype)
    mixed = torch.bmm(weights, value.reshape(rows * groups, tokens, size))
    return mixed.view(rows, heads, new, size).transpose(1, 2).contiguous(), None
