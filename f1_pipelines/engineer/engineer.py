"""A language model on the pit wall: observations in, commands out, many races at a time."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from f1_pipelines.engineer.rendering import Rendering

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache, PreTrainedModel


class Engineer:
    """A model with its rendering. It answers each observation alone; what it said before is in the notes."""

    def __init__(self, model: PreTrainedModel, rendering: Rendering, max_new_tokens: int = 40, batch: int = 64) -> None:
        """
        Args:
            model: Causal language model, on any device.
            rendering: Of its tokenizer.
            max_new_tokens: A command longer than this is cut, and then does not parse.
            batch: Prompts generated for at a time.
        """
        self.model, self.rendering = model, rendering
        self._longest, self._batch = max_new_tokens, batch

    def commands(self, observations: Sequence[str], temperature: float = 0.0) -> list[str]:
        """What it calls for each, raw. Greedy at temperature 0, else drawn with torch's generator."""
        return [self.rendering.command(ids) for ids in self.completions(
            [self.rendering.prompt_ids(text) for text in observations], temperature)]

    def completions(self, prompts: Sequence[Sequence[int]], temperature: float = 0.0) -> list[list[int]]:
        """Token ids generated after each prompt, the end of the turn included where it came."""
        order = sorted(range(len(prompts)), key=lambda k: len(prompts[k]))
        found: list[list[int]] = [[]] * len(prompts)
        for first in range(0, len(order), self._batch):
            few = order[first:first + self._batch]
            for k, ids in zip(few, self._generate([prompts[k] for k in few], temperature), strict=True):
                found[k] = ids
        return found

    def draws(self, prompts: Sequence[Sequence[int]], count: int, temperature: float) -> list[list[list[int]]]:
        """Token ids of so many answers to each prompt, which is read once."""
        order, few = sorted(range(len(prompts)), key=lambda k: len(prompts[k])), max(self._batch // count, 1)
        found: list[list[list[int]]] = [[]] * len(prompts)
        for first in range(0, len(order), few):
            at = order[first:first + few]
            drawn = self._generate([prompts[k] for k in at], temperature, count)
            for row, k in enumerate(at):
                found[k] = drawn[row * count:(row + 1) * count]
        return found

    def _generate(self, prompts: Sequence[Sequence[int]], temperature: float, count: int = 1) -> list[list[int]]:
        """`count` answers to each prompt, side by side."""
        import torch

        tokenizer, longest = self.rendering.tokenizer, max(map(len, prompts))
        ids = torch.full((len(prompts), longest), tokenizer.pad_token_id, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt):] = torch.tensor(prompt)
            mask[row, longest - len(prompt):] = 1
        drawn = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0} if temperature else \
            {"do_sample": False, "temperature": None, "top_k": None, "top_p": None}
        was_training = self.model.training
        self.model.eval()
        ids, mask, read = ids.to(self.model.device), mask.to(self.model.device), {}
        with torch.inference_mode():
            if count > 1:
                read = {"cache": self._read(ids[:, :-1], mask[:, :-1], count)}
                ids, mask = ids.repeat_interleave(count, dim=0), mask.repeat_interleave(count, dim=0)
            out = self.model.generate(
                input_ids=ids, attention_mask=mask, max_new_tokens=self._longest, pad_token_id=tokenizer.pad_token_id,
                eos_token_id=tokenizer.eos_token_id, use_cache=True, **read, **drawn)
        self.model.train(was_training)
        return [self._until_end(row) for row in out[:, longest:].tolist()]

    def _read(self, ids: torch.Tensor, mask: torch.Tensor, count: int) -> DynamicCache:
        """What the model remembers of prompts, `count` times each."""
        places = (mask.cumsum(dim=1) - 1).clamp(min=0)
        read = self.model(input_ids=ids, attention_mask=mask, position_ids=places, use_cache=True,
                          logits_to_keep=1).past_key_values
        read.batch_repeat_interleave(count)
        return read

    def _until_end(self, ids: list[int]) -> list[int]:
        end = self.rendering.tokenizer.eos_token_id
        return ids[:ids.index(end) + 1] if end in ids else ids
