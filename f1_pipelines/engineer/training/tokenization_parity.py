"""Check that SFT, GRPO, evaluation and serving use the same tokens: `parity_errors(...)`."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from f1_pipelines.engineer.prompting.rendering import IGNORED, Rendering
from f1_pipelines.sim.environment.prompt import opening_of

if TYPE_CHECKING:
    from f1_pipelines.engineer.training.sft import Example

THINKING = "<think>\n\n</think>\n\n"  # an empty thought: how Qwen3's template turns thinking off


def parity_errors(rendering: Rendering, examples: Sequence[Example]) -> list[str]:
    """Return one sentence for each violated property of each turn; empty if all hold.

    The prompt's ids must be the same in an SFT example, in generation, and from the chat template itself. The labels
    must decode to the command and the end of the turn. The briefing must be present, and thinking off.
    """
    tokenizer, errors = rendering.tokenizer, []
    for k, example in enumerate(examples):
        tokenized = rendering.example(example.prompt, example.completion)
        ids, labels = tokenized["input_ids"], tokenized["labels"]
        completion_ids = [label for label in labels if label != IGNORED]
        prompt_ids = ids[:len(ids) - len(completion_ids)]
        template = cast(Any, tokenizer.apply_chat_template(
            rendering.messages(example.prompt), tokenize=True, add_generation_prompt=True, enable_thinking=False))
        template_ids = list(template["input_ids"] if isinstance(template, Mapping) else template)
        text = rendering.prompt(example.prompt)
        for holds, error in (
                (prompt_ids == rendering.prompt_ids(example.prompt), "SFT and generation use different prompts"),
                (prompt_ids == template_ids, "the chat template tokenizes the prompt differently"),
                (completion_ids[-1:] == [tokenizer.eos_token_id], "the end of the turn is not learnt"),
                (tokenizer.eos_token_id not in completion_ids[:-1], "the turn ends twice"),
                (labels[:len(prompt_ids)] == [IGNORED] * len(prompt_ids), "part of the prompt is learnt"),
                (rendering.command(completion_ids) == example.completion, "labels do not decode to the command"),
                (example.prompt in text, "the observation is changed"),
                (". " in opening_of(example.prompt), "the scenario's briefing is missing"),
                ("<think>" not in text.replace(THINKING, ""), "thinking is on")):
            if not holds:
                errors.append(f"turn {k}: {error}")
    return errors
