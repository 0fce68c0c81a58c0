"""The lineage of a checkpoint, a prediction or a weekend's predictions, for `f1 trace`."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pandas as pd

from f1_pipelines.lineage.seen import Untraceable
from f1_pipelines.promotion.champion import ancestry

_SEEN = """
    SELECT l.seen_by, l.role, count(DISTINCT l.weekend) AS weekends, count(*) AS rows,
           arg_min(l.weekend, r.race_start) AS first, arg_max(l.weekend, r.race_start) AS last,
           string_agg(DISTINCT r.source, ' ') AS sources,
           string_agg(DISTINCT l.result_version::VARCHAR, ' ' ORDER BY l.result_version::VARCHAR) AS result_versions
    FROM ranking.lineage l JOIN ranking.rows_seen r USING (data_version)
    WHERE list_contains(?::VARCHAR[], l.seen_by)
    GROUP BY l.seen_by, l.role ORDER BY list_position(?::VARCHAR[], l.seen_by), l.role"""

_PREDICTIONS = """
    WITH made AS (
        SELECT DISTINCT concat_ws('/', weekend, stage, checkpoint) AS prediction, made_at
        FROM ranking.predictions WHERE weekend = $1
        UNION ALL
        SELECT DISTINCT concat_ws('/', weekend, stage, checkpoint, 'simulated'), made_at
        FROM ranking.simulated_predictions WHERE weekend = $1)
    SELECT prediction, made_at, data_version, dagster_run
    FROM made LEFT JOIN ranking.lineage ON seen_by = prediction ORDER BY made_at, prediction"""

_SEEN_BY = """
    SELECT l.seen_by AS checkpoint, c.kind, c.model, l.role, l.data_version, l.n_rows AS rows, l.result_version,
           c.promoted
    FROM ranking.lineage l JOIN ranking.checkpoints c ON c.checkpoint = l.seen_by
    WHERE l.weekend = ? ORDER BY c.created_at, l.seen_by"""

_RESULTS = """
    SELECT version, any_value(result_status) AS status, any_value(source) AS source, any_value(fetched_at) AS fetched_at
    FROM race.results WHERE weekend = ? GROUP BY version ORDER BY version"""


@dataclass(frozen=True)
class Section:
    """A titled table of a trace."""

    title: str
    rows: pd.DataFrame


def trace(connection: duckdb.DuckDBPyConnection, key: str) -> list[Section]:
    """Trace the origin of a checkpoint, a weekend's predictions, or a prediction.

    Args:
        connection: To the warehouse.
        key: A checkpoint id, a weekend, or a `seen.prediction_id`.

    Raises:
        Untraceable: The key is unknown.
    """
    parts = key.split("/")
    chain = ancestry(connection, parts[2] if len(parts) > 2 else key)
    if len(parts) > 2 and not _stored(connection, parts):
        raise Untraceable(f'there is no prediction "{key}"; `f1 trace {parts[0]}` lists those of the weekend')
    if chain:
        return _trace_chain(connection, chain, [key] if len(parts) > 2 else [])
    sections = [Section(f"{title} {key}", connection.execute(sql, [key]).df()) for title, sql in (
        ("Predictions of", _PREDICTIONS), ("Checkpoints that saw", _SEEN_BY), ("Classifications of", _RESULTS))]
    if all(section.rows.empty for section in sections):
        raise Untraceable(f'"{key}" is neither a stored checkpoint nor a stored weekend; `f1 query "SELECT '
                          'checkpoint, kind, trained_through FROM ranking.checkpoints"` lists the checkpoints')
    return sections


def _stored(connection: duckdb.DuckDBPyConnection, parts: list[str]) -> bool:
    """Whether a prediction is stored, by the parts of its id (weekend, stage, checkpoint, `simulated`)."""
    table = "simulated_predictions" if parts[3:] == ["simulated"] else "predictions"
    return bool(connection.execute(f"SELECT 1 FROM ranking.{table} WHERE weekend = ? AND stage = ? AND checkpoint = ? "
                                   "LIMIT 1", parts[:3]).fetchall()) and parts[3:] in ([], ["simulated"])


def prove(connection: duckdb.DuckDBPyConnection, key: str, checkpoints: Path) -> list[str]:
    """Make a checkpoint or predictions again from their stored rows. Return a sentence for each that is equal.

    Args:
        connection: To the warehouse.
        key: As for `trace`; a weekend stands for all its predictions.
        checkpoints: Folder of checkpoints.

    Raises:
        Untraceable: One differs, or its rows are not stored.
    """
    from f1_pipelines.lineage.rebuild import differences, rebuild

    if ancestry(connection, key):
        with TemporaryDirectory() as folder:
            rebuilt = rebuild(connection, key, Path(folder))
        if rebuilt.id != key:
            raise Untraceable(f"{key} was rebuilt as {rebuilt.id}: its rows or the code that trained it have changed; "
                              f"it was trained by {rebuilt.meta['code_version']} or another version")
        return [f"{key}: trained again from the rows kept, the same bit by bit"]
    ids = [key] if "/" in key else list(connection.execute(_PREDICTIONS, [key]).df()["prediction"])
    for prediction in ids:
        if columns := differences(connection, prediction, checkpoints):
            raise Untraceable(f"{prediction} differs in {', '.join(columns)}: the code or the checkpoint has changed")
    return [f"{prediction}: predicted again from the rows kept, the same bit by bit" for prediction in ids]


def _trace_chain(connection: duckdb.DuckDBPyConnection, chain: list[str], predictions: list[str]) -> list[Section]:
    """Trace a checkpoint by its chain, newest first; `predictions` are added to the rows seen."""
    links = connection.execute("SELECT * FROM ranking.checkpoints WHERE list_contains(?::VARCHAR[], checkpoint) "
                               "ORDER BY list_position(?::VARCHAR[], checkpoint)", [chain, chain]).df()
    settings = [{"checkpoint": checkpoint, "settings": ", ".join(
        f"{name}={value}" for name, value in json.loads(text).items() if value is not None)}
        for checkpoint, text in zip(links["checkpoint"], links["settings"], strict=True) if isinstance(text, str)]
    seen_by = [*predictions, *chain]
    return [
        Section("Chain, newest first", links[["checkpoint", "kind", "model", "trained_through", "n_races",
                                              "data_version", "created_at", "promoted"]]),
        Section("Rows seen", connection.execute(_SEEN, [seen_by, seen_by]).df()),
        Section("Runs", links[["checkpoint", "dagster_run", "mlflow_run"]]),
        Section("Settings", pd.DataFrame(settings, columns=["checkpoint", "settings"])),
    ]
