"""What `f1 trace` says: where a checkpoint, a prediction or a weekend's predictions come from."""
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

_LEARNT_FROM = """
    SELECT l.seen_by AS checkpoint, c.kind, c.model, l.role, l.data_version, l.n_rows AS rows, l.result_version,
           c.promoted
    FROM ranking.lineage l JOIN ranking.checkpoints c ON c.checkpoint = l.seen_by
    WHERE l.weekend = ? ORDER BY c.created_at, l.seen_by"""

_SHEETS = """
    SELECT version, any_value(result_status) AS status, any_value(source) AS source, any_value(fetched_at) AS fetched_at
    FROM race.results WHERE weekend = ? GROUP BY version ORDER BY version"""


@dataclass(frozen=True)
class Section:
    """A table of what is known, and what it is about."""

    title: str
    rows: pd.DataFrame


def trace(connection: duckdb.DuckDBPyConnection, key: str) -> list[Section]:
    """All that is known of where something comes from.

    Args:
        connection: To the warehouse.
        key: A checkpoint, a weekend, or a prediction (`seen.prediction_id`).

    Raises:
        Untraceable: There is nothing of that name.
    """
    parts = key.split("/")
    chain = ancestry(connection, parts[2] if len(parts) > 2 else key)
    if len(parts) > 2 and not _stored(connection, parts):
        raise Untraceable(f'there is no prediction "{key}"; `f1 trace {parts[0]}` lists those of the weekend')
    if chain:
        return _of_checkpoint(connection, chain, [key] if len(parts) > 2 else [])
    sections = [Section(f"{title} {key}", connection.execute(sql, [key]).df()) for title, sql in (
        ("Predictions of", _PREDICTIONS), ("What has learnt from", _LEARNT_FROM), ("Classifications of", _SHEETS))]
    if all(section.rows.empty for section in sections):
        raise Untraceable(f'"{key}" is neither a checkpoint nor a weekend that is stored; `f1 query "SELECT '
                          'checkpoint, kind, trained_through FROM ranking.checkpoints"` lists the checkpoints')
    return sections


def _stored(connection: duckdb.DuckDBPyConnection, parts: list[str]) -> bool:
    """Whether a prediction of that id (weekend/stage/checkpoint, simulated) is there."""
    table = "simulated_predictions" if parts[3:] == ["simulated"] else "predictions"
    return bool(connection.execute(f"SELECT 1 FROM ranking.{table} WHERE weekend = ? AND stage = ? AND checkpoint = ? "
                                   "LIMIT 1", parts[:3]).fetchall()) and parts[3:] in ([], ["simulated"])


def prove(connection: duckdb.DuckDBPyConnection, key: str, checkpoints: Path) -> list[str]:
    """Make it again from the rows that were kept. A sentence for each thing that came out the same.

    Args:
        connection: To the warehouse.
        key: As for `trace`; of a weekend all its predictions.
        checkpoints: Where checkpoints lie.

    Raises:
        Untraceable: Something came out otherwise, or its rows were not kept.
    """
    from f1_pipelines.lineage.rebuild import differences, rebuild

    if ancestry(connection, key):
        with TemporaryDirectory() as folder:
            again = rebuild(connection, key, Path(folder))
        if again.id != key:
            raise Untraceable(f"{key} comes out as {again.id}: its rows or the code that trained it have changed; it "
                              f"was trained by {again.meta['code_version']} or another version")
        return [f"{key}: trained again from the rows kept, the same bit by bit"]
    ids = [key] if "/" in key else list(connection.execute(_PREDICTIONS, [key]).df()["prediction"])
    for one in ids:
        differs = differences(connection, one, checkpoints)
        if differs:
            raise Untraceable(f"{one} comes out otherwise in {', '.join(differs)}: the code has changed, or the "
                              "checkpoint")
    return [f"{one}: predicted again from the rows kept, the same bit by bit" for one in ids]


def _of_checkpoint(connection: duckdb.DuckDBPyConnection, chain: list[str], predictions: list[str]) -> list[Section]:
    links = connection.execute("SELECT * FROM ranking.checkpoints WHERE list_contains(?::VARCHAR[], checkpoint) "
                               "ORDER BY list_position(?::VARCHAR[], checkpoint)", [chain, chain]).df()
    settings = [{"checkpoint": checkpoint, "settings": ", ".join(
        f"{name}={value}" for name, value in json.loads(text).items() if value is not None)}
        for checkpoint, text in zip(links["checkpoint"], links["settings"], strict=True) if isinstance(text, str)]
    seen_by = [*predictions, *chain]
    return [
        Section("Chain, the newest first", links[["checkpoint", "kind", "model", "trained_through", "n_races",
                                                  "data_version", "created_at", "promoted"]]),
        Section("Rows seen", connection.execute(_SEEN, [seen_by, seen_by]).df()),
        Section("Runs", links[["checkpoint", "dagster_run", "mlflow_run"]]),
        Section("Settings", pd.DataFrame(settings, columns=["checkpoint", "settings"])),
    ]
