"""Choosing one of the 21 commands with what it takes: `CommandForm(opponents, call)`."""
from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nicegui import ui

from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.commands import CAR, EFFECTS, GRAMMAR, MAX_CHARS, TEXT, VERBS

_COLOURS = {"soft": "red-6", "medium": "amber-5", "hard": "grey-4", "inter": "green-6", "wet": "blue-5"}
_TEXT_LABEL = "what is said: true, and in time"


class CommandForm:
    """The pit wall in a person's hands. Whatever is chosen is one line of the grammar, as a policy would say it."""

    def __init__(self, opponents: Sequence[int], call: Callable[[str], Awaitable[None]]):
        """
        Args:
            opponents: Car numbers that commands may name.
            call: What takes the command of the coming lap.
        """
        self._opponents, self._call = list(opponents), call
        with ui.row().classes("w-full gap-1 items-center"):
            self._quick("STAY_OUT", "Stay out", "primary")
            for compound in COMPOUNDS:
                self._quick(f"PIT_NOW {compound}", f"Pit: {compound}", _COLOURS[compound], "black")
        with ui.row().classes("w-full gap-2 items-center"):
            self.verb = ui.select(list(GRAMMAR), value="SET_MODE", label=f"Any of the {len(VERBS)} commands",
                                  with_input=True,
                                  on_change=lambda: self.argument.refresh()).classes("grow min-w-56").props(
                "data-mark=verb")
            self.argument()
            ui.button("Call this lap", icon="campaign", on_click=self._chosen).props("no-caps data-mark=call")
        self.effect = ui.label().classes("text-caption opacity-80").bind_text_from(
            self.verb, "value", lambda verb: EFFECTS.get(verb, ""))

    @ui.refreshable_method
    def argument(self) -> None:
        """What the chosen verb takes: a word, a car, a text, or nothing."""
        kind = GRAMMAR.get(self.verb.value)
        self.value: ui.select | ui.input | None
        if isinstance(kind, tuple):
            self.value = ui.select(list(kind), value=kind[0], label="which")
        elif kind == CAR:
            self.value = ui.select({number: f"#{number}" for number in self._opponents}, value=self._opponents[0],
                                   label="car")
        elif kind == TEXT:
            self.value = ui.input(label=_TEXT_LABEL).props(f"maxlength={MAX_CHARS}").classes("grow")
        else:
            self.value = None
            return
        self.value.classes("min-w-28").props("data-mark=argument")

    async def _chosen(self) -> None:
        given = self.value.value if self.value else ""
        if GRAMMAR.get(self.verb.value) == TEXT:
            given = '"' + str(given).replace('"', "'") + '"'
        await self._call(f"{self.verb.value} {given}".strip())

    def _quick(self, command: str, label: str, colour: str, text: str = "white") -> None:
        ui.button(label, on_click=lambda: self._call(command), color=colour).props(
            f"dense no-caps text-color={text}").classes("px-2").props(f"data-mark={command.replace(' ', '-')}")
