"""A language model on the pit wall: observations in, commands out, many races at a time."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from f1_pipelines.engineer.inference.generate import generate
from f1_pipelines.engineer.inference.prefix_cache import PrefixCache
from f1_pipelines.engineer.prompting.rendering import Rendering

if TYPE_CHECKING:
    from transformers import PreTrainedModel


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
        self._openings = PrefixCache(model, rendering, batch)

    def commands(self, observations: Sequence[str], temperature: float = 0.0) -> list[str]:
        """What it calls for each, raw. Greedy at temperature 0, else drawn with torch's generator."""
        return [self.rendering.command(ids) for [ids] in self.draws(observations, 1, temperature)]

    def draws(self, observations: Sequence[str], count: int, temperature: float) -> list[list[list[int]]]:
        """Token ids of so many answers to each, the end of the turn included where it came."""
        tokenizer, prompts_at_once = self.rendering.tokenizer, max(self._batch // count, 1)
        prompts = [self.rendering.prompt_ids(text) for text in observations]
        sampled: list[list[list[int]]] = [[]] * len(prompts)
        was_training = self.model.training
        self.model.eval()
        prefixes = self._openings.of(observations)
        rest = [len(prompt) - opening.shared(prompt) for opening, prompt in zip(prefixes, prompts, strict=True)]
        order = sorted(range(len(prompts)), key=lambda k: rest[k])
        for first in range(0, len(order), prompts_at_once):
            at = order[first:first + prompts_at_once]
            drawn = generate(self.model, [prompts[k] for k in at], tokenizer.pad_token_id, tokenizer.eos_token_id,
                             self._longest, temperature, count, [prefixes[k] for k in at])
            for row, k in enumerate(at):
                sampled[k] = drawn[row * count:(row + 1) * count]
        self.model.train(was_training)
        return sampled
