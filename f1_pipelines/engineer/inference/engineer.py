"""A language model as a race engineer: observations in, commands out, many races at a time."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from f1_pipelines.engineer.inference.generate import generate
from f1_pipelines.engineer.inference.prefix_cache import PrefixCache
from f1_pipelines.engineer.prompting.rendering import Rendering

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Engineer:
    """A model and its rendering. It answers each observation independently: the notes there hold earlier commands."""

    def __init__(self, model: PreTrainedModel, rendering: Rendering, max_new_tokens: int = 40, batch: int = 64) -> None:
        """
        Args:
            model: Causal language model, on any device.
            rendering: Rendering with its tokenizer.
            max_new_tokens: Longer outputs are truncated and do not parse.
            batch: Number of completions generated at a time.
        """
        self.model, self.rendering = model, rendering
        self._max_new_tokens, self._batch = max_new_tokens, batch
        self._prefixes = PrefixCache(model, rendering, batch)

    def commands(self, observations: Sequence[str], temperature: float = 0.0) -> list[str]:
        """Generate a raw output for each observation: greedy at temperature 0, else sampled with torch's generator."""
        return [self.rendering.command(ids) for [ids] in self.sample_ids(observations, 1, temperature)]

    def sample_ids(self, observations: Sequence[str], count: int, temperature: float) -> list[list[list[int]]]:
        """Generate `count` completions for each observation; ids include the end-of-turn token if it was generated."""
        tokenizer, batch = self.rendering.tokenizer, max(self._batch // count, 1)
        prompts = [self.rendering.prompt_ids(text) for text in observations]
        samples: list[list[list[int]]] = [[]] * len(prompts)
        was_training = self.model.training
        self.model.train(False)
        prefixes = self._prefixes.lookup(observations)
        n_new = [len(prompt) - prefix.shared_length(prompt) for prefix, prompt in zip(prefixes, prompts, strict=True)]
        by_length = sorted(range(len(prompts)), key=lambda k: n_new[k])
        for start in range(0, len(by_length), batch):
            indices = by_length[start:start + batch]
            completions = generate(
                self.model, [prompts[k] for k in indices], cast(int, tokenizer.pad_token_id),
                cast(int, tokenizer.eos_token_id), self._max_new_tokens, temperature, count,
                [prefixes[k] for k in indices])
            for row, k in enumerate(indices):
                samples[k] = completions[row * count:(row + 1) * count]
        self.model.train(was_training)
        return samples
