"""The comparison: how models and baselines did over a season, and two orders of one race side by side."""
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

# Of several protocols that judged a race, the one in which models learn as they would have.
_PROTOCOLS = ["prequential_2026", "rolling_2019_2025", "holdout_2025"]
# A click on the legend shows the others: a dozen lines at once say nothing.
_DEFAULT_PREDICTORS = ("champion", "champion_ewc", "grid", "qualifying", "rank_sum")
_METRIC_LABELS = {"spearman": "rank correlation", "top1": "winner hit", "podium_overlap": "podium hit",
                  "mae_positions": "places off", "log_loss_win": "log loss win"}
_NAMES = {GRID: "the grid", RESULT: "the result", PROMOTED: "the promoted model"}


def register() -> None:
    """Make the page known."""

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
    """Models and baselines over a season."""

    def __init__(self, seasons: dict[int, list[str]]):
        with card("A season: rank correlation with the result, race by race"):
            self._season = ui.select(sorted(seasons, reverse=True), value=max(seasons, default=None), label="Season",
                                     on_change=self.show).classes("w-28").props("data-mark=form-season")
            self._answer = ui.column().classes("w-full gap-2")

    async def show(self) -> None:
        """The season that is chosen."""
        rows = await in_thread(_evaluated, self._season.value) if self._season.value else pd.DataFrame()
        self._answer.clear()
        with self._answer:
            if rows.empty:
                ui.label("Nothing of this season is judged yet: materialize ranking_evaluation.").props(
                    "data-mark=nothing")
                return
            weekends = list(dict.fromkeys(rows["weekend"]))
            means = rows.groupby("predictor")[list(_METRIC_LABELS)].mean().sort_values("spearman", ascending=False)
            wide = rows.pivot_table(index="weekend", columns="predictor", values="spearman", dropna=False)
            wide = wide.reindex(weekends)
            lines = {name: [None if pd.isna(value) else value for value in wide[name]] for name in means.index}
            shown = [name for name in lines if name in _DEFAULT_PREDICTORS]
            ui.echart(season_form(weekends, lines, shown)).classes("w-full h-96").props("data-mark=form")
            ui.label(f"{len(weekends)} races, all starters, by protocol {rows['protocol'].iloc[0]}; means:").classes(
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
    """Two orders of one race."""

    def __init__(self, seasons: dict[int, list[str]], models: dict[str, str], first: str | None):
        """`first`: the weekend to begin with."""
        keys = [key for season in sorted(seasons, reverse=True) for key in reversed(seasons[season])]
        with card("A race: two orders side by side"):
            with ui.row().classes("w-full items-end gap-2"):
                self.weekend = ui.select(keys, value=first if first in keys else (keys[0] if keys else None),
                                         label="Weekend", with_input=True, on_change=self.show).classes(
                    "min-w-44 grow").props("data-mark=weekend")
                self.a = ui.select(_NAMES | models, value=PROMOTED, label="From", on_change=self.show).classes(
                    "min-w-52 grow").props("data-mark=a")
                self.b = ui.select(_NAMES | models, value=RESULT, label="To", on_change=self.show).classes(
                    "min-w-52 grow").props("data-mark=b")
            self._answer = ui.column().classes("w-full gap-2")

    async def show(self) -> None:
        """The orders that are chosen."""
        if self.weekend.value is None:
            return
        chosen = self.weekend.value, self.a.value, self.b.value
        try:
            comparison = await in_thread(_compared, *chosen)
            problem = ""
        except (OrderUnknown, NoWarehouse) as refusal:
            comparison, problem = None, str(refusal.args[0])
        if chosen != (self.weekend.value, self.a.value, self.b.value):
            return  # somebody chose again meanwhile
        self._answer.clear()
        with self._answer:
            if comparison is None:
                ui.label(problem).props("data-mark=no-order")
                return
            show_notices([sentence for sentence in comparison.notices if not sentence.startswith(("SAMPLE", "STALE"))])
            for name, side in ((_NAMES.get(chosen[1], chosen[1]), comparison.a),
                               (_NAMES.get(chosen[2], chosen[2]), comparison.b)):
                against = "" if side.spearman is None else f": rank correlation with the result {side.spearman:.2f}"
                by = f" ({side.name}, known: {side.stage})" if side.stage else ""
                ui.label(f"{name[0].upper()}{name[1:]}{by}{against}").classes("text-sm")
            if comparison.spearman_between is not None:
                ui.label(f"Between the two: {comparison.spearman_between:.2f}").classes("text-base font-medium").props(
                    "data-mark=between")
            names = _axis(chosen[1], comparison, "a"), _axis(chosen[2], comparison, "b")
            ui.echart(order_slopes(comparison,
                                   names)).classes("w-full").style(f"height: {60 + 24 * len(comparison.cars)}px").props(
                "data-mark=slopes")


def _axis(name: str, comparison: Comparison, side: str) -> str:
    return f"{_NAMES.get(name, name)}{'' if side == 'a' else ' '}"  # ECharts takes equal names for one place


def _choices() -> tuple[dict[int, list[str]], dict[str, str], str | None]:
    """Weekends with a grid or a result by season, in race order; models by checkpoint; the last weekend with a result.
    """
    with published() as connection:
        rows = connection.execute(
            "SELECT season, weekend FROM race.calendar WHERE weekend IN (SELECT weekend FROM race.grid WHERE session = "
            "'race' UNION SELECT weekend FROM race.results) ORDER BY race_start").fetchall()
        seasons: dict[int, list[str]] = {}
        for season, key in rows:
            seasons.setdefault(season, []).append(key)
        known, last = checkpoints(connection).to_dict("records"), newest_result(connection)
    models = {row["checkpoint"]: f"{row['model']} {row['kind']} through {row['trained_through']} "
                                 f"({row['checkpoint']})" for row in known}
    return seasons, models, last[0] if last else None


def _evaluated(season: int) -> pd.DataFrame:
    """Rows of `ranking.evaluation` of that season, of all starters, in race order, by one protocol."""
    with published() as connection:
        return connection.execute(
            """SELECT e.* FROM ranking.evaluation e JOIN race.calendar c USING (weekend)
               WHERE c.season = ? AND population = 'starters'
               QUALIFY list_position(?, protocol) = min(list_position(?, protocol)) OVER ()
               ORDER BY c.race_start, predictor""", [season, _PROTOCOLS, _PROTOCOLS]).df()


def _compared(weekend: str, a: str, b: str) -> Comparison:
    with published() as connection:
        return comparison_of(connection, order_of(connection, weekend, a), order_of(connection, weekend, b))
