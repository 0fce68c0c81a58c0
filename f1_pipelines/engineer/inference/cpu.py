"""How a language model computes on a CPU: the same numbers in less time (benchmarks.engineer_bench).

Notable choices:
- torch multiplies float32 matrices with a library that uses AVX-512 on its maker's processors alone. oneDNN does on
  all, and is asked for by allowing it products of bfloat16. It would take them where a processor has units for them
  (AMX), so there it is not asked; elsewhere it stays exact to float32.
- Within that, torch's own attention asks oneDNN for each of many small blocks, which costs more than it saves; so
  attention is written out here, the query heads that share keys in one product.
- What a step frees is kept for the next. glibc gives it back to the system, which then hands out the same pages anew,
  zeroed: a fourth of the time.
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
# Of glibc's `mallopt`: when freed memory at the end of the heap goes back to the system, and what comes from it alone.
_TRIM_ABOVE, _MAP_ABOVE = (-1, 1 << 28), (-3, 1 << 25)


def place_model(model: PreTrainedModel, device: str) -> PreTrainedModel:
    """The model on that device, with the attention that is quickest there."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    if device == "cpu":
        AttentionInterface.register(ATTENTION, attention)
        AttentionMaskInterface.register(ATTENTION, eager_mask)
        model.set_attn_implementation(ATTENTION)
        _keep_freed_memory()
    return cast("PreTrainedModel", cast("Any", model).to(device))


def _keep_freed_memory() -> None:
    """Where the C library is glibc; others have no such setting, or need none."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for setting in (_TRIM_ABOVE, _MAP_ABOVE):
            mallopt(*setting)


@contextmanager
def use_fast_matmul(on: bool = True) -> Iterator[None]:
    """Within it, float32 matrices are multiplied by oneDNN, where that is as exact; or not. Other devices don't mind.

    oneDNN makes a kernel for each shape that it meets, which takes longer than a product of few rows.
    """
    import torch

    backend = cast("Any", torch.backends.mkldnn).matmul
    before = backend.fp32_precision
    backend.fp32_precision = "bf16" if on and _exact_in_onednn() else "ieee"
    try:
        yield
    finally:
        backend.fp32_precision = before


@cache
def _exact_in_onednn() -> bool:
    import torch

    has = torch.cpu.get_capabilities()
    return bool(has.get("avx512_f")) and not has.get("amx_bf16")


def attention(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
              attention_mask: torch.Tensor | None, scaling: float, **_: Any) -> tuple[torch.Tensor, None]:
    """Scaled dot-product attention (Vaswani et al. 2017), keys shared by query heads (Ainslie et al. 2023), no dropout.

    Args:
        module: Not asked; transformers calls every attention so.
        query: (rows, heads, new tokens, size)
        key, value: (rows, key heads, tokens, size)
        attention_mask: (rows, 1, new tokens, tokens) that is added to scores.
        scaling: Factor of the scores.

    Returns:
        (rows, new tokens, heads, size), and no weights.
    """
    import torch

    rows, heads, new, size = query.shape
    groups, tokens = key.shape[1:3]
    queries = (query * scaling).reshape(rows * groups, heads // groups * new, size)
    scores = torch.bmm(queries, key.reshape(rows * groups, tokens, size).transpose(1, 2))
    if attention_mask is not None:
        # Under autocast scores are bfloat16 and the mask is not: its least number would be minus infinity there.
        least = attention_mask.clamp(min=torch.finfo(scores.dtype).min) if scores.dtype != attention_mask.dtype else \
            attention_mask
        scores.view(rows, groups, -1, new, tokens).add_(least[:, :, None])
    shares = scores.softmax(dim=-1, dtype=torch.float32).to(value.dtype)
    attended = torch.bmm(shares, value.reshape(rows * groups, tokens, size))
    return attended.view(rows, heads, new, size).transpose(1, 2).contiguous(), None
