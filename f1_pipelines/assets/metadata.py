"""Metadata of assets: row counts, schemas, previews, small plots."""
import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import dagster as dg
import numpy as np
import pandas as pd

from f1_pipelines.tables.schema import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RED = "#c8102e"


def column_schema(table: Table) -> dg.TableSchema:
    """Convert a table's declaration to Dagster's schema."""
    return dg.TableSchema(columns=[
        dg.TableColumn(column.name, column.type, column.comment,
                       dg.TableColumnConstraints(nullable=not column.required, unique=[column.name] == list(table.key)))
        for column in table.columns
    ])


def described(table: Table) -> dict[str, Any]:
    """Definition metadata of the asset that writes `table`."""
    return {"dagster/column_schema": column_schema(table), "dagster/table_name": table.qualified}


def weekends_materialized(context: dg.AssetExecutionContext, rows: int, numbers: Mapping[str, Any],
                          pictures: Mapping[str, Any]) -> dg.MaterializeResult[None]:
    """Build the result of a run over one weekend or a range.

    Dagster stores the metadata of a range once per weekend, so for a range the pictures (previews, lists, plots) go
    into one observation, and the row count is that of the range.
    """
    if len(context.partition_keys) == 1:
        return dg.MaterializeResult(metadata={"dagster/partition_row_count": rows, **numbers, **pictures})
    context.log_event(dg.AssetObservation(asset_key=context.asset_key, metadata={"rows_written": rows, **pictures}))
    return dg.MaterializeResult(metadata={"rows_written_in_range": rows, **numbers})


def preview(frame: pd.DataFrame, rows: int = 8) -> dg.MarkdownMetadataValue:
    """Format the first rows as a table; long texts and hashes are shortened."""
    return dg.MetadataValue.md(frame.head(rows).astype(object).map(_short).to_markdown(index=False))


def listing(lines: list[str], limit: int = 20) -> dg.MarkdownMetadataValue:
    """Format the first lines as a list, with a count of the rest."""
    more = [f"... and {len(lines) - limit} more"] if len(lines) > limit else []
    return dg.MetadataValue.md("\n".join(f"- {line}" for line in [*lines[:limit], *more]) or "none")


def bar_plot(values: Mapping[str, float], title: str, y_label: str) -> dg.MarkdownMetadataValue:
    """Draw a small bar chart."""
    with _figure(title) as (figure, axes):
        axes.bar(list(values), list(values.values()), color=_RED)
        axes.set_ylabel(y_label, fontsize=9)
    return _as_markdown(figure, title)


def line_plot(series: Mapping[str, Sequence[float]], title: str, x_label: str) -> dg.MarkdownMetadataValue:
    """Draw a small line chart, one line per series over 1, 2, 3, ..."""
    with _figure(title) as (figure, axes):
        for name, values in series.items():
            axes.plot(range(1, len(values) + 1), values, label=name)
        axes.set_xlabel(x_label, fontsize=9)
        axes.legend(fontsize=8)
    return _as_markdown(figure, title)


def interval_plot(rows: pd.DataFrame, title: str) -> dg.MarkdownMetadataValue:
    """Draw means with their intervals. `rows`: mean, low, high by name."""
    ordered = rows.astype("float64").sort_values(rows.columns[0])
    mean, low, high = (ordered.iloc[:, i].to_numpy() for i in range(3))
    with _figure(title) as (figure, axes):
        errors = [np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0)]  # one race: negative by rounding
        axes.errorbar(mean, list(ordered.index), xerr=errors, fmt="o", color=_RED, capsize=3)
        axes.axvline(0, color="grey", linewidth=1)
    return _as_markdown(figure, title)


def picture(png: bytes, title: str) -> dg.MarkdownMetadataValue:
    """Embed a PNG in the event log; keep it small, every materialization stores it."""
    return dg.MetadataValue.md(f"![{title}](data:image/png;base64,{base64.b64encode(png).decode()})")


@contextmanager
def _figure(title: str) -> Iterator[tuple["Figure", "Axes"]]:
    from matplotlib.figure import Figure  # takes 0.5 s, so only runs import it

    figure = Figure(figsize=(6, 2.8), dpi=70, layout="constrained")
    axes = figure.subplots()
    yield figure, axes
    axes.set_title(title, fontsize=10)
    axes.tick_params(labelsize=8)


def _as_markdown(figure: "Figure", title: str) -> dg.MarkdownMetadataValue:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return picture(buffer.getvalue(), title)


def _short(value: object) -> object:
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, pd.Timestamp):
        return value.strftime("%Y-%m-%d %H:%M")
    text = str(value)
    return text if len(text) <= 24 else text[:21] + "..."
