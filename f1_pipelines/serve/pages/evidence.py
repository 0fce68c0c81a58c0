"""The training page: evaluation and training results as tables (with CSV downloads), curves and figures."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import duckdb
import pandas as pd
from nicegui import run, ui

from f1_pipelines.serve.pages.frame import RESPONSE_TIMEOUT_S, card, frame, show_notices, warehouse_notices
from f1_pipelines.serve.pages.training_charts import score_intervals, training_curves
from f1_pipelines.serve.published_warehouse import NoWarehouse, published
from f1_pipelines.settings import settings

PICTURES_URL = "/pictures"  # below the root of the pages
MAX_ROWS = 400  # on the page; the CSV file has all rows and columns
# Metrics with a chart, in this order; the CSV file has all.
CURVE_METRICS = ("loss", "selection_score", "score", "entropy", "kl_to_sft", "frac_reward_zero_std", "parse_failures",
                 "reward_range", "mean_token_accuracy", "tokens_per_s")
_ENGINEERS = "sft_dataset,sft_engineer,grpo_engineer"


@dataclass(frozen=True)
class EvidenceTable:
    """A table of the warehouse: heading, shown columns, order of the rows and the assets that fill it."""

    heading: str
    table: str
    columns: tuple[str, ...]
    order_by: str
    assets: str


TABLES = (
    EvidenceTable("Race engineers: leaderboard", "strategy.leaderboard",
                  ("policy", "variant", "family", "n", "mean", "low", "high", "gap_closed", "regret", "parse_failures",
                   "checkpoint"), "variant, family, mean DESC", "strategy_evaluation"),
    EvidenceTable("Race engineers: checkpoints", "strategy.engineers",
                  ("checkpoint", "stage", "profile", "parent", "n_turns", "n_parameters", "device", "seconds",
                   "promoted", "made_at"), "made_at DESC", _ENGINEERS),
    EvidenceTable("Race engineers: postmortems", "strategy.postmortems",
                  ("policy", "family", "seed", "kind", "lap", "command", "better", "cost", "lesson"),
                  "policy, variant, cost DESC NULLS LAST", "strategy_evaluation"),
    EvidenceTable("Rankers: means over races; difference to the grid with 95 % interval", "ranking.evaluation_summary",
                  ("protocol", "population", "predictor", "n_races", "spearman", "delta_spearman", "delta_low",
                   "delta_high", "top1", "podium_overlap", "mae_positions", "log_loss_win"),
                  "protocol, population DESC, spearman DESC", "ranking_evaluation"),
    EvidenceTable("Rankers: updates after each race", "ranking.updates",
                  ("weekend", "model", "checkpoint", "method", "n_races", "spearman_before", "spearman_after",
                   "spearman_grid", "old_season_before", "old_season_after", "seconds"), "model, created_at, rowid",
                  "ewc_ranker --partition WEEKEND"),
    EvidenceTable("Simulator: validation against real races", "sim.validation_summary",
                  ("method", "races", "n_races", "spearman", "places_off", "winner_right", "lap_mae_s", "stop_error_s"),
                  "method, races", "simulator_validation"),
)


def register() -> None:
    """Register the page."""

    @ui.page("/evidence", response_timeout=RESPONSE_TIMEOUT_S)
    async def evidence() -> None:
        with frame("/evidence", "Training results"):
            show_notices(warehouse_notices())
            await _show_leaderboard()
            await _show_pictures()
            await _show_curves()
            for table in TABLES:
                with card(table.heading):
                    _show_table(table, await run.io_bound(_rows,
                                                          f"SELECT * FROM {table.table} ORDER BY {table.order_by}"))


async def _show_curves() -> None:
    rows = await run.io_bound(_rows, "SELECT run, stage, step, metric, value FROM strategy.training_curve "
                                     "WHERE value IS NOT NULL ORDER BY stage, run, metric, step")
    with card("Race engineers: training curves"):
        if rows is None or rows.empty:
            _show_missing("strategy.training_curve", _ENGINEERS)
            return
        with ui.grid().classes("w-full gap-3 grid-cols-1 lg:grid-cols-2"):
            drawn = rows[rows["metric"].isin(CURVE_METRICS)]
            for (stage, metric), points in sorted(drawn.groupby(["stage", "metric"], sort=False), key=_chart_order):
                ui.echart(training_curves(f"{stage}: {metric}", points)).classes("w-full h-56")
        _show_download("strategy.training_curve", rows)


async def _show_leaderboard() -> None:
    board = await run.io_bound(_rows, "SELECT policy, family, mean, low, high, n FROM strategy.leaderboard "
                                      "WHERE family = 'all' AND variant = 'plain' ORDER BY mean")
    if board is not None and len(board):
        with card("Race engineers: mean score on held-out seeds, all families, with 95 % intervals"):
            ui.echart(score_intervals(board)).classes("w-full").style(f"height: {60 + 26 * len(board)}px").props(
                "data-mark=intervals")


async def _show_pictures() -> None:
    files = await run.io_bound(pictures)
    with card("Figures"):
        if not files:
            _show_missing("figures", "training_evidence,race_story")
            return
        with ui.grid().classes("w-full gap-3 grid-cols-1 lg:grid-cols-2"):
            for name in files:
                url = f"{PICTURES_URL}/{quote(name)}"
                with ui.column().classes("gap-1 min-w-0"):
                    ui.image(url).classes("w-full rounded bg-white").props("data-mark=picture")
                    ui.button(name, icon="download", on_click=lambda url=url: ui.download.from_url(url)).props(
                        "flat dense no-caps")


def _chart_order(curve: tuple[tuple[str, str], pd.DataFrame]) -> tuple[int, str]:
    (stage, metric), _ = curve
    return CURVE_METRICS.index(metric), stage


def pictures_folder() -> Path:
    """The folder to which assets write their figures."""
    return settings().f1_warehouse.with_name("pictures")


def pictures() -> list[str]:
    """Paths of the figures relative to that folder, the newest first."""
    folder = pictures_folder()
    files = sorted(folder.rglob("*.png"), key=lambda path: (-path.stat().st_mtime, path.name))
    return [path.relative_to(folder).as_posix() for path in files]


def _show_table(table: EvidenceTable, rows: pd.DataFrame | None) -> None:
    if rows is None or rows.empty:
        _show_missing(table.table, table.assets)
        return
    texts = rows[list(table.columns)].head(MAX_ROWS).map(_cell_text)
    columns = [{"name": column, "label": column.replace("_", " "), "field": column, "sortable": True,
                "align": "right" if pd.api.types.is_numeric_dtype(rows[column]) else "left"} for column in texts]
    ui.table(rows=[{"id": number, **row} for number, row in enumerate(texts.to_dict("records"))], columns=columns,
             pagination={"rowsPerPage": 12}).props(f"dense flat data-mark={table.table}").classes("w-full pw-figures")
    _show_download(table.table, rows)


def _show_download(name: str, rows: pd.DataFrame) -> None:
    file = f"{name}.csv"
    ui.button(f"{file}, {len(rows)} rows", icon="download", on_click=lambda: ui.download.content(
        rows.to_csv(index=False), file, "text/csv")).props(f"flat dense no-caps data-mark=download-{name}")


def _show_missing(name: str, assets: str) -> None:
    with ui.row().classes("items-center gap-2"):
        ui.icon("hourglass_empty")
        ui.label(f"{name}: no data yet. To create it, run").classes("text-sm").props("data-mark=not-yet")
        ui.label(f"dagster asset materialize -m f1_pipelines.definitions --select {assets}").classes(
            "font-mono text-xs select-all rounded bg-gray-500/15 px-2 py-1 break-all")


def _rows(query: str) -> pd.DataFrame | None:
    """Query the published warehouse; None if it does not exist or lacks the table."""
    try:
        with published() as connection:
            return connection.execute(query).df()
    except (NoWarehouse, duckdb.CatalogException, duckdb.BinderException):
        return None


def _cell_text(value: object) -> object:
    """Format a cell: floats with three decimals, times to the minute, empty if missing."""
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:.3f}"
    if isinstance(value, pd.Timestamp):
        return f"{value:%Y-%m-%d %H:%M}"
    return "" if value is None or value is pd.NaT else str(value)[:80]
