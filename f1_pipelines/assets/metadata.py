"""Metadata that is worth reading: row counts, schema, a preview, a small plot."""
import base64
import io
from collections.abc import Mapping

import dagster as dg
import pandas as pd

from f1_pipelines.tables.schema import Table


def column_schema(table: Table) -> dg.TableSchema:
    """A table's declaration as Dagster shows it."""
    return dg.TableSchema(columns=[
        dg.TableColumn(column.name, column.type, column.comment,
                       dg.TableColumnConstraints(nullable=not column.required, unique=[column.name] == list(table.key)))
        for column in table.columns
    ])


def described(table: Table) -> dict[str, object]:
    """Definition metadata of the asset that writes `table`."""
    return {"dagster/column_schema": column_schema(table), "dagster/table_name": table.qualified}


def preview(frame: pd.DataFrame, rows: int = 8) -> dg.MarkdownMetadataValue:
    """The first rows as a table; long texts and hashes cut."""
    shown = frame.head(rows).astype(object).map(lambda value: _short(value))
    return dg.MetadataValue.md(shown.to_markdown(index=False))


def listing(lines: list[str], most: int = 20) -> dg.MarkdownMetadataValue:
    """Sentences as a list, cut with a count of the rest."""
    more = [f"... and {len(lines) - most} more"] if len(lines) > most else []
    return dg.MetadataValue.md("\n".join(f"- {line}" for line in [*lines[:most], *more]) or "none")


def bar_plot(values: Mapping[str, float], title: str, y_label: str) -> dg.MarkdownMetadataValue:
    """A small bar chart as a PNG inside markdown; it is stored in the event log, hence small."""
    from matplotlib.figure import Figure  # late: half a second that only runs need

    figure = Figure(figsize=(6, 2.6), dpi=70, layout="constrained")
    axes = figure.subplots()
    axes.bar(list(values), list(values.values()), color="#c8102e")
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(y_label, fontsize=9)
    axes.tick_params(labelsize=8)
    return figure_markdown(figure, title)


def figure_markdown(figure, title: str) -> dg.MarkdownMetadataValue:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return dg.MetadataValue.md(f"![{title}](data:image/png;base64,{encoded})")


def _short(value: object) -> object:
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, pd.Timestamp):
        return value.strftime("%Y-%m-%d %H:%M")
    text = str(value)
    return text if len(text) <= 24 else text[:21] + "..."
