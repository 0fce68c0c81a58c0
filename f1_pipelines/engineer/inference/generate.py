"""Completions of many prompts at once.

transformers' own `generate` keeps every row in the batch until the longest completion ends, and copies the whole cache
for each token. Here a row leaves the batch with its last token: most commands have two tokens and some have twenty, so
most of that work is saved (benchmarks.engineer_bench). On a CPU prompts are processed in portions up to
`COMMON_LENGTH` tokens, then the unfinished rows of all portions continue together. The beginning that the prompts of a
race share is computed once (`prefix_cache`). A test holds that the tokens are those of `generate`.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from f1_pipelines.engineer.inference.prefix_cache import (
    NO_PREFIX,
    CachedPrefix,
    DecodingState,
    concatenate,
    padded_length,
    prefill,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

TOKENS_PER_BATCH = 2048  # prompt tokens that a CPU processes at a time; activations of more don't fit its cache
COMMON_LENGTH = 2  # tokens of most completions, the end included


def generate(model: PreTrainedModel, prompts: Sequence[Sequence[int]], pad_id: int, eos_id: int, max_new_tokens: int,
             temperature: float = 0.0, count: int = 1,
             prefixes: Sequence[CachedPrefix] | None = None) -> list[list[int]]:
    """Token ids that a causal model puts after each prompt, the end token included if it came.

    Args:
        model: In evaluation mode, on any device.
        prompts: Token ids of each prompt.
        pad_id: Id of a token to pad with; it is masked.
        eos_id: Id of the token that ends a completion.
        max_new_tokens: A completion is cut there.
        temperature: 0 takes the likeliest token, else tokens are drawn with torch's generator.
        count: Completions of each prompt, side by side in the result; the prompt is processed once for all of them.
        prefixes: Cached prefix of each prompt.
    """
    import torch

    known = prefixes or [NO_PREFIX] * len(prompts)
    completions: list[list[int]] = [[] for _ in range(len(prompts) * count)]

    def next_token(state: DecodingState) -> DecodingState:
        """Add a token to each row; return the rows that are not finished."""
        tokens = _sample_tokens(state.logits, temperature)
        for row, token in zip(state.rows.tolist(), tokens.tolist(), strict=True):
            completions[row].append(token)
        full = len(completions[state.rows[0]]) >= max_new_tokens
        unfinished = tokens[:0] if full else (tokens != eos_id).nonzero().ravel()
        return state.select(unfinished).advance(model, tokens[unfinished])

    n_new = [len(prompt) - prefix.shared_length(prompt) for prompt, prefix in zip(prompts, known, strict=True)]
    unfinished = []
    with torch.inference_mode():
        for batch in _batches(n_new) if model.device.type == "cpu" else [slice(0, len(prompts))]:
            state = prefill(model, prompts[batch], known[batch], pad_id).repeat(count)
            state.rows += batch.start * count
            for _ in range(COMMON_LENGTH):
                state = next_token(state) if len(state.rows) else state
            unfinished.append(state)
        state = concatenate(unfinished)
        while len(state.rows):
            state = next_token(state)
    return completions


def _batches(n_new: Sequence[int]) -> Iterator[slice]:
    """Slices of prompts with at most `TOKENS_PER_BATCH` new tokens each, padding included."""
    first = 0
    for last in range(1, len(n_new) + 1):
        if last == len(n_new) or (last + 1 - first) * padded_length(max(n_new[first:last + 1])) > TOKENS_PER_BATCH:
            yield slice(first, last)
            first = last


def _sample_tokens(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """(rows,) a token for each row of (rows, vocabulary)."""
    if not temperature:
        return logits.argmax(dim=-1)
    return (logits.float() / temperature).softmax(dim=-1).multinomial(1).ravel()
