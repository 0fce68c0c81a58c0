"""The operations: what ran, how fresh the data are, and, with the key, starting something."""
from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from nicegui import ui

from f1_pipelines.identity.weekends import UnknownWeekend
from f1_pipelines.serve.dagster_api import ASSET_JOB, AssetFreshness, DagsterUnavailable, Run
from f1_pipelines.serve.finishing_orders import OrderUnknown, upcoming_weekend
from f1_pipelines.serve.notices import newest_result
from f1_pipelines.serve.pages.frame import RESPONSE_TIMEOUT_S, card, frame, in_thread, show_notices, warehouse_notices
from f1_pipelines.serve.published_warehouse import NoWarehouse, published
from f1_pipelines.serve.routes.operations import NO_KEY, KeyRefused, Operations
from f1_pipelines.serve.routes.predictions import weekends_of

_RUNS_SHOWN, _REFRESH_S = 15, 5.0
_COLOURS = {"SUCCESS": "positive", "FAILURE": "negative", "CANCELED": "grey", "STARTED": "info"}
_STATE = """<q-td :props="props"><q-badge :color="props.row.colour">{{ props.value }}</q-badge></q-td>"""
_LINK = """<q-td :props="props"><a :href="props.row.link" target="_blank" rel="noopener" class="pw-link">
{{ props.value }}</a></q-td>"""


def register(operations: Operations) -> None:
    """Make the page known."""

    @ui.page("/operations", response_timeout=RESPONSE_TIMEOUT_S)
    async def page() -> None:
        with frame("/operations", "Operations"):
            show_notices(warehouse_notices())
            shown = OperationsPage(operations)
            await shown.look()
            ui.timer(_REFRESH_S, shown.look, immediate=False)


class OperationsPage:
    """One open page."""

    def __init__(self, operations: Operations):
        self._operations, url = operations, operations.dagster.url
        with card("Start something"):
            self._start()
        with card("Recent runs"):
            self._state = ui.label().classes("text-sm").props("data-mark=dagster")
            self._runs = ui.table(rows=[], columns=_columns("state", "job", "weekend", "started", "took", "run"),
                                  row_key="id").props("dense flat hide-pagination").classes(
                "w-full pw-figures").props("data-mark=runs")
            self._runs.add_slot("body-cell-state", _STATE)
            self._runs.add_slot("body-cell-run", _LINK)
        with card("How fresh everything is"):
            self._newest = ui.label().classes("text-sm").props("data-mark=newest")
            self._fresh = ui.table(rows=[], columns=_columns("group", "asset", "made", "age"), row_key="asset").props(
                "dense flat hide-pagination").classes("w-full pw-figures").props("data-mark=fresh")
            self._fresh.add_slot("body-cell-asset", _LINK)
        with card("Dagster"), ui.row().classes("gap-2"):
            for label, path in (("Asset graph", "/asset-groups"), ("Runs", "/runs"), ("Automation", "/automation"),
                                ("Jobs", "/jobs")):
                ui.link(label, f"{url}{path}", new_tab=True).classes("pw-link")

    async def look(self) -> None:
        """Ask Dagster and the warehouse how things stand."""
        api = self._operations.dagster
        self._newest.text = await in_thread(_newest_result_text)
        try:
            runs = await in_thread(api.runs, _RUNS_SHOWN)
            fresh = await in_thread(api.materialized)
            idle = await in_thread(api.idle_queue)
        except DagsterUnavailable as problem:
            self._state.text = str(problem)
            return
        self._state.text = idle or "Dagster is running and takes up what is asked for."
        self._runs.rows = [_run_row(ran, api.url) for ran in runs]
        self._fresh.rows = [_freshness_row(made, api.url) for made in fresh]

    def _start(self) -> None:
        if not self._operations.has_key:
            ui.label(NO_KEY[0].upper() + NO_KEY[1:] + ".").classes("text-sm").props("data-mark=no-key")
            return
        weekends, upcoming, last = _weekends()
        with ui.row().classes("w-full items-end gap-2"):
            self._key = ui.input("API key", password=True).props("autocomplete=off data-mark=key").classes("min-w-44")
            self._weekend = ui.select(weekends, value=upcoming or (weekends[-1] if weekends else None),
                                      label="Weekend", with_input=True).classes("min-w-52 grow").props(
                "data-mark=weekend")
            for label, icon, start, tip in (
                    ("Before the race", "cloud_download", self._operations.ingest,
                     "practice, qualifying, grid, prediction: the job pre_race"),
                    ("After the race", "sports_score", self._operations.finish,
                     "results, laps, learning, evaluation: the job post_race"),
                    ("Finetune", "model_training", self._operations.finetune,
                     f"learn through that weekend; the last with a result is {last or 'not stored yet'}")):
                ui.button(label, icon=icon, on_click=lambda start=start: self._begin(start)).props(
                    "no-caps").tooltip(tip).props(f"data-mark={label.lower().replace(' ', '-')}")

    async def _begin(self, start: Callable[[str], Run]) -> None:
        try:
            self._operations.check(self._key.value)
            begun = await in_thread(start, self._weekend.value)
        except (KeyRefused, DagsterUnavailable, NoWarehouse, OrderUnknown, UnknownWeekend) as problem:
            ui.notify(str(problem.args[0]), type="negative", multi_line=True)
            return
        ui.notify(f"{begun.job} of {begun.weekend}: run {begun.id[:8]} is {begun.state}", type="positive")
        await self.look()


def _columns(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "label": name, "field": name, "align": "left"} for name in names]


def _run_row(ran: Run, url: str) -> dict[str, object]:
    until = ran.ended_at or datetime.now(UTC)
    took = f"{(until - ran.started_at).total_seconds():.0f} s" if ran.started_at else ""
    what = ", ".join(ran.assets) if ran.job == ASSET_JOB else ran.job
    return {"id": ran.id, "state": ran.state, "colour": _COLOURS.get(ran.state, "grey-7"),
            "job": what[:60] + ("…" if len(what) > 60 else ""), "weekend": ran.weekend or "",
            "started": f"{ran.started_at or ran.created_at:%Y-%m-%d %H:%M:%S}", "took": took, "run": ran.id[:8],
            "link": f"{url}/runs/{ran.id}"}


def _freshness_row(made: AssetFreshness, url: str) -> dict[str, object]:
    return {"group": made.group, "asset": made.asset,
            "made": f"{made.at:%Y-%m-%d %H:%M} UTC" if made.at else "never here",
            "age": _age(made.at), "link": f"{url}/assets/{made.asset}"}


def _age(at: datetime | None) -> str:
    if at is None:
        return ""
    minutes = (datetime.now(UTC) - at).total_seconds() / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h" if minutes < 2880 \
        else f"{minutes / 1440:.0f} days"


def _newest_result_text() -> str:
    try:
        with published() as connection:
            newest = newest_result(connection)
    except NoWarehouse:
        return "Nothing is stored yet."
    return f"Last result stored: {newest[0]}, fetched {newest[1]:%Y-%m-%d %H:%M} UTC." if newest else \
        "No result is stored yet."


def _weekends() -> tuple[list[str], str | None, str | None]:
    """Keys that are loaded, the next one, and the last one with a result."""
    try:
        with published() as connection:
            keys = [row.weekend for row in weekends_of(connection) if row.state != "cancelled"]
            newest = newest_result(connection)
            try:
                upcoming = upcoming_weekend(connection)
            except OrderUnknown:
                upcoming = None
    except NoWarehouse:
        return [], None, None
    return keys, upcoming, newest[0] if newest else None
