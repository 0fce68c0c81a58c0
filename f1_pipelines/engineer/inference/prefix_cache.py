"""Keys and values of prompt prefixes, computed once for all laps of a race.

All prompts of a model begin with the explanation of the commands; those of a race continue with the same briefing. The
keys and values of such a prefix are cached, so that a lap costs only its new tokens. A test compares the completions
with those of whole prompts.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from f1_pipelines.engineer.inference.cpu import use_fast_matmul
from f1_pipelines.sim.environment.prompt import opening_of

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache, PreTrainedModel

    from f1_pipelines.engineer.prompting.rendering import Rendering

MAX_BYTES = 1 << 30  # size of a model's cached prefixes
STEP = 8  # widths are multiples of this many tokens: oneDNN compiles a kernel for each new shape


@dataclass(frozen=True)
class CachedPrefix:
    """The first tokens of some prompts, with their keys and values.

    Attributes:
        ids: Token ids.
        keys_values: (tokens, 2 x layers, heads, head size), each layer's key, then its value; None without tokens.
    """

    ids: Sequence[int] = ()
    keys_values: torch.Tensor | None = None

    def shared_length(self, prompt: Sequence[int]) -> int:
        """Number of tokens that the prompt shares. Excludes its last token, whose logits are always needed."""
        limit = min(len(self.ids), len(prompt) - 1)
        return next((k for k in range(limit) if self.ids[k] != prompt[k]), limit)


NO_PREFIX = CachedPrefix()


def padded_length(tokens: int) -> int:
    """Width of a batch whose longest text has this many tokens."""
    return -(-tokens // STEP) * STEP


@dataclass
class DecodingState:
    """Processed texts and the logits of their next tokens.

    Attributes:
        cache: Keys and values of all tokens.
        attention_mask: (texts, tokens), 1 for a token, 0 for padding.
        position_ids: (texts, 1), position of the next token.
        logits: (texts, vocabulary), of the next token.
        rows: (texts,), index of each text among all texts of the call.
    """

    cache: DynamicCache
    attention_mask: torch.Tensor
    position_ids: torch.Tensor
    logits: torch.Tensor
    rows: torch.Tensor

    def repeat(self, count: int) -> DecodingState:
        """Repeat each text `count` times, adjacent to each other."""
        if count > 1:
            self.cache.batch_repeat_interleave(count)
        mask, positions, logits = (
            tensor.repeat_interleave(count, dim=0) for tensor in (self.attention_mask, self.position_ids, self.logits))
        return DecodingState(self.cache, mask, positions, logits, self.rows.new_tensor(range(len(mask))))

    def select(self, indices: torch.Tensor) -> DecodingState:
        """Select the texts at these indices and drop the others from the cache."""
        if len(indices) < len(self.rows):
            self.cache.batch_select_indices(indices)
        return DecodingState(self.cache, self.attention_mask[indices], self.position_ids[indices],
                             self.logits[indices], self.rows[indices])

    def advance(self, model: PreTrainedModel, tokens: torch.Tensor) -> DecodingState:
        """Process one more token of each text."""
        import torch

        if not len(tokens):
            return self
        mask = torch.cat([self.attention_mask, self.attention_mask.new_ones(len(tokens), 1)], dim=1)
        with use_fast_matmul(False):  # each pair of text count and token count is a new shape
            output = model(input_ids=tokens[:, None], attention_mask=mask, position_ids=self.position_ids,
                           use_cache=True, cache=self.cache)
        return DecodingState(self.cache, mask, self.position_ids + 1, output.logits[:, -1], self.rows)


def prefill(model: PreTrainedModel, prompts: Sequence[Sequence[int]], prefixes: Sequence[CachedPrefix],
            pad_id: int) -> DecodingState:
    """Process prompts.

    Args:
        model: Causal language model in evaluation mode, on any device.
        prompts: Token ids of each prompt; similar lengths need the least padding.
        prefixes: Prefix of each prompt, cached from the same model; `NO_PREFIX` for none.
        pad_id: Id of the padding token; it is masked.
    """
    import torch

    n_shared = [prefix.shared_length(prompt) for prefix, prompt in zip(prefixes, prompts, strict=True)]
    rests = [list(prompt[k:]) for prompt, k in zip(prompts, n_shared, strict=True)]
    prefix_width, width = padded_length(max(n_shared)), padded_length(max(map(len, rests)))
    ids = torch.tensor([[pad_id] * (width - len(rest)) + rest for rest in rests], device=model.device)
    mask = torch.tensor([[0] * (prefix_width - k) + [1] * k + [0] * (width - len(rest)) + [1] * len(rest)
                         for k, rest in zip(n_shared, rests, strict=True)], device=model.device)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, prefix_width:]
    with use_fast_matmul():
        output = model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, logits_to_keep=1,
                       cache=_padded_cache(prefixes, n_shared, prefix_width) if prefix_width else None)
    return DecodingState(output.cache, mask, positions[:, -1:] + 1, output.logits[:, -1],
                         torch.arange(len(rests), device=model.device))


def concatenate(states: Sequence[DecodingState]) -> DecodingState:
    """Join states as if their texts had been processed in one batch. States without texts are left out."""
    import torch
    from torch.nn.functional import pad
    from transformers import DynamicCache

    states = [state for state in states if len(state.rows)] or states[:1]
    if len(states) == 1:
        return states[0]
    width = max(state.attention_mask.shape[1] for state in states)
    padding, cache = [width - state.attention_mask.shape[1] for state in states], DynamicCache()
    for index, layers in enumerate(zip(*(_keys_values(state.cache) for state in states), strict=True)):
        keys, values = (torch.cat([pad(tensor, (0, 0, k, 0)) for tensor, k in zip(tensors, padding, strict=True)])
                        for tensors in zip(*layers, strict=True))
        cache.update(keys, values, index)
    return DecodingState(
        cache, torch.cat([pad(state.attention_mask, (k, 0)) for state, k in zip(states, padding, strict=True)]),
        torch.cat([state.position_ids for state in states]), torch.cat([state.logits for state in states]),
        torch.cat([state.rows for state in states]))


class PrefixCache:
    """Processed prefixes of one model.

    A full cache drops the prefixes of finished races. If it is still full, a prompt uses the prefix that all prompts of
    the model share.
    """

    def __init__(self, model: PreTrainedModel, rendering: Rendering, batch: int, max_bytes: int = MAX_BYTES) -> None:
        """
        Args:
            model: Must be in evaluation mode when `lookup` is called.
            rendering: Rendering with its tokenizer.
            batch: Number of prefixes processed at a time.
            max_bytes: Size limit; one batch may exceed it.
        """
        self._model, self._rendering, self._batch, self._max_bytes = model, rendering, batch, max_bytes
        self._prefixes: dict[str, CachedPrefix] = {}  # by opening; "" is the prefix that all prompts share
        self._weights: tuple[object, ...] = ()

    def lookup(self, observations: Sequence[str]) -> list[CachedPrefix]:
        """Get the prefix of each observation's prompt, computing those that are missing."""
        model = self._model
        # torch counts in-place changes of each tensor: after a training step the cached keys and values are outdated.
        weights = (sum(parameter._version for parameter in model.parameters()), model.dtype, model.device)
        if weights != self._weights:
            self._prefixes, self._weights = {}, weights
        if "" not in self._prefixes:
            self._add([""], NO_PREFIX)
        openings = [opening_of(observation) for observation in observations]
        in_use = dict.fromkeys(["", *openings])
        missing = [opening for opening in in_use if opening not in self._prefixes]
        for start in range(0, len(missing), self._batch):
            if self._full():
                self._prefixes = {opening: prefix for opening, prefix in self._prefixes.items() if opening in in_use}
            if self._full():
                break
            self._add(missing[start:start + self._batch], self._prefixes[""])
        return [self._prefixes.get(opening, self._prefixes[""]) for opening in openings]

    def _full(self) -> bool:
        return sum(prefix.keys_values.nbytes for prefix in self._prefixes.values()
                   if prefix.keys_values is not None) >= self._max_bytes

    def _add(self, openings: Sequence[str], common: CachedPrefix) -> None:
        import torch

        # These prompts end differently from those of whole observations; `shared_length` counts only the equal tokens.
        prompts = [self._rendering.prompt_ids(opening) for opening in openings]
        with torch.inference_mode():
            state = prefill(self._model, prompts, [common] * len(prompts),
                            cast(int, self._rendering.tokenizer.pad_token_id))
            stacked = torch.stack([tensor for layer in _keys_values(state.cache) for tensor in layer], dim=2)
            for opening, ids, row, mask in zip(openings, prompts, stacked, state.attention_mask.bool(), strict=True):
                self._prefixes[opening] = CachedPrefix(ids, row[:, :, mask].permute(2, 1, 0, 3).contiguous())


def _keys_values(cache: DynamicCache) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values of each layer, (texts, heads, tokens, head size)."""
    return [(layer.keys, layer.values) for layer in cache.layers]  # type: ignore[misc,union-attr]  # full attention


def _padded_cache(prefixes: Sequence[CachedPrefix], lengths: Sequence[int], width: int) -> DynamicCache:
    """A cache with the first tokens of each prefix, `lengths` many, left-padded to `width`."""
    import torch
    from torch.nn.utils.rnn import pad_sequence
    from transformers import DynamicCache

    template = next(prefix.keys_values for prefix in prefixes if prefix.keys_values is not None)
    rows = [template[:0] if prefix.keys_values is None else prefix.keys_values[:k]
            for prefix, k in zip(prefixes, lengths, strict=True)]
    stacked = pad_sequence(rows, batch_first=True, padding_side="left")
    stacked = torch.nn.functional.pad(stacked, (0, 0, 0, 0, 0, 0, width - stacked.shape[1], 0)).transpose(1, 3)
    cache = DynamicCache()
    for layer in range(template.shape[1] // 2):
        cache.update(stacked[:, :, 2 * layer], stacked[:, :, 2 * layer + 1], layer)
    return cache
