"""The live simulator: a race that runs on the server, shown lap by lap, called by a policy or by whoever looks."""
from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from fastapi import Request
from nicegui import run, ui

from f1_pipelines.serve.errors import SERVER_FAULT
from f1_pipelines.serve.live_race import Lap, LiveRace
from f1_pipelines.serve.pages import race_charts
from f1_pipelines.serve.pages.command_form import CommandForm
from f1_pipelines.serve.pages.frame import RESPONSE_TIMEOUT_S, card, frame, show_notices
from f1_pipelines.serve.pages.race_form import RaceForm
from f1_pipelines.serve.pages.tower import DecisionLog, ScoreBars, TimingTower
from f1_pipelines.serve.policies import PolicyUnavailable, available_policies
from f1_pipelines.serve.race_factory import BY_HAND, CLIENT_ERRORS, begin_race
from f1_pipelines.serve.routes.predictions import driver_name
from f1_pipelines.serve.settings import ServeSettings
from f1_pipelines.sim.scenarios import GRAND_PRIX

T = TypeVar("T")
SIMULATED_NOTICE = "SIMULATED: a race of this project's simulator. Nothing of it happened."
_CHART = "w-full"


def register(settings: ServeSettings) -> None:
    """Make the page known. At most `settings.races` races think at once; others wait."""
    thinking = asyncio.Semaphore(settings.races)

    @ui.page("/", response_timeout=RESPONSE_TIMEOUT_S)
    def live(request: Request) -> None:
        with frame("/", "Live simulator"):
            show_notices([SIMULATED_NOTICE])
            shown = LivePage(dict(request.query_params), thinking)
            ui.timer(0.0, shown.begin, once=True)  # the page is there before its race: a model may take long to load


class LivePage:
    """One open page and its race."""

    def __init__(self, query: dict[str, str], thinking: asyncio.Semaphore):
        self._thinking, self._turn = thinking, asyncio.Lock()  # one thought at a time: laps come in order
        self._race: LiveRace | None = None
        with ui.card().classes("w-full p-3"), ui.row().classes("w-full items-end gap-2"):
            self._form = RaceForm(query)
            ui.button("New race", icon="flag", on_click=self.begin).props("no-caps data-mark=new-race")
        with ui.card().classes("w-full p-3 gap-1"):
            with ui.row().classes("w-full items-center gap-3"):
                self._play = ui.button(icon="play_arrow", on_click=self._toggle).props(
                    'round size=lg aria-label="Play or pause"').props("data-mark=play")
                ui.button("Step", icon="skip_next", on_click=self._advance).props("outline no-caps data-mark=step")
                ui.button("To the flag", icon="sports_score", on_click=self._to_the_flag).props(
                    "outline no-caps").props("data-mark=to-the-flag")
                with ui.row().classes("items-center gap-2 no-wrap w-44"):
                    ui.icon("speed", size="sm").tooltip("laps a second")
                    self._speed = ui.slider(min=0.5, max=8, step=0.5, value=1.5).props("label data-mark=speed")
                self._head = ui.label().classes("text-base font-medium pw-figures").props("data-mark=head")
            self._who = ui.label().classes("text-caption opacity-80").props("data-mark=who")
            self._briefing = ui.label().classes("text-sm").props("data-mark=briefing")
        with card("Call the coming lap yourself"):
            self._chooser = ui.column().classes("w-full gap-1")
        with ui.grid().classes("w-full gap-3 grid-cols-1 lg:grid-cols-12"):
            with ui.column().classes("lg:col-span-5 gap-3 min-w-0"):
                with card("Track: distances as the leader crosses the line"):
                    self._ring = ui.echart({}).classes(f"{_CHART} h-80")
                with card("Lap table"):
                    self._tower = TimingTower()
                with card("Score, six parts"):
                    self._bars = ScoreBars()
                with card("Weather"):
                    self._weather = ui.echart({}).classes(f"{_CHART} h-32")
            with ui.column().classes("lg:col-span-7 gap-3 min-w-0"):
                with card("Gap to the leader"):
                    self._gaps = ui.echart({}).classes(f"{_CHART} h-64")
                with card("Tyres"):
                    self._tyres = ui.echart({}).classes(_CHART)
                with card("Radio and decisions"):
                    self._log = DecisionLog()
        self._timer = ui.timer(1.0, self._tick, active=False)
        self._speed.on_value_change(lambda: setattr(self._timer, "interval", 1 / self._speed.value))
        self._timer.interval = 1 / self._speed.value

    async def begin(self) -> None:
        """Put the chosen race on its grid."""
        request, policy = self._form.request(), self._form.policy.value
        self._pause()
        race = await self._thought(lambda: begin_race(request, policy))
        if race is None:
            return
        self._race = race
        self._chooser.clear()
        with self._chooser:
            CommandForm(race.opponents, self._call)
        self._who.text = _race_caption(race)
        self._briefing.text = race.briefing
        self._tyres.style(f"height: {max(150, 60 + 22 * len(race.laps[0].cars))}px")
        self._log.begin(race)
        self._bars.begin()
        self._show(race, race.laps[0])

    async def _tick(self) -> None:
        if not self._turn.locked():
            await self._advance()

    async def _advance(self) -> None:
        """One lap more, called by the policy."""
        race = self._race
        if race is None or race.over:
            self._pause()
        elif race.policy is None and not race.handed_over:
            self._pause()
            ui.notify("You are on the pit wall: call this lap below.", type="info")
        elif lap := await self._thought(race.lap):
            self._show(race, lap)

    async def _call(self, command: str) -> None:
        """One lap more, called by hand."""
        race = self._race
        if self._turn.locked():
            return  # a second click on the same call
        if race is None or race.over or race.handed_over:
            ui.notify("The race is over: start another one." if race and race.over else
                      "The driver has the race to the flag: step on to see it.", type="info")
        elif lap := await self._thought(lambda: race.drive(command)):
            self._show(race, lap)

    async def _to_the_flag(self) -> None:
        self._pause()
        race = self._race
        if race is None or not (race.policy or race.handed_over):
            await self._advance()
            return
        while race is self._race and not race.over:
            if await self._thought(race.lap) is None:
                return
        self._show(race, race.laps[-1])

    async def _thought(self, work: Callable[[], T]) -> T | None:
        """Do it in a thread, so that no other page waits; None, and a word on the page, where it can't be done."""
        try:
            async with self._turn, self._thinking:
                return await run.io_bound(work)
        except (*CLIENT_ERRORS, PolicyUnavailable) as problem:
            message = str(problem)
        except Exception:
            logging.getLogger(__name__).exception("a race failed")
            message = SERVER_FAULT
        self._pause()
        ui.notify(message, type="negative", multi_line=True)
        return None

    def _toggle(self) -> None:
        if self._timer.active:
            self._pause()
        elif self._race and not self._race.over:
            self._timer.activate()
            self._play.props("icon=pause")

    def _pause(self) -> None:
        self._timer.deactivate()
        self._play.props("icon=play_arrow")

    def _show(self, race: LiveRace, lap: Lap) -> None:
        if race is not self._race:
            return  # another one was begun meanwhile
        ours = next(car for car in lap.cars if car.ours)
        place = f"P{ours.position}" if ours.standing == "running" else f"out ({ours.standing})"
        end = f"score {race.end.score:.3f}" if race.end else f"score so far {lap.score_so_far:.3f}"
        self._head.text = f"{'Flag' if race.over else 'Lap'} {lap.lap}/{lap.laps} · {place} of {len(lap.cars)} · " \
                          f"{race_charts.STATUS_NAMES[lap.next_status]} · {end}"
        for chart, options in ((self._ring, race_charts.ring(lap)), (self._gaps, race_charts.gaps(race.laps)),
                               (self._tyres, race_charts.tyres(race.laps)), (self._weather, race_charts.weather(race.laps))):
            chart.options.clear()
            chart.options.update(options)
            chart.update()
        self._tower.show(lap)
        self._log.show(race)
        self._bars.show(race)
        if race.over:
            self._pause()


def _race_caption(race: LiveRace) -> str:
    """Which race this is, and who calls it."""
    scenario = race.scenario
    where = f"{scenario.weekend}, {driver_name(scenario.drivers[0])}, " if scenario.family == GRAND_PRIX else ""
    offer = next((offer for offer in available_policies() if offer.name == race.name), None)
    caller = "you" if race.name == BY_HAND else f"{race.name} ({offer.kind})" if offer else race.name
    return f"On the pit wall: {caller} · {scenario.family}, {where}seed {scenario.seed} ({scenario.split}), " \
           f"{scenario.circuit.circuit}, environment {race.env_version}"
