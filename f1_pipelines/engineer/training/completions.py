"""trl's SFT trainer, computing logits of completions alone.

A lap is a hundred tokens to read and a few to say. trl 1.16 multiplies every position with the vocabulary before it
drops the prompt's; for a model of toy size that is two fifths of a step. Here batches are padded on the left, so that
completions stand at the end, and only the last positions get logits. Loss and numbers logged are the same, with several
processes, too.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from trl import SFTTrainer

IGNORED = -100


class CompletionTrainer(SFTTrainer):
    """SFTTrainer for batches of `left_padded`."""

    def compute_loss(self, model: nn.Module, inputs: dict[str, Tensor], return_outputs: bool = False,
                     num_items_in_batch: Tensor | int | None = None) -> Tensor | tuple[Tensor, Any]:
        """Mean cross-entropy over the tokens of all completions of the step, those of other processes included."""
        labels = inputs["labels"]
        learnt = (labels != IGNORED).any(dim=0)
        completion_tokens = labels.shape[1] - int(learnt.int().argmax())
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], use_cache=False,
                        logits_to_keep=completion_tokens + 1)
        logits, labels = outputs.logits[:, :-1].float(), labels[:, -completion_tokens:]
        total = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED,
                                            reduction="sum")
        mask = labels != IGNORED
        if num_items_in_batch is None:
            loss = total / mask.sum()
        else:  # counted over all processes, over which torch then takes the mean
            loss = total * self.accelerator.num_processes / num_items_in_batch
        with torch.no_grad():
            mode = "train" if cast("Any", self.model).training else "eval"
            log_probabilities = logits.log_softmax(dim=-1)[mask]
            right = (logits.argmax(dim=-1) == labels)[mask]
            entropy, n_right, n_tokens = self.accelerator.reduce(torch.stack(
                [-(log_probabilities.exp() * log_probabilities).sum(), right.sum().float(), mask.sum().float()]),
                                                                 "sum").tolist()
            self._metrics[mode]["entropy"].append(entropy / n_tokens)
            self._metrics[mode]["mean_token_accuracy"].append(n_right / n_tokens)
        return (loss, outputs) if return_outputs else loss


def left_padded(pad_id: int, examples: Sequence[dict[str, list[int]]]) -> dict[str, Tensor]:
    """A batch of examples (`input_ids`, `labels`) of different lengths, their ends in line."""
    longest = max(len(example["input_ids"]) for example in examples)

    def filled(name: str, filler: int) -> Tensor:
        return torch.tensor([[filler] * (longest - len(one[name])) + list(one[name]) for one in examples])

    mask = [[0] * (longest - len(one["input_ids"])) + [1] * len(one["input_ids"]) for one in examples]
    return {"input_ids": filled("input_ids", pad_id), "labels": filled("labels", IGNORED),
            "attention_mask": torch.tensor(mask)}
