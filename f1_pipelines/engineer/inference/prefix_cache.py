"""Keys and values of prompt prefixes, computed once for all laps of a race.

The explained commands begin every prompt of a model, the briefing every prompt of a race. The keys and values of such a
prefix are cached and put before the rest of each lap's prompt, so that a lap costs only its new tokens. A test holds
that the model's output is that of the whole prompt.
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

MAX_BYTES = 1 << 30  # of a model's cached prefixes
STEP = 8  # tokens: widths are multiples of it, since oneDNN compiles a kernel for each new shape


@dataclass(frozen=True)
class CachedPrefix:
    """The first tokens of prompts, with their keys and values.

    Attributes:
        ids: Token ids.
        keys_values: (tokens, 2 x layers, heads, head size), key and value of each layer in turn; None without tokens.
    """

    ids: Sequence[int] = ()
    keys_values: torch.Tensor | None = None

    def shared_length(self, prompt: Sequence[int]) -> int:
        """How many tokens the prompt shares; never its last one, whose logits are needed in any case."""
        most = min(len(self.ids), len(prompt) - 1)
        return next((k for k in range(most) if self.ids[k] != prompt[k]), most)


NO_PREFIX = CachedPrefix()


def padded_length(tokens: int) -> int:
    """The width of a batch whose longest text has this many tokens."""
    return -(-tokens // STEP) * STEP


@dataclass
class DecodingState:
    """Texts that the model has processed, and the logits of their next token.

    Attributes:
        cache: Keys and values of all tokens.
        attention_mask: (texts, tokens) 1 for a token, 0 for padding.
        position_ids: (texts, 1) position of the next token.
        logits: (texts, vocabulary) of the next token.
        rows: (texts,) index of each text among all texts of the call.
    """

    cache: DynamicCache
    attention_mask: torch.Tensor
    position_ids: torch.Tensor
    logits: torch.Tensor
    rows: torch.Tensor

    def repeat(self, count: int) -> DecodingState:
        """Each text `count` times, side by side."""
        if count > 1:
            self.cache.batch_repeat_interleave(count)
        mask, positions, logits = (
            tensor.repeat_interleave(count, dim=0) for tensor in (self.attention_mask, self.position_ids, self.logits))
        return DecodingState(self.cache, mask, positions, logits, self.rows.new_tensor(range(len(mask))))

    def select(self, indices: torch.Tensor) -> DecodingState:
        """The texts at these indices; the cache drops the others."""
        if len(indices) < len(self.rows):
            self.cache.batch_select_indices(indices)
        return DecodingState(self.cache, self.attention_mask[indices], self.position_ids[indices],
                             self.logits[indices], self.rows[indices])

    def advance(self, model: PreTrainedModel, tokens: torch.Tensor) -> DecodingState:
        """The state after one more token of each text."""
        import torch

        if not len(tokens):
            return self
        mask = torch.cat([self.attention_mask, self.attention_mask.new_ones(len(tokens), 1)], dim=1)
        with use_fast_matmul(False):  # there are as many shapes as pairs of text count and token count
            output = model(input_ids=tokens[:, None], attention_mask=mask, position_ids=self.position_ids,
                           use_cache=True, cache=self.cache)
        return DecodingState(self.cache, mask, self.position_ids + 1, output.logits[:, -1], self.rows)


def prefill(model: PreTrainedModel, prompts: Sequence[Sequence[int]], prefixes: Sequence[CachedPrefix],
            pad_id: int) -> DecodingState:
    """Process prompts.

    Args:
        model: Causal, in evaluation mode, on any device.
        prompts: Token ids of each prompt; neighbours of similar length cost least.
        prefixes: Cached prefix of each prompt, of the same model; `NO_PREFIX` for none.
        pad_id: Id of a token to pad with; it is masked.
    """
    import torch

    shared = [prefix.shared_length(prompt) for prefix, prompt in zip(prefixes, prompts, strict=True)]
    new = [list(prompt[k:]) for prompt, k in zip(prompts, shared, strict=True)]
    before, width = padded_length(max(shared)), padded_length(max(map(len, new)))
    ids = torch.tensor([[pad_id] * (width - len(tokens)) + tokens for tokens in new], device=model.device)
    mask = torch.tensor([[0] * (before - k) + [1] * k + [0] * (width - len(tokens)) + [1] * len(tokens)
                         for k, tokens in zip(shared, new, strict=True)], device=model.device)
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, before:]
    with use_fast_matmul():
        output = model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, logits_to_keep=1,
                       cache=_padded_cache(prefixes, shared, before) if before else None)
    return DecodingState(output.cache, mask, positions[:, -1:] + 1, output.logits[:, -1],
                         torch.arange(len(new), device=model.device))


def concatenate(states: Sequence[DecodingState]) -> DecodingState:
    """States as one, as if their texts had been processed in one batch. States without a text are left out."""
    import torch
    from torch.nn.functional import pad
    from transformers import DynamicCache

    states = [state for state in states if len(state.rows)] or states[:1]
    if len(states) == 1:
        return states[0]
    width = max(state.attention_mask.shape[1] for state in states)
    missing, cache = [width - state.attention_mask.shape[1] for state in states], DynamicCache()
    for index, layers in enumerate(zip(*(_keys_values(state.cache) for state in states), strict=True)):
        keys, values = (torch.cat([pad(tensor, (0, 0, k, 0)) for tensor, k in zip(tensors, missing, strict=True)])
                        for tensors in zip(*layers, strict=True))
        cache.update(keys, values, index)
    return DecodingState(
        cache, torch.cat([pad(state.attention_mask, (k, 0)) for state, k in zip(states, missing, strict=True)]),
        torch.cat([state.position_ids for state in states]), torch.cat([state.logits for state in states]),
        torch.cat([state.rows for state in states]))


class PrefixCache:
    """The prefixes that a model has processed.

    Prefixes of finished races make room for others. Where there is no room, a prompt uses the prefix that all prompts
    of the model share.
    """

    def __init__(self, model: PreTrainedModel, rendering: Rendering, batch: int, max_bytes: int = MAX_BYTES) -> None:
        """
        Args:
            model: In evaluation mode when `lookup` is called.
            rendering: Rendering of its tokenizer.
            batch: Prefixes processed at a time.
            max_bytes: Size of the cache; it may hold one batch more.
        """
        self._model, self._rendering, self._batch, self._max_bytes = model, rendering, batch, max_bytes
        self._prefixes: dict[str, CachedPrefix] = {}  # by opening; "" is what all prompts share
        self._weights: tuple[object, ...] = ()

    def lookup(self, observations: Sequence[str]) -> list[CachedPrefix]:
        """The prefix of each observation's prompt."""
        model = self._model
        # torch counts in-place changes of each tensor: after a training step the cached keys and values are outdated.
        weights = (sum(parameter._version for parameter in model.parameters()), model.dtype, model.device)
        if weights != self._weights:
            self._prefixes, self._weights = {}, weights
        if "" not in self._prefixes:
            self._add([""], NO_PREFIX)
        openings = [opening_of(observation) for observation in observations]
        needed = dict.fromkeys(["", *openings])
        new = [opening for opening in needed if opening not in self._prefixes]
        for first in range(0, len(new), self._batch):
            if self._full():
                self._prefixes = {opening: prefix for opening, prefix in self._prefixes.items() if opening in needed}
            if self._full():
                break
            self._add(new[first:first + self._batch], self._prefixes[""])
        return [self._prefixes.get(opening, self._prefixes[""]) for opening in openings]

    def _full(self) -> bool:
        return sum(prefix.keys_values.nbytes for prefix in self._prefixes.values()
                   if prefix.keys_values is not None) >= self._max_bytes

    def _add(self, openings: Sequence[str], known: CachedPrefix) -> None:
        import torch

        # These prompts end differently from those of whole observations; `shared_length` uses only what is equal.
        prompts = [self._rendering.prompt_ids(opening) for opening in openings]
        with torch.inference_mode():
            state = prefill(self._model, prompts, [known] * len(prompts),
                            cast(int, self._rendering.tokenizer.pad_token_id))
            stacked = torch.stack([tensor for layer in _keys_values(state.cache) for tensor in layer], dim=2)
            for opening, ids, row, mask in zip(openings, prompts, stacked, state.attention_mask.bool(), strict=True):
                self._prefixes[opening] = CachedPrefix(ids, row[:, :, mask].permute(2, 1, 0, 3).contiguous())


def _keys_values(cache: DynamicCache) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values of each layer, (texts, heads, tokens, head size)."""
    return [(layer.keys, layer.values) for layer in cache.layers]  # type: ignore[misc,union-attr]  # of full attention


def _padded_cache(prefixes: Sequence[CachedPrefix], shared: Sequence[int], before: int) -> DynamicCache:
    """A cache with the first `shared` tokens of each prefix, left-padded to `before` tokens."""
    import torch
    from torch.nn.utils.rnn import pad_sequence
    from transformers import DynamicCache

    like = next(prefix.keys_values for prefix in prefixes if prefix.keys_values is not None)
    rows = [like[:0] if prefix.keys_values is None else prefix.keys_values[:k]
            for prefix, k in zip(prefixes, shared, strict=True)]
    stacked = pad_sequence(rows, batch_first=True, padding_side="left")
    stacked = torch.nn.functional.pad(stacked, (0, 0, 0, 0, 0, 0, before - stacked.shape[1], 0)).transpose(1, 3)
    cache = DynamicCache()
    for layer in range(like.shape[1] // 2):
        cache.update(stacked[:, :, 2 * layer], stacked[:, :, 2 * layer + 1], layer)
    return cache
