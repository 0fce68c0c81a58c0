"""Render observations and commands as tokens, the same way for SFT, GRPO, evaluation and serving.

A turn is one user message, the observation's text, and one assistant message, the command. It has no earlier laps: the
observation's notes hold what an engineer has to remember. Thinking is off.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, cast

from f1_pipelines.sim.environment.commands import usage

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SYSTEM = ("You are the race engineer of car \"We\". Each lap you answer with exactly one command, nothing else. "
          "Commands:\n" + usage())
IGNORED = -100  # label of tokens that the loss ignores
_OBSERVATION = "<observation>"


class TokenizedExample(TypedDict):
    """A turn as training example: token ids, and the same ids as labels, `IGNORED` outside the completion."""

    input_ids: list[int]
    labels: list[int]


@dataclass(frozen=True)
class Rendering:
    """The chat format of one tokenizer.

    Attributes:
        tokenizer: Has a chat template and an end-of-turn token (`eos_token`).
        system: Explain the commands in a system turn. A model trained from scratch needs none.
    """

    tokenizer: PreTrainedTokenizerBase
    system: bool

    def messages(self, observation: str) -> list[dict[str, str]]:
        """The messages before the engineer's turn."""
        system = [{"role": "system", "content": SYSTEM}] if self.system else []
        return [*system, {"role": "user", "content": observation}]

    def prompt(self, observation: str) -> str:
        """The text before the command."""
        before, after = self._frame
        return before + observation + after

    @cached_property
    def _frame(self) -> tuple[str, str]:
        """The chat template's text before and after an observation; a blocking check compares it with the template."""
        rendered = cast(str, self.tokenizer.apply_chat_template(
            self.messages(_OBSERVATION), tokenize=False, add_generation_prompt=True, enable_thinking=False))
        before, after = rendered.split(_OBSERVATION)
        return before, after

    def prompt_ids(self, observation: str) -> list[int]:
        """Token ids of `prompt`."""
        return self._ids(self.prompt(observation))

    def completion_ids(self, command: str) -> list[int]:
        """Token ids of the command and of the end of the turn: the tokens to learn."""
        return [*self._ids(command), cast(int, self.tokenizer.eos_token_id)]

    def example(self, observation: str, command: str) -> TokenizedExample:
        """The turn as training example."""
        prompt, completion = self.prompt_ids(observation), self.completion_ids(command)
        return {"input_ids": prompt + completion, "labels": [IGNORED] * len(prompt) + completion}

    def command(self, ids: Sequence[int]) -> str:
        """Decode generated ids up to the end of the turn. The text may not parse."""
        ids = list(ids)
        if self.tokenizer.eos_token_id in ids:
            ids = ids[:ids.index(self.tokenizer.eos_token_id)]
        return cast(str, self.tokenizer.decode(ids, skip_special_tokens=True))

    def _ids(self, text: str) -> list[int]:
        return cast("list[int]", self.tokenizer(text, add_special_tokens=False)["input_ids"])
