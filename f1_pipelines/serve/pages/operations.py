"""The operations page: recent runs, age of the data, and buttons that start runs with the API key."""
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
_STATUS_CELL = """<q-td :props="props"><q-badge :color="props.row.colour">{{ props.value }}</q-badge></q-td>"""
_LINK_CELL = """<q-td :props="props"><a :href="props.row.link" target="_blank" rel="noopener" class="pw-link">
{{ props.value }}</a></q-td>"""


def register(operations: Operations) -> None:
    """Register the page."""

    @ui.page("/operations", response_timeout=RESPONSE_TIMEOUT_S)
    async def page() -> None:
        with frame("/operations", "Operations"):
            show_notices(warehouse_notices())
            content = OperationsPage(operations)
            await content.refresh()
            ui.timer(_REFRESH_S, content.refresh, immediate=False)


class OperationsPage:
    """An open page."""

    def __init__(self, operations: Operations):
        self._operations, url = operations, operations.dagster.url
        with card("Start a run"):
            self._show_start_form()
        with card("Recent runs"):
            self._dagster_status = ui.label().classes("text-sm").props("data-mark=dagster")
            self._runs = ui.table(rows=[], columns=_columns("status", "job", "weekend", "started", "duration", "run"),
                                  row_key="id").props("dense flat hide-pagination").classes(
                "w-full pw-figures").props("data-mark=runs")
            self._runs.add_slot("body-cell-status", _STATUS_CELL)
            self._runs.add_slot("body-cell-run", _LINK_CELL)
        with card("Age of the data"):
            self._newest_result = ui.label().classes("text-sm").props("data-mark=newest")
            self._freshness = ui.table(rows=[], columns=_columns("group", "asset", "materialized", "age"),
                                       row_key="asset").props("dense flat hide-pagination").classes(
                "w-full pw-figures").props("data-mark=fresh")
            self._freshness.add_slot("body-cell-asset", _LINK_CELL)
        with card("Dagster"), ui.row().classes("gap-2"):
            for label, path in (("Asset graph", "/asset-groups"), ("Runs", "/runs"), ("Automation", "/automation"),
                                ("Jobs", "/jobs")):
                ui.link(label, f"{url}{path}", new_tab=True).classes("pw-link")

    async def refresh(self) -> None:
        """Read the status from Dagster and the warehouse."""
        api = self._operations.dagster
        self._newest_result.text = await in_thread(_newest_result_text)
        try:
            runs = await in_thread(api.runs, _RUNS_SHOWN)
            freshness = await in_thread(api.asset_freshness)
            problem = await in_thread(api.queue_problem)
        except DagsterUnavailable as unavailable:
            self._dagster_status.text = str(unavailable)
            return
        self._dagster_status.text = problem or "Dagster is running."
        self._runs.rows = [_run_row(run, api.url) for run in runs]
        self._freshness.rows = [_freshness_row(asset, api.url) for asset in freshness]

    def _show_start_form(self) -> None:
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
                     "practice, qualifying, grid, forecast (job pre_race)"),
                    ("After the race", "sports_score", self._operations.finish,
                     "results, laps, training, evaluation (job post_race)"),
                    ("Finetune", "model_training", self._operations.finetune,
                     f"train the ranker up to this weekend; last result: {last or 'none'}")):
                ui.button(label, icon=icon, on_click=lambda start=start: self._start_run(start)).props(
                    "no-caps").tooltip(tip).props(f"data-mark={label.lower().replace(' ', '-')}")

    async def _start_run(self, start: Callable[[str], Run]) -> None:
        try:
            self._operations.check(self._key.value)
            run = await in_thread(start, self._weekend.value)
        except (KeyRefused, DagsterUnavailable, NoWarehouse, OrderUnknown, UnknownWeekend) as problem:
            ui.notify(str(problem.args[0]), type="negative", multi_line=True)
            return
        ui.notify(f"{run.job} for {run.weekend}: run {run.id[:8]}, status {run.state}", type="positive")
        await self.refresh()


def _columns(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "label": name, "field": name, "align": "left"} for name in names]


def _run_row(run: Run, url: str) -> dict[str, object]:
    end = run.ended_at or datetime.now(UTC)
    duration = f"{(end - run.started_at).total_seconds():.0f} s" if run.started_at else ""
    job = ", ".join(run.assets) if run.job == ASSET_JOB else run.job
    return {"id": run.id, "status": run.state, "colour": _COLOURS.get(run.state, "grey-7"),
            "job": job[:60] + ("…" if len(job) > 60 else ""), "weekend": run.weekend or "",
            "started": f"{run.started_at or run.created_at:%Y-%m-%d %H:%M:%S}", "duration": duration,
            "run": run.id[:8], "link": f"{url}/runs/{run.id}"}


def _freshness_row(row: AssetFreshness, url: str) -> dict[str, object]:
    return {"group": row.group, "asset": row.asset,
            "materialized": f"{row.materialized_at:%Y-%m-%d %H:%M} UTC" if row.materialized_at else "never",
            "age": _age(row.materialized_at), "link": f"{url}/assets/{row.asset}"}


def _age(instant: datetime | None) -> str:
    if instant is None:
        return ""
    minutes = (datetime.now(UTC) - instant).total_seconds() / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h" if minutes < 2880 \
        else f"{minutes / 1440:.0f} days"


def _newest_result_text() -> str:
    try:
        with published() as connection:
            newest = newest_result(connection)
    except NoWarehouse:
        return "There is no warehouse yet."
    return f"Last stored result: {newest[0]}, fetched {newest[1]:%Y-%m-%d %H:%M} UTC." if newest else \
        "There is no result yet."


def _weekends() -> tuple[list[str], str | None, str | None]:
    """Keys of all loaded weekends, of the next one, and of the last one with a result."""
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
