"""The form for a command and its argument: `CommandForm(opponents, on_command)`."""
from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.commands import CAR, EFFECTS, GRAMMAR, MAX_CHARS, TEXT, VERBS

_COLOURS = {"soft": "red-6", "medium": "amber-5", "hard": "grey-4", "inter": "green-6", "wet": "blue-5"}
_TEXT_LABEL = "message (scored on truth and timing)"


class CommandForm:
    """Buttons and inputs to send commands by hand. Each is one line of the grammar, as from a policy."""

    def __init__(self, opponents: Sequence[int], on_command: Callable[[str], Awaitable[None]]):
        """
        Args:
            opponents: Car numbers that commands may name.
            on_command: Receives the command for the next lap.
        """
        self._opponents, self._on_command = list(opponents), on_command
        with ui.row().classes("w-full gap-1 items-center"):
            self._quick("STAY_OUT", "Stay out", "primary")
            for compound in COMPOUNDS:
                self._quick(f"PIT_NOW {compound}", f"Pit: {compound}", _COLOURS[compound], "black")
        with ui.row().classes("w-full gap-2 items-center"):
            self.verb = ui.select(list(GRAMMAR), value="SET_MODE", label=f"All {len(VERBS)} commands",
                                  with_input=True,
                                  on_change=lambda: self.argument.refresh()).classes("grow min-w-56").props(
                "data-mark=verb")
            self.argument()
            ui.button("Send command", icon="campaign", on_click=self._send).props("no-caps data-mark=call")
        self.effect = ui.label().classes("text-caption opacity-80").bind_text_from(
            self.verb, "value", lambda verb: EFFECTS.get(verb, ""))

    @ui.refreshable_method
    def argument(self) -> None:
        """Show the input for the verb's argument: a word, a car, a text, or nothing."""
        kind = GRAMMAR.get(self.verb.value)
        self.value: ui.select | ui.input | None
        if isinstance(kind, tuple):
            self.value = ui.select(list(kind), value=kind[0], label="argument")
        elif kind == CAR:
            self.value = ui.select({number: f"#{number}" for number in self._opponents}, value=self._opponents[0],
                                   label="car")
        elif kind == TEXT:
            self.value = ui.input(label=_TEXT_LABEL).props(f"maxlength={MAX_CHARS}").classes("grow")
        else:
            self.value = None
            return
        self.value.classes("min-w-28").props("data-mark=argument")

    async def _send(self) -> None:
        argument = self.value.value if self.value else ""
        if GRAMMAR.get(self.verb.value) == TEXT:
            argument = '"' + str(argument).replace('"', "'") + '"'
        await self._on_command(f"{self.verb.value} {argument}".strip())

    def _quick(self, command: str, label: str, colour: str, text: str = "white") -> None:
        ui.button(label, on_click=lambda: self._on_command(command), color=colour).props(
            f"dense no-caps text-color={text}").classes("px-2").props(f"data-mark={command.replace(' ', '-')}")
