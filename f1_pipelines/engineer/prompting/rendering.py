"""From an observation to tokens and from a command to tokens: one place for SFT, GRPO, evaluation and serving.

A turn is one user message, the observation's text, and one assistant message, the command. Nothing of earlier laps is
in it: what an engineer has to remember stands in the notes of the observation. Thinking is off.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from f1_pipelines.sim.environment.commands import usage

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SYSTEM = ("You are the race engineer of car \"We\". Each lap you answer with exactly one command, nothing else. "
          "Commands:\n" + usage())
_OBSERVATION = "<observation>"


@dataclass(frozen=True)
class Rendering:
    """How one tokenizer's chats are written.

    Attributes:
        tokenizer: With a chat template and an end-of-turn token (`eos_token`).
        system: Whether the commands are explained in a system turn; a model trained from nothing needs none.
    """

    tokenizer: PreTrainedTokenizerBase
    system: bool

    def messages(self, observation: str) -> list[dict[str, str]]:
        """The chat up to the engineer's turn."""
        messages = [{"role": "system", "content": SYSTEM}] if self.system else []
        return [*messages, {"role": "user", "content": observation}]

    def prompt(self, observation: str) -> str:
        """All that stands before the command."""
        before, after = self._frame
        return before + observation + after

    @cached_property
    def _frame(self) -> tuple[str, str]:
        """What the chat template puts before an observation and after it; a blocking check holds every turn to it."""
        before, after = str(self.tokenizer.apply_chat_template(
            self.messages(_OBSERVATION), tokenize=False, add_generation_prompt=True,
            enable_thinking=False)).split(_OBSERVATION)
        return before, after

    def prompt_ids(self, observation: str) -> list[int]:
        """Token ids of `prompt`."""
        return self.tokenizer(self.prompt(observation), add_special_tokens=False)["input_ids"]

    def completion_ids(self, command: str) -> list[int]:
        """Token ids of the command and the end of the turn: what is learnt."""
        return [*self.tokenizer(command, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id]

    def example(self, observation: str, command: str) -> dict[str, list[int]]:
        """A turn to learn from: `input_ids`, and `labels` that are -100 but for the completion."""
        prompt, completion = self.prompt_ids(observation), self.completion_ids(command)
        return {"input_ids": prompt + completion, "labels": [-100] * len(prompt) + completion}

    def command(self, ids: Sequence[int]) -> str:
        """What was generated, up to the end of the turn; raw, whether it parses or not."""
        ids = list(ids)
        if self.tokenizer.eos_token_id in ids:
            ids = ids[:ids.index(self.tokenizer.eos_token_id)]
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))
