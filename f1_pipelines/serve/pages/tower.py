"""Parts of the live page beside the charts: timing table, log of commands, and score bars."""
from __future__ import annotations

from nicegui import ui

from f1_pipelines.serve.live_race import CarOnLap, Lap, LiveRace
from f1_pipelines.serve.routes.predictions import driver_name
from f1_pipelines.sim.scoring.dimensions import WEIGHTS

_MESSAGE_ICONS = {"RADIO_DRIVER": "headset_mic", "DRAFT_PIT_WALL": "edit_note", "BRIEF_MEDIA": "mic"}
_NAMES = {"race": "Race result", "strategy": "Strategy", "tyres": "Tyres", "fuel": "Fuel", "comms": "Messages",
          "operations": "Operations"}
_COLUMNS = [
    {"name": "position", "label": "P", "field": "position", "align": "right"},
    {"name": "car", "label": "car", "field": "car", "align": "left"},
    {"name": "gap", "label": "gap s", "field": "gap", "align": "right"},
    {"name": "time", "label": "lap s", "field": "time", "align": "right"},
    {"name": "tyre", "label": "tyre, age", "field": "tyre", "align": "left"},
    {"name": "stops", "label": "stops", "field": "stops", "align": "right"},
]
_TYRE = """<q-td :props="props"><span :class="'pw-tyre pw-' + props.row.compound">{{ props.value }}</span>
<span class="q-ml-xs">{{ props.row.age }}</span></q-td>"""


class TimingTower:
    """Table of the cars by position after a lap."""

    def __init__(self) -> None:
        self._table = ui.table(rows=[], columns=_COLUMNS, row_key="number").props("dense flat hide-pagination").classes(
            "w-full pw-figures").props("data-mark=tower")
        self._table.props[":table-row-class-fn"] = "row => row.ours ? 'pw-ours' : ''"
        self._table.add_slot("body-cell-tyre", _TYRE)

    def show(self, lap: Lap) -> None:
        self._table.rows = [_row(car) for car in lap.cars]


class DecisionLog:
    """Log of commands, newest first, with reason, reply and reward."""

    def __init__(self) -> None:
        with ui.scroll_area().classes("w-full h-96"):
            self._list = ui.column().classes("w-full gap-0").props("data-mark=log")
        self._shown = 0

    def begin(self, race: LiveRace) -> None:
        """Clear the log for a new race."""
        self._list.clear()
        self._shown = 1  # lap 0 is the grid

    def show(self, race: LiveRace) -> None:
        """Add the laps driven since the last call."""
        for lap in race.laps[self._shown:]:
            with self._list:
                _entry(lap).move(target_index=0)
        self._shown = max(self._shown, len(race.laps))


class ScoreBars:
    """Bars for the dimensions of the score, each 0 to 1 with its weight. They are computed at the end of the race."""

    def __init__(self) -> None:
        self._total = ui.label().classes("text-base font-medium pw-figures").props("data-mark=score")
        self._bars: dict[str, tuple[ui.linear_progress, ui.label]] = {}
        for name, weight in WEIGHTS.items():
            with ui.row().classes("w-full items-center no-wrap gap-2"):
                ui.label(f"{_NAMES[name]} {weight:.0%}").classes("text-caption w-32 shrink-0")
                bar = ui.linear_progress(0.0, show_value=False, size="10px").classes("grow")
                self._bars[name] = bar, ui.label("–").classes("text-caption w-10 text-right pw-figures").props(
                    f"data-mark={name}")

    def begin(self) -> None:
        """Reset the bars for a new race."""
        for bar, label in self._bars.values():
            bar.value, label.text = 0.0, "–"

    def show(self, race: LiveRace) -> None:
        """Show the dimensions after the race, or the sum of the rewards until then."""
        if race.end is None:
            self._total.text = f"{race.laps[-1].score_so_far:.3f} so far; the dimensions are scored after the race"
            return
        self._total.text = f"{race.end.score:.3f} of 1"
        for name, (bar, label) in self._bars.items():
            bar.value, label.text = race.end.dimensions[name], f"{race.end.dimensions[name]:.2f}"


def _row(car: CarOnLap) -> dict[str, object]:
    running = car.gap_s is not None
    return {"number": car.number, "ours": car.ours, "position": car.position if running else "–",
            "car": f"#{car.number} {driver_name(car.driver)}".strip() + (" (ours)" if car.ours else ""),
            "gap": f"+{car.gap_s:.1f}" if running else car.standing,
            "time": f"{car.lap_time_s:.2f}" if car.lap_time_s else "", "tyre": car.compound[0].upper(),
            "compound": car.compound, "age": (f"{car.tyre_age_laps}" + " PIT" * car.stopped) if running else "",
            "stops": car.stops}


def _entry(lap: Lap) -> ui.row:
    """An entry of the log. All of it is shown as text, because a model may output anything."""
    call = lap.call
    with ui.row().classes("w-full no-wrap items-start gap-2 py-1 border-b border-gray-500/20") as row:
        ui.label(str(lap.lap)).classes("w-6 text-right font-bold pw-figures shrink-0")
        if call is None:
            ui.label("no command (after DONE)").classes("text-sm opacity-70")
            return row
        ui.icon(_MESSAGE_ICONS.get(call.command.split(" ")[0], "error" if call.error else "chevron_right"), size="xs")
        with ui.column().classes("gap-0 min-w-0 grow"):
            ui.label(call.command).classes("text-sm font-medium break-words").props("data-mark=called")
            for text, style in ((call.error and f"invalid, the car stays out: {call.error}", "text-negative"),
                                (call.answer if not call.error else "", "opacity-90"),
                                (call.reason, "italic opacity-70")):
                if text:
                    ui.label(text).classes(f"text-caption break-words {style}")
        ui.label(f"{call.reward:+.3f}").classes("text-caption pw-figures shrink-0").tooltip("reward of this lap")
    return row
