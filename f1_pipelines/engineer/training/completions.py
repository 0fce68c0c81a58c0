"""TRL's SFT trainer, computing the logits of completions only.

A turn has about a hundred prompt tokens and a few completion tokens. trl 1.16 computes logits at every position before
it drops the prompt's; for a tiny model that is two fifths of a step. Here batches are padded on the left, so that
completions are at the end and only the last positions get logits. Loss and metrics are the same, also with several
processes.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from trl import SFTTrainer

from f1_pipelines.engineer.prompting.rendering import IGNORED, TokenizedExample


class CompletionTrainer(SFTTrainer):
    """SFTTrainer for batches of `left_padded`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Take the arguments of SFTTrainer."""
        super().__init__(*args, **options)
        self._since_log: defaultdict[str, list[float]] = defaultdict(list)

    def compute_loss(self, model: nn.Module, inputs: dict[str, Tensor], return_outputs: bool = False,
                     num_items_in_batch: Tensor | int | None = None) -> Tensor | tuple[Tensor, Any]:
        """Return the mean cross-entropy over the tokens of all completions of the step, over all processes."""
        labels = inputs["labels"]
        in_completion = (labels != IGNORED).any(dim=0)
        width = labels.shape[1] - int(in_completion.int().argmax())
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], use_cache=False,
                        logits_to_keep=width + 1)
        logits, labels = outputs.logits[:, :-1].float(), labels[:, -width:]
        total = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED,
                                            reduction="sum")
        mask = labels != IGNORED
        if num_items_in_batch is None:
            loss = total / mask.sum()
        else:  # counts all processes, and torch averages their gradients
            loss = total * self.accelerator.num_processes / num_items_in_batch
        with torch.no_grad():
            log_probabilities = logits.log_softmax(dim=-1)[mask]
            correct = (logits.argmax(dim=-1) == labels)[mask]
            entropy, n_correct, n_tokens = self.accelerator.reduce(torch.stack(
                [-(log_probabilities.exp() * log_probabilities).sum(), correct.sum().float(), mask.sum().float()]),
                "sum").tolist()
            self._since_log["entropy"].append(entropy / n_tokens)
            self._since_log["mean_token_accuracy"].append(n_correct / n_tokens)
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the means since the last log."""
        logs.update({name: sum(values) / len(values) for name, values in self._since_log.items()})
        self._since_log.clear()
        super().log(logs, start_time)


def left_padded(pad_id: int, examples: Sequence[TokenizedExample]) -> dict[str, Tensor]:
    """Pad examples of different lengths on the left, to one batch."""
    longest = max(len(example["input_ids"]) for example in examples)

    def padded(name: Literal["input_ids", "labels"], filler: int) -> Tensor:
        return torch.tensor([[filler] * (longest - len(example[name])) + list(example[name]) for example in examples])

    mask = [[0] * (longest - len(example["input_ids"])) + [1] * len(example["input_ids"]) for example in examples]
    return {"input_ids": padded("input_ids", pad_id), "labels": padded("labels", IGNORED),
            "attention_mask": torch.tensor(mask)}
