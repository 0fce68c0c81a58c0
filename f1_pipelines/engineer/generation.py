"""Answers to many prompts at once.

transformers' own `generate` keeps every row in the batch until the longest answer is done, and copies what it remembers
of all of them at each token. Here a row leaves with its last token: most commands are three tokens long and a few are
twenty, so most of that work is saved (benchmarks.engineer_bench). What a race's prompts begin with is read once
(`reading`). The tokens are the same, which a test holds.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from f1_pipelines.engineer.reading import NOTHING, Opening, read

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def answers(model: PreTrainedModel, prompts: Sequence[Sequence[int]], pad: int, end: int, longest: int,
            temperature: float = 0.0, count: int = 1, openings: Sequence[Opening] | None = None) -> list[list[int]]:
    """Token ids that a causal model puts after each prompt, its end token included where it came.

    Args:
        model: In evaluation mode, on any device.
        prompts: Token ids of each.
        pad: Id of a token to pad with; it is never looked at.
        end: Id of the token that ends an answer.
        longest: Tokens of an answer; a longer one is cut.
        temperature: 0 takes the likeliest token, else tokens are drawn with torch's generator.
        count: Answers to each prompt, side by side; the prompt is read once for all of them.
        openings: What the model has read of each prompt before.
    """
    import torch

    found: list[list[int]] = [[] for _ in range(len(prompts) * count)]
    with torch.inference_mode():
        told = read(model, prompts, openings or [NOTHING] * len(prompts), pad)
        memory = told.memory
        if count > 1:
            memory.batch_repeat_interleave(count)
        seen, place, logits = (one.repeat_interleave(count, dim=0) for one in (told.seen, told.place, told.logits))
        rows = torch.arange(len(found), device=model.device)
        for last in range(longest):
            tokens = _picked(logits, temperature)
            for row, token in zip(rows.tolist(), tokens.tolist(), strict=True):
                found[row].append(token)
            going = (tokens != end).nonzero().ravel()
            if last == longest - 1 or not len(going):
                break
            if len(going) < len(rows):
                memory.batch_select_indices(going)
                rows, tokens, seen, place = rows[going], tokens[going], seen[going], place[going]
            seen = torch.cat([seen, seen.new_ones(len(rows), 1)], dim=1)
            logits = model(input_ids=tokens[:, None], attention_mask=seen, position_ids=place, use_cache=True,
                           cache=memory).logits[:, -1]
            place = place + 1
    return found


def _picked(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """(rows,) a token for each row of (rows, vocabulary)."""
    if not temperature:
        return logits.argmax(dim=-1)
    return (logits.float() / temperature).softmax(dim=-1).multinomial(1).ravel()
