"""Answers to many prompts at once.

transformers' own `generate` keeps every row in the batch until the longest answer is done, and copies what it remembers
of all of them at each token. Here a row leaves with its last token: most commands are two tokens long and a few are
twenty, so most of that work is saved (benchmarks.engineer_bench). A CPU reads some prompts at a time and takes them as
far as most answers go; the few that are not done go on together. What a race's prompts begin with is read once
(`reading`). The tokens are the same, which a test holds.
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

TOKENS_PER_BATCH = 2048  # tokens that a CPU reads at a time: what comes of more does not stay in its cache
COMMON_LENGTH = 2  # tokens of most answers, the end included


def generate(model: PreTrainedModel, prompts: Sequence[Sequence[int]], pad: int, end: int, longest: int,
             temperature: float = 0.0, count: int = 1,
             prefixes: Sequence[CachedPrefix] | None = None) -> list[list[int]]:
    """Token ids that a causal model puts after each prompt, its end token included where it came.

    Args:
        model: In evaluation mode, on any device.
        prompts: Token ids of each.
        pad: Id of a token to pad with; it is never looked at.
        end: Id of the token that ends an answer.
        longest: Tokens of an answer; a longer one is cut.
        temperature: 0 takes the likeliest token, else tokens are drawn with torch's generator.
        count: Answers to each prompt, side by side; the prompt is read once for all of them.
        prefixes: What the model has read of each prompt before.
    """
    import torch

    known = prefixes or [NO_PREFIX] * len(prompts)
    completions: list[list[int]] = [[] for _ in range(len(prompts) * count)]

    def said(decoding: DecodingState) -> DecodingState:
        """What is not answered yet, a token later."""
        tokens = _sample_tokens(decoding.logits, temperature)
        for row, token in zip(decoding.rows.tolist(), tokens.tolist(), strict=True):
            completions[row].append(token)
        going = (tokens != end).nonzero().ravel() if len(completions[decoding.rows[0]]) < longest else tokens[:0]
        return decoding.only(going).after(model, tokens[going])

    new, left = [len(prompt) - one.shared(prompt) for prompt, one in zip(prompts, known, strict=True)], []
    with torch.inference_mode():
        for batch in _batches(new) if model.device.type == "cpu" else [slice(0, len(prompts))]:
            decoding = prefill(model, prompts[batch], known[batch], pad).repeated(count)
            decoding.rows += batch.start * count
            for _ in range(COMMON_LENGTH):
                decoding = said(decoding) if len(decoding.rows) else decoding
            left.append(decoding)
        decoding = concatenate(left)
        while len(decoding.rows):
            decoding = said(decoding)
    return completions


def _batches(new: Sequence[int]) -> Iterator[slice]:
    """Prompts with so many new tokens in portions of `TOKENS_PER_BATCH`, padding included."""
    first = 0
    for last in range(1, len(new) + 1):
        if last == len(new) or (last + 1 - first) * padded_length(max(new[first:last + 1])) > TOKENS_PER_BATCH:
            yield slice(first, last)
            first = last


def _sample_tokens(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """(rows,) a token for each row of (rows, vocabulary)."""
    if not temperature:
        return logits.argmax(dim=-1)
    return (logits.float() / temperature).softmax(dim=-1).multinomial(1).ravel()
