"""Reading prompts, and once only what stands through a race.

The commands that are explained begin every prompt of a model, the briefing every prompt of a race. The keys and values
that the model makes of such an opening are kept and put before the rest of each lap's prompt, so that a lap costs the
tokens that are new in it. What is said then is what the whole prompt would say, which a test holds.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from f1_pipelines.engineer.inference.cpu import use_fast_matmul
from f1_pipelines.sim.environment.prompt import opening_of

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache, PreTrainedModel

    from f1_pipelines.engineer.prompting.rendering import Rendering

ROOM = 1 << 30  # bytes that a model's openings may take
STEP = 8  # tokens: widths are rounded up to it, since oneDNN makes a kernel for each shape that it meets


@dataclass(frozen=True)
class CachedPrefix:
    """The first tokens of prompts, and what a model makes of them.

    Attributes:
        ids: The tokens.
        made: (tokens, 2 x layers, heads, head size) keys and values, layer by layer; None of no tokens.
    """

    ids: Sequence[int] = ()
    made: torch.Tensor | None = None

    def shared(self, prompt: Sequence[int]) -> int:
        """How many tokens the prompt begins with. Its last one is read in any case: the answer follows from it."""
        most = min(len(self.ids), len(prompt) - 1)
        return next((k for k in range(most) if self.ids[k] != prompt[k]), most)


NO_PREFIX = CachedPrefix()


def padded_length(tokens: int) -> int:
    """How wide a batch is that holds so many tokens."""
    return -(-tokens // STEP) * STEP


@dataclass
class DecodingState:
    """Texts that were read, and what comes next.

    Attributes:
        memory: Keys and values of all tokens.
        seen: (texts, tokens) 1 where there is a token, 0 where a shorter text was padded.
        place: (texts, 1) place of the token that comes next.
        logits: (texts, vocabulary) of that token.
        rows: (texts,) which they are.
    """

    memory: DynamicCache
    seen: torch.Tensor
    place: torch.Tensor
    logits: torch.Tensor
    rows: torch.Tensor

    def repeated(self, count: int) -> DecodingState:
        """Each so many times, side by side."""
        if count > 1:
            self.memory.batch_repeat_interleave(count)
        seen, place, logits = (one.repeat_interleave(count, dim=0) for one in (self.seen, self.place, self.logits))
        return DecodingState(self.memory, seen, place, logits, self.rows.new_tensor(range(len(seen))))

    def only(self, at: torch.Tensor) -> DecodingState:
        """Those at these places; the others are given up."""
        if len(at) < len(self.rows):
            self.memory.batch_select_indices(at)
        return DecodingState(self.memory, self.seen[at], self.place[at], self.logits[at], self.rows[at])

    def after(self, model: PreTrainedModel, tokens: torch.Tensor) -> DecodingState:
        """With a token more of each."""
        import torch

        if not len(tokens):
            return self
        seen = torch.cat([self.seen, self.seen.new_ones(len(tokens), 1)], dim=1)
        with use_fast_matmul(False):  # as many shapes as there are numbers of texts and tokens
            done = model(input_ids=tokens[:, None], attention_mask=seen, position_ids=self.place, use_cache=True,
                         cache=self.memory)
        return DecodingState(self.memory, seen, self.place + 1, done.logits[:, -1], self.rows)


def prefill(model: PreTrainedModel, prompts: Sequence[Sequence[int]], prefixes: Sequence[CachedPrefix],
            pad: int) -> DecodingState:
    """What a causal model makes of prompts.

    Args:
        model: In evaluation mode, on any device.
        prompts: Token ids of each; those of like length beside each other cost least.
        prefixes: What is known of each, of the same model; `NO_PREFIX` will do.
        pad: Id of a token to pad with; it is never looked at.
    """
    import torch

    known = [opening.shared(prompt) for opening, prompt in zip(prefixes, prompts, strict=True)]
    rest = [list(prompt[k:]) for prompt, k in zip(prompts, known, strict=True)]
    before, width = padded_length(max(known)), padded_length(max(map(len, rest)))
    ids = torch.tensor([[pad] * (width - len(tokens)) + tokens for tokens in rest], device=model.device)
    seen = torch.tensor([[0] * (before - k) + [1] * k + [0] * (width - len(tokens)) + [1] * len(tokens)
                         for k, tokens in zip(known, rest, strict=True)], device=model.device)
    places = (seen.cumsum(dim=1) - 1).clamp(min=0)[:, before:]
    with use_fast_matmul():
        done = model(input_ids=ids, attention_mask=seen, position_ids=places, use_cache=True, logits_to_keep=1,
                     cache=_memory(prefixes, known, before) if before else None)
    return DecodingState(done.cache, seen, places[:, -1:] + 1, done.logits[:, -1],
                         torch.arange(len(rest), device=model.device))


def concatenate(reads: Sequence[DecodingState]) -> DecodingState:
    """As if they had been read at once. Those without a text count for nothing."""
    import torch
    from torch.nn.functional import pad
    from transformers import DynamicCache

    reads = [one for one in reads if len(one.rows)] or reads[:1]
    if len(reads) == 1:
        return reads[0]
    width = max(one.seen.shape[1] for one in reads)
    short, memory = [width - one.seen.shape[1] for one in reads], DynamicCache()
    for layer, same in enumerate(zip(*(one.memory.layers for one in reads), strict=True)):
        keys, values = (torch.cat([pad(one, (0, 0, k, 0)) for one, k in zip(some, short, strict=True)])
                        for some in zip(*((one.keys, one.values) for one in same), strict=True))
        memory.update(keys, values, layer)
    return DecodingState(memory, torch.cat([pad(one.seen, (k, 0)) for one, k in zip(reads, short, strict=True)]),
                         *(torch.cat(same) for same in zip(*((one.place, one.logits, one.rows) for one in reads),
                                                           strict=True)))


class PrefixCache:
    """The openings that a model has read.

    Those of races that are over make room for others. Where there is no room, a race's prompts begin with what all
    prompts of the model begin with.
    """

    def __init__(self, model: PreTrainedModel, rendering: Rendering, batch: int, room: int = ROOM) -> None:
        """
        Args:
            model: In evaluation mode when it reads.
            rendering: Of its tokenizer.
            batch: Openings read at a time.
            room: Bytes that they may take; one batch more, at most.
        """
        self._model, self._rendering, self._batch, self._room = model, rendering, batch, room
        self._cached: dict[str, CachedPrefix] = {}
        self._weights: tuple[object, ...] = ()

    def of(self, observations: Sequence[str]) -> list[CachedPrefix]:
        """The opening of each observation's prompt."""
        model = self._model
        weights = (sum(one._version for one in model.parameters()), model.dtype, model.device)
        if weights != self._weights:  # it has learnt, and what it made of them means nothing to it any more
            self._cached, self._weights = {}, weights
        if "" not in self._cached:
            self._keep([""], NO_PREFIX)
        texts = [opening_of(observation) for observation in observations]
        now = dict.fromkeys(["", *texts])
        new = [text for text in now if text not in self._cached]
        for first in range(0, len(new), self._batch):
            if self._full():
                self._cached = {text: one for text, one in self._cached.items() if text in now}
            if self._full():
                break
            self._keep(new[first:first + self._batch], self._cached[""])
        return [self._cached.get(text, self._cached[""]) for text in texts]

    def _full(self) -> bool:
        return sum(one.made.nbytes for one in self._cached.values() if one.made is not None) >= self._room

    def _keep(self, texts: Sequence[str], known: CachedPrefix) -> None:
        import torch

        # Prompts end otherwise than those of whole observations; no more is taken from them than is alike.
        prompts = [self._rendering.prompt_ids(text) for text in texts]
        with torch.inference_mode():
            prefilled = prefill(self._model, prompts, [known] * len(prompts), self._rendering.tokenizer.pad_token_id)
            layers: list[Any] = prefilled.memory.layers
            made = torch.stack([one for layer in layers for one in (layer.keys, layer.values)], dim=2)
            for text, ids, row, seen in zip(texts, prompts, made, prefilled.seen.bool(), strict=True):
                self._cached[text] = CachedPrefix(ids, row[:, :, seen].permute(2, 1, 0, 3).contiguous())


def _memory(prefixes: Sequence[CachedPrefix], known: Sequence[int], before: int) -> DynamicCache:
    """The first `known` tokens of each opening as what transformers remembers, padded in front to `before`."""
    import torch
    from torch.nn.utils.rnn import pad_sequence
    from transformers import DynamicCache

    some = next(one.made for one in prefixes if one.made is not None)
    rows = [some[:0] if one.made is None else one.made[:k] for one, k in zip(prefixes, known, strict=True)]
    made = pad_sequence(rows, batch_first=True, padding_side="left")
    made = torch.nn.functional.pad(made, (0, 0, 0, 0, 0, 0, before - made.shape[1], 0)).transpose(1, 3)
    memory = DynamicCache()
    for layer in range(some.shape[1] // 2):
        memory.update(made[:, :, 2 * layer], made[:, :, 2 * layer + 1], layer)
    return memory
