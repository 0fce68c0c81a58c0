"""The comparison page: models and baselines over a season, and two orders of one race side by side."""
from __future__ import annotations

from typing import Any

import pandas as pd
from fastapi import Request
from nicegui import ui

from f1_pipelines.serve.finishing_orders import GRID, PROMOTED, RESULT, OrderUnknown, checkpoints, order_of
from f1_pipelines.serve.notices import newest_result
from f1_pipelines.serve.pages.frame import RESPONSE_TIMEOUT_S, card, frame, in_thread, show_notices, warehouse_notices
from f1_pipelines.serve.pages.prediction_charts import order_slopes, season_form
from f1_pipelines.serve.published_warehouse import NoWarehouse, published
from f1_pipelines.serve.routes.predictions import comparison_of
from f1_pipelines.serve.schemas import Comparison

# Evaluation protocols in order of preference: first the one in which models train on each race after predicting it.
_PROTOCOLS = ["prequential_2026", "rolling_2019_2025", "holdout_2025"]
# Shown at first; a click on the legend adds the others.
_DEFAULT_PREDICTORS = ("champion", "champion_ewc", "grid", "qualifying", "rank_sum")
_METRIC_LABELS = {"spearman": "rank correlation", "top1": "winner correct",
                  "podium_overlap": "podium overlap", "mae_positions": "mean position error",
                  "log_loss_win": "log loss of the win"}
_ORDER_LABELS = {GRID: "grid", RESULT: "result", PROMOTED: "promoted model"}


def register() -> None:
    """Register the page."""

    @ui.page("/compare", response_timeout=RESPONSE_TIMEOUT_S)
    async def compare(request: Request) -> None:
        with frame("/compare", "Compare"):
            show_notices(warehouse_notices())
            try:
                seasons, models, last = await in_thread(_choices)
            except NoWarehouse:
                return
            await SeasonForm(seasons).show()
            await TwoOrders(seasons, models, request.query_params.get("weekend", last)).show()


class SeasonForm:
    """Card with the scores of models and baselines over a season."""

    def __init__(self, seasons: dict[int, list[str]]):
        with card("Season: rank correlation with the result by race"):
            self._season = ui.select(sorted(seasons, reverse=True), value=max(seasons, default=None), label="Season",
                                     on_change=self.show).classes("w-28").props("data-mark=form-season")
            self._content = ui.column().classes("w-full gap-2")

    async def show(self) -> None:
        """Show the selected season."""
        rows = await in_thread(_evaluation, self._season.value) if self._season.value else pd.DataFrame()
        self._content.clear()
        with self._content:
            if rows.empty:
                ui.label("This season has no evaluation yet: materialize ranking_evaluation.").props(
                    "data-mark=nothing")
                return
            weekends = list(dict.fromkeys(rows["weekend"]))
            means = rows.groupby("predictor")[list(_METRIC_LABELS)].mean().sort_values("spearman", ascending=False)
            wide = rows.pivot_table(index="weekend", columns="predictor", values="spearman", dropna=False)
            wide = wide.reindex(weekends)
            lines = {name: [None if pd.isna(value) else value for value in wide[name]] for name in means.index}
            shown = [name for name in lines if name in _DEFAULT_PREDICTORS]
            ui.echart(season_form(weekends, lines, shown)).classes("w-full h-96").props("data-mark=form")
            ui.label(f"Means over {len(weekends)} races, all starters, protocol {rows['protocol'].iloc[0]}:").classes(
                "text-caption opacity-80")
            table_rows = [{"predictor": name, **{column: "" if pd.isna(value) else f"{value:.3f}"
                                                 for column, value in mean.items()}} for name, mean in means.iterrows()]
            columns: list[dict[Any, Any]] = [{"name": "predictor", "label": "predictor", "field": "predictor",
                                              "align": "left"}, *(
                {"name": name, "label": label, "field": name, "align": "right", "sortable": True}
                for name, label in _METRIC_LABELS.items())]
            ui.table(rows=table_rows, columns=columns, row_key="predictor").props("dense flat hide-pagination").classes(
                "w-full pw-figures").props("data-mark=means")


class TwoOrders:
    """Card that compares two orders of one race."""

    def __init__(self, seasons: dict[int, list[str]], models: dict[str, str], weekend: str | None):
        """
        Args:
            seasons: Keys of weekends by season, in race order.
            models: Labels of the models by checkpoint id.
            weekend: The weekend to show first; None for the latest.
        """
        keys = [key for season in sorted(seasons, reverse=True) for key in reversed(seasons[season])]
        with card("Race: two orders side by side"):
            with ui.row().classes("w-full items-end gap-2"):
                self.weekend = ui.select(keys, value=weekend if weekend in keys else (keys[0] if keys else None),
                                         label="Weekend", with_input=True, on_change=self.show).classes(
                    "min-w-44 grow").props("data-mark=weekend")
                self.a = ui.select(_ORDER_LABELS | models, value=PROMOTED, label="From", on_change=self.show).classes(
                    "min-w-52 grow").props("data-mark=a")
                self.b = ui.select(_ORDER_LABELS | models, value=RESULT, label="To", on_change=self.show).classes(
                    "min-w-52 grow").props("data-mark=b")
            self._content = ui.column().classes("w-full gap-2")

    async def show(self) -> None:
        """Show the selected orders."""
        if self.weekend.value is None:
            return
        selected = self.weekend.value, self.a.value, self.b.value
        try:
            comparison = await in_thread(_comparison, *selected)
            message = ""
        except (OrderUnknown, NoWarehouse) as problem:
            comparison, message = None, str(problem.args[0])
        if selected != (self.weekend.value, self.a.value, self.b.value):
            return  # the selection changed meanwhile
        self._content.clear()
        with self._content:
            if comparison is None:
                ui.label(message).props("data-mark=no-order")
                return
            show_notices([sentence for sentence in comparison.notices if not sentence.startswith(("SAMPLE", "STALE"))])
            labels = [_ORDER_LABELS.get(name, name) for name in selected[1:]]
            for label, order in zip(labels, (comparison.a, comparison.b), strict=True):
                score = "" if order.spearman is None else f": rank correlation with the result {order.spearman:.2f}"
                model = f" ({order.name}, stage: {order.stage})" if order.stage else ""
                ui.label(f"{label[0].upper()}{label[1:]}{model}{score}").classes("text-sm")
            if comparison.spearman_between is not None:
                ui.label(f"Rank correlation of the two: {comparison.spearman_between:.2f}").classes(
                    "text-base font-medium").props("data-mark=between")
            names = labels[0], f"{labels[1]} "  # with the space, because ECharts merges equal names
            ui.echart(order_slopes(comparison,
                                   names)).classes("w-full").style(f"height: {60 + 24 * len(comparison.cars)}px").props(
                "data-mark=slopes")


def _choices() -> tuple[dict[int, list[str]], dict[str, str], str | None]:
    """Weekends with a grid or result by season, labels of models by checkpoint, and the last weekend with a result."""
    with published() as connection:
        rows = connection.execute(
            "SELECT season, weekend FROM race.calendar WHERE weekend IN (SELECT weekend FROM race.grid WHERE session = "
            "'race' UNION SELECT weekend FROM race.results) ORDER BY race_start").fetchall()
        seasons: dict[int, list[str]] = {}
        for season, key in rows:
            seasons.setdefault(season, []).append(key)
        rankers, last = checkpoints(connection).to_dict("records"), newest_result(connection)
    models = {row["checkpoint"]: f"{row['model']} {row['kind']} through {row['trained_through']} "
                                 f"({row['checkpoint']})" for row in rankers}
    return seasons, models, last[0] if last else None


def _evaluation(season: int) -> pd.DataFrame:
    """Rows of `ranking.evaluation` for a season, all starters, in race order, of the preferred protocol."""
    with published() as connection:
        return connection.execute(
            """SELECT e.* FROM ranking.evaluation e JOIN race.calendar c USING (weekend)
               WHERE c.season = ? AND population = 'starters'
               QUALIFY list_position(?, protocol) = min(list_position(?, protocol)) OVER ()
               ORDER BY c.race_start, predictor""", [season, _PROTOCOLS, _PROTOCOLS]).df()


def _comparison(weekend: str, a: str, b: str) -> Comparison:
    with published() as connection:
        return comparison_of(connection, order_of(connection, weekend, a), order_of(connection, weekend, b))
