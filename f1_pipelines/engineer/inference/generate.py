"""Batched generation.

transformers' own `generate` keeps every row in the batch until the longest completion ends, and copies the whole cache
for each token. Here a row leaves the batch with its last token: most commands have two tokens and some have twenty, so
most of that work is saved (benchmarks.engineer_bench). A CPU processes prompts in batches up to `COMMON_LENGTH` tokens
of completion, then continues the unfinished rows of all batches together. The prefix that the prompts of a race share
is computed once (`prefix_cache`). A test compares the tokens with those of transformers.
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

TOKENS_PER_BATCH = 2048  # prompt tokens that a CPU processes at a time; the activations of more exceed its cache
COMMON_LENGTH = 2  # tokens of most completions, including the end token


def generate(model: PreTrainedModel, prompts: Sequence[Sequence[int]], pad_id: int, eos_id: int, max_new_tokens: int,
             temperature: float = 0.0, count: int = 1,
             prefixes: Sequence[CachedPrefix] | None = None) -> list[list[int]]:
    """Generate completions as token ids, including the end token if it was generated.

    Args:
        model: Causal language model in evaluation mode, on any device.
        prompts: Token ids of each prompt.
        pad_id: Id of the padding token; it is masked.
        eos_id: Id of the token that ends a completion.
        max_new_tokens: Longer completions are truncated.
        temperature: 0 is greedy; otherwise tokens are sampled with torch's generator.
        count: Completions of each prompt, adjacent in the result. The prompt is processed once for all of them.
        prefixes: Cached prefix of each prompt.
    """
    import torch

    cached = prefixes or [NO_PREFIX] * len(prompts)
    completions: list[list[int]] = [[] for _ in range(len(prompts) * count)]

    def next_token(state: DecodingState) -> DecodingState:
        """Add a token to each row and return the unfinished rows."""
        tokens = _sample_tokens(state.logits, temperature)
        for row, token in zip(state.rows.tolist(), tokens.tolist(), strict=True):
            completions[row].append(token)
        at_limit = len(completions[state.rows[0]]) >= max_new_tokens
        unfinished = tokens[:0] if at_limit else (tokens != eos_id).nonzero().ravel()
        return state.select(unfinished).advance(model, tokens[unfinished])

    n_new = [len(prompt) - prefix.shared_length(prompt) for prompt, prefix in zip(prompts, cached, strict=True)]
    unfinished = []
    with torch.inference_mode():
        for batch in _batches(n_new) if model.device.type == "cpu" else [slice(0, len(prompts))]:
            state = prefill(model, prompts[batch], cached[batch], pad_id).repeat(count)
            state.rows += batch.start * count
            for _ in range(COMMON_LENGTH):
                state = next_token(state) if len(state.rows) else state
            unfinished.append(state)
        state = concatenate(unfinished)
        while len(state.rows):
            state = next_token(state)
    return completions


def _batches(n_new: Sequence[int]) -> Iterator[slice]:
    """Slices of the prompts with at most `TOKENS_PER_BATCH` new tokens each, including padding."""
    start = 0
    for stop in range(1, len(n_new) + 1):
        if stop == len(n_new) or (stop + 1 - start) * padded_length(max(n_new[start:stop + 1])) > TOKENS_PER_BATCH:
            yield slice(start, stop)
            start = stop


def _sample_tokens(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """Sample a token for each row. logits (rows, vocabulary) -> (rows,)."""
    if not temperature:
        return logits.argmax(dim=-1)
    return (logits.float() / temperature).softmax(dim=-1).multinomial(1).ravel()
