"""Checks that SFT, GRPO, evaluation and serving read and write the same tokens: `parity_errors(...)`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from f1_pipelines.engineer.prompting.rendering import Rendering
from f1_pipelines.sim.environment.prompt import opening_of

if TYPE_CHECKING:
    from f1_pipelines.engineer.training.sft import Example

IGNORED = -100
THINKING = "<think>\n\n</think>\n\n"  # an empty thought, which is how Qwen3 writes that it thinks nothing


def parity_errors(rendering: Rendering, examples: Sequence[Example]) -> list[str]:
    """One sentence for each turn that is not the same everywhere; empty when all is well.

    Looked at: the prompt's ids in an SFT example, as generation and GRPO render them, and as the chat template
    tokenizes by itself; the labels, which decode to the command and the end of the turn; the briefing; no thoughts.
    """
    tokenizer, errors = rendering.tokenizer, []
    for k, example in enumerate(examples):
        turn = rendering.example(example.prompt, example.completion)
        ids, labels = turn["input_ids"], turn["labels"]
        learnt = [label for label in labels if label != IGNORED]
        before = ids[:len(ids) - len(learnt)]
        whole: Any = tokenizer.apply_chat_template(
            rendering.messages(example.prompt), tokenize=True, add_generation_prompt=True, enable_thinking=False)
        whole = list(whole["input_ids"] if hasattr(whole, "keys") else whole)
        text = rendering.prompt(example.prompt)
        for holds, why in (
                (before == rendering.prompt_ids(example.prompt), "SFT and generation read other prompts"),
                (before == whole, "the chat template tokenizes the prompt otherwise"),
                (bool(learnt) and learnt[-1] == tokenizer.eos_token_id, "the end of the turn is not learnt"),
                (tokenizer.eos_token_id not in learnt[:-1], "the turn ends twice"),
                (labels[:len(before)] == [IGNORED] * len(before), "something of the prompt is learnt"),
                (rendering.command(learnt) == example.completion, "labels do not decode to the command"),
                (example.prompt in text, "the observation is changed"),
                (". " in opening_of(example.prompt), "the scenario's briefing is missing"),
                ("<think>" not in text.replace(THINKING, ""), "thinking is on")):
            if not holds:
                errors.append(f"turn {k}: {why}")
    return errors
