"""The live simulator page: a race on the server, shown lap by lap, driven by a policy or by hand."""
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
SIMULATED_NOTICE = "SIMULATED: this race comes from the simulator and is not real."
_CHART = "w-full"


def register(settings: ServeSettings) -> None:
    """Register the page. At most `settings.races` races compute a lap at once; others wait."""
    slots = asyncio.Semaphore(settings.races)

    @ui.page("/", response_timeout=RESPONSE_TIMEOUT_S)
    def live(request: Request) -> None:
        with frame("/", "Live simulator"):
            show_notices([SIMULATED_NOTICE])
            page = LivePage(dict(request.query_params), slots)
            ui.timer(0.0, page.begin, once=True)  # after the page is shown, because a model may take long to load


class LivePage:
    """An open page and its race."""

    def __init__(self, query: dict[str, str], slots: asyncio.Semaphore):
        self._slots, self._lock = slots, asyncio.Lock()  # the lock keeps laps in order
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
            self._caption = ui.label().classes("text-caption opacity-80").props("data-mark=who")
            self._briefing = ui.label().classes("text-sm").props("data-mark=briefing")
        with card("Drive the next lap by hand"):
            self._command_form = ui.column().classes("w-full gap-1")
        with ui.grid().classes("w-full gap-3 grid-cols-1 lg:grid-cols-12"):
            with ui.column().classes("lg:col-span-5 gap-3 min-w-0"):
                with card("Track positions as the leader crosses the line"):
                    self._ring = ui.echart({}).classes(f"{_CHART} h-80")
                with card("Lap table"):
                    self._tower = TimingTower()
                with card("Score by dimension"):
                    self._bars = ScoreBars()
                with card("Weather"):
                    self._weather = ui.echart({}).classes(f"{_CHART} h-32")
            with ui.column().classes("lg:col-span-7 gap-3 min-w-0"):
                with card("Gap to the leader"):
                    self._gaps = ui.echart({}).classes(f"{_CHART} h-64")
                with card("Tyres"):
                    self._tyres = ui.echart({}).classes(_CHART)
                with card("Commands and messages"):
                    self._log = DecisionLog()
        self._timer = ui.timer(1.0, self._tick, active=False)
        self._speed.on_value_change(lambda: setattr(self._timer, "interval", 1 / self._speed.value))
        self._timer.interval = 1 / self._speed.value

    async def begin(self) -> None:
        """Start the selected race."""
        request, policy = self._form.request(), self._form.policy.value
        self._pause()
        race = await self._in_thread(lambda: begin_race(request, policy))
        if race is None:
            return
        self._race = race
        self._command_form.clear()
        with self._command_form:
            CommandForm(race.opponents, self._drive)
        self._caption.text = _race_caption(race)
        self._briefing.text = race.briefing
        self._tyres.style(f"height: {max(150, 60 + 22 * len(race.laps[0].cars))}px")
        self._log.begin(race)
        self._bars.begin()
        self._show(race, race.laps[0])

    async def _tick(self) -> None:
        if not self._lock.locked():
            await self._advance()

    async def _advance(self) -> None:
        """Drive a lap with the policy's command."""
        race = self._race
        if race is None or race.over:
            self._pause()
        elif race.policy is None and not race.handed_over:
            self._pause()
            ui.notify("You drive by hand: send a command for this lap below.", type="info")
        elif lap := await self._in_thread(race.lap):
            self._show(race, lap)

    async def _drive(self, command: str) -> None:
        """Drive a lap with a command by hand."""
        race = self._race
        if self._lock.locked():
            return  # a double click
        if race is None or race.over or race.handed_over:
            ui.notify("The race is over: start a new one." if race and race.over else
                      "No more commands after DONE: use Step to see the remaining laps.", type="info")
        elif lap := await self._in_thread(lambda: race.drive(command)):
            self._show(race, lap)

    async def _to_the_flag(self) -> None:
        self._pause()
        race = self._race
        if race is None or not (race.policy or race.handed_over):
            await self._advance()
            return
        while race is self._race and not race.over:
            if await self._in_thread(race.lap) is None:
                return
        self._show(race, race.laps[-1])

    async def _in_thread(self, work: Callable[[], T]) -> T | None:
        """Call `work` in a thread, so that other pages need not wait; on an error show its message and return None."""
        try:
            async with self._lock, self._slots:
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
            return  # a new race was started meanwhile
        ours = next(car for car in lap.cars if car.ours)
        position = f"P{ours.position}" if ours.standing == "running" else f"out ({ours.standing})"
        end = f"score {race.end.score:.3f}" if race.end else f"score so far {lap.score_so_far:.3f}"
        self._head.text = f"{'Flag' if race.over else 'Lap'} {lap.lap}/{lap.laps} · {position} of {len(lap.cars)} · " \
                          f"{race_charts.STATUS_NAMES[lap.next_status]} · {end}"
        laps = race.laps
        for chart, options in ((self._ring, race_charts.ring(lap)), (self._gaps, race_charts.gaps(laps)),
                               (self._tyres, race_charts.tyres(laps)), (self._weather, race_charts.weather(laps))):
            chart.options.clear()
            chart.options.update(options)
            chart.update()
        self._tower.show(lap)
        self._log.show(race)
        self._bars.show(race)
        if race.over:
            self._pause()


def _race_caption(race: LiveRace) -> str:
    """The policy, the race and the environment version."""
    scenario = race.scenario
    car = f"{scenario.weekend}, {driver_name(scenario.drivers[0])}, " if scenario.family == GRAND_PRIX else ""
    kind = next((policy.kind for policy in available_policies() if policy.name == race.name), None)
    name = "you" if race.name == BY_HAND else f"{race.name} ({kind})" if kind else race.name
    return f"Policy: {name} · {scenario.family}, {car}seed {scenario.seed} ({scenario.split}), " \
           f"{scenario.circuit.circuit}, environment version {race.env_version}"
