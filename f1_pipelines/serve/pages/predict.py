"""The prediction page: a forecast with probabilities, and the result of past races."""
from __future__ import annotations

from fastapi import Request
from nicegui import ui

from f1_pipelines.serve.finishing_orders import OrderUnknown, predicted_order, season_hits, upcoming_weekend
from f1_pipelines.serve.pages.frame import RESPONSE_TIMEOUT_S, card, frame, in_thread, show_notices, warehouse_notices
from f1_pipelines.serve.pages.prediction_charts import hits_by_race, probabilities
from f1_pipelines.serve.published_warehouse import NoWarehouse, published
from f1_pipelines.serve.routes.predictions import constructor_name, prediction_of, weekends_of
from f1_pipelines.serve.schemas import Prediction, WeekendRow
from f1_pipelines.tables.features import STAGES

LATEST_STAGE = "latest"
_HIDDEN_ON_PHONES = "gt-xs"
_COLUMNS = [
    {"name": "place", "label": "P", "field": "predicted_position", "align": "right"},
    {"name": "name", "label": "driver", "field": "name", "align": "left"},
    {"name": "team", "label": "constructor", "field": "team", "align": "left", "classes": _HIDDEN_ON_PHONES,
     "headerClasses": _HIDDEN_ON_PHONES},
    *({"name": name, "label": name[2:], "field": name, "align": "right"} for name in ("p_win", "p_podium", "p_points")),
    {"name": "expected", "label": "expected", "field": "expected", "align": "right"},
    {"name": "actual", "label": "actual", "field": "actual", "align": "right"},
]
_PROBABILITY_CELL = """<q-td :props="props"><div class="row items-center no-wrap justify-end">
<q-linear-progress :value="props.value" size="6px" class="q-mr-sm gt-xs" style="width: 2.5rem"></q-linear-progress>
<span style="min-width: 3em">{{ (props.value * 100).toFixed(1) }} %</span></div></q-td>"""
_EXACT_MATCH_CELL = """<q-td :props="props">{{ props.value }}<q-icon v-if="props.row.hit" name="check_circle"
color="positive" class="q-ml-xs"></q-icon></q-td>"""


def register() -> None:
    """Register the page."""

    @ui.page("/predict", response_timeout=RESPONSE_TIMEOUT_S)
    async def predict(request: Request) -> None:
        with frame("/predict", "Predict"):
            try:
                rows, upcoming = await in_thread(_weekends)
            except NoWarehouse:
                show_notices(warehouse_notices())
                return
            await PredictPage(rows, request.query_params.get("weekend") or upcoming).show()


class PredictPage:
    """An open page."""

    def __init__(self, rows: list[WeekendRow], key: str | None):
        self._rows = {row.weekend: row for row in rows}
        first = key if key in self._rows else next(reversed(self._rows), None)
        seasons = sorted({row.season for row in rows}, reverse=True)
        with ui.card().classes("w-full p-3"), ui.row().classes("w-full items-end gap-2"):
            self.season = ui.select(seasons, value=self._rows[first].season if first else None, label="Season",
                                    on_change=self._change_season).classes("w-24").props("data-mark=season")
            self.weekend = ui.select(self._weekend_labels(), value=first, label="Weekend",
                                     on_change=self.show).classes("min-w-64 grow").props("data-mark=weekend")
            self.stage = ui.select([LATEST_STAGE, *STAGES], value=LATEST_STAGE, label="Data up to",
                                   on_change=self.show).classes("min-w-44 grow").props("data-mark=stage")
        self._content = ui.column().classes("w-full gap-3")

    async def show(self) -> None:
        """Show the forecast for the selected weekend and stage."""
        if self.weekend.value is None:
            return
        stage = None if self.stage.value == LATEST_STAGE else self.stage.value
        self._content.clear()
        with self._content:
            try:
                prediction, hits = await in_thread(_prediction_and_hits, self.weekend.value, stage, self.season.value)
            except (OrderUnknown, NoWarehouse) as problem:
                show_notices(warehouse_notices())
                ui.label(str(problem.args[0])).classes("text-base").props("data-mark=nothing")
                return
            _show_prediction(prediction, hits)

    async def _change_season(self) -> None:
        labels = self._weekend_labels()
        with_forecast = [key for key in labels if self._rows[key].stages]
        self.weekend.set_options(labels, value=(with_forecast or list(labels))[-1])

    def _weekend_labels(self) -> dict[str, str]:
        return {row.weekend: f"{row.round or '–'} {row.event} ({row.state})" for row in self._rows.values()
                if row.season == self.season.value}


def _show_prediction(prediction: Prediction, hits: list[dict[str, object]]) -> None:
    show_notices(prediction.notices)
    over = prediction.spearman is not None
    with ui.card().classes("w-full p-3 gap-1"):
        ui.label(f"{prediction.event} {prediction.race_start:%Y}").classes("text-h6").props("data-mark=event")
        ui.label(f"{prediction.circuit}, race {prediction.race_start:%Y-%m-%d %H:%M} UTC").classes("text-sm")
        ui.label(f"Model {prediction.model} ({prediction.kind or 'no longer stored'}, trained through "
                 f"{prediction.trained_through or '?'}) · data up to: {prediction.stage} · "
                 f"{'stored' if prediction.stored else 'computed'} {prediction.made_at:%Y-%m-%d %H:%M} UTC").classes(
            "text-caption opacity-80").props("data-mark=model")
        if over:
            ui.label(f"{prediction.exact_matches} of {len(prediction.ranking)} positions exact · rank correlation with "
                     f"the result {prediction.spearman:.2f}").classes("text-base font-medium").props("data-mark=hits")
    with ui.grid().classes("w-full gap-3 grid-cols-1 lg:grid-cols-12"):
        with card("Forecast", "lg:col-span-8 min-w-0"):
            rows = [car.model_dump() | {
                "team": constructor_name(car.constructor), "hit": bool(car.exact_match),
                "expected": "" if car.expected_position is None else f"{car.expected_position:.1f}",
                "actual": "" if car.actual_position is None else car.actual_position} for car in prediction.ranking]
            has_probabilities = prediction.ranking[0].p_win is not None
            columns = [column for column in _COLUMNS if (over or column["name"] != "actual")
                       and (has_probabilities or not column["name"].startswith("p_"))]
            table = ui.table(rows=rows, columns=columns, row_key="driver").props("dense flat hide-pagination").classes(
                "w-full pw-figures").props("data-mark=ranking")
            for name in ("p_win", "p_podium", "p_points"):
                table.add_slot(f"body-cell-{name}", _PROBABILITY_CELL)
            table.add_slot("body-cell-actual", _EXACT_MATCH_CELL)
        with ui.column().classes("lg:col-span-4 gap-3 min-w-0"):
            if has_probabilities:
                with card("Probabilities of the first ten"):
                    ui.echart(probabilities(prediction.ranking[:10])).classes("w-full h-80")
            if hits:
                with card("Season so far: exact positions and rank correlation with the result"):
                    ui.echart(hits_by_race(hits)).classes("w-full h-64")


def _weekends() -> tuple[list[WeekendRow], str | None]:
    """All loaded weekends and the key of the next one."""
    with published() as connection:
        rows = weekends_of(connection)
        try:
            return rows, upcoming_weekend(connection)
        except OrderUnknown:
            return rows, None


def _prediction_and_hits(key: str, stage: str | None, season: int) -> tuple[Prediction, list[dict[str, object]]]:
    with published() as connection:
        hits = season_hits(connection, season, stage).to_dict("records")
        return prediction_of(connection, predicted_order(connection, key, stage=stage)), hits
