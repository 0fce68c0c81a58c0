"""Who is champion, who was, and changing it. Nothing else writes `ranking.checkpoints.promoted`."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import duckdb
import pandas as pd

from f1_pipelines.features.stored import learning_rows
from f1_pipelines.promotion.acceptance import LIMITS, AcceptanceResult, Limits, acceptance_test
from f1_pipelines.tables.lineage import PROMOTIONS
from f1_pipelines.tables.ranking import CHECKPOINTS
from f1_pipelines.warehouse.replace import replace_slices

if TYPE_CHECKING:
    from f1_pipelines.models.checkpoints import Checkpoint


class CantPromote(ValueError):
    """A checkpoint can't become champion. Nothing has changed; the message says what to do."""


class UnknownCheckpoint(CantPromote):
    """The warehouse has no checkpoint of this id."""


@dataclass(frozen=True)
class PromotionDecision:
    """A row of `ranking.promotions`, without its time."""

    candidate: str
    champion: str | None
    weekend: str
    decision: Literal["promoted", "candidate", "rolled_back"]
    decided_by: Literal["rule", "operator"]
    reason: str
    n_races: int | None = None
    candidate_spearman: float | None = None
    champion_spearman: float | None = None
    grid_spearman: float | None = None
    margin: float | None = None
    n_examined_races: int | None = None
    own_spearman: float | None = None
    own_grid_spearman: float | None = None
    agreement: float | None = None
    forgotten: float | None = None
    over_champion_low: float | None = None
    over_champion_high: float | None = None
    over_grid_low: float | None = None
    over_grid_high: float | None = None


def champion_of(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Id of the checkpoint that predictions use, None before the first one."""
    rows = connection.execute("SELECT checkpoint FROM ranking.checkpoints WHERE promoted "
                              "ORDER BY created_at DESC LIMIT 1").fetchall()
    return rows[0][0] if rows else None


def newest_candidate(connection: duckdb.DuckDBPyConnection, model: str) -> str | None:
    """Id of the checkpoint to decide on: the newest link that the newest pretrained ranker of a model has, or itself.

    Args:
        connection: To the warehouse.
        model: Architecture, one of `tables.ranking.MODELS`.

    Returns:
        None where none is pretrained yet.
    """
    newest = connection.execute("""
        WITH pretrained AS (
            SELECT checkpoint FROM ranking.checkpoints WHERE kind = 'pretrained' AND model = ?
            ORDER BY created_at DESC, rowid DESC LIMIT 1)
        SELECT coalesce(
            (SELECT u.checkpoint FROM ranking.updates u JOIN ranking.checkpoints USING (checkpoint)
             LEFT JOIN race.calendar c ON c.weekend = u.weekend
             WHERE u.current AND u.model = ? AND u.pretrained = pretrained.checkpoint
             ORDER BY c.race_start DESC, u.kind = 'ewc' DESC LIMIT 1), checkpoint)
        FROM pretrained""", [model, model]).fetchall()
    return newest[0][0] if newest else None


def store_checkpoints(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame) -> None:
    """Store rows of `ranking.checkpoints`; whoever is champion stays so, trained again or not."""
    champion = champion_of(connection)
    replace_slices(connection, CHECKPOINTS, rows.assign(promoted=rows["checkpoint"] == champion))


def record(connection: duckdb.DuckDBPyConnection, decision: PromotionDecision, decided_at: datetime) -> None:
    """Carry out a decision and write it down, in the caller's transaction. The same decision again is no news."""
    last = PROMOTIONS.conform(history(connection)).tail(1)
    row = PROMOTIONS.conform(pd.DataFrame([{"decided_at": decided_at, **asdict(decision)}], dtype=object))
    if decision.decision != "candidate":
        connection.execute("UPDATE ranking.checkpoints SET promoted = (checkpoint = ?)", [decision.candidate])
    elif last.drop(columns="decided_at").reset_index(drop=True).equals(row.drop(columns="decided_at")):
        return
    replace_slices(connection, PROMOTIONS, row)


def promote(connection: duckdb.DuckDBPyConnection, checkpoint: str, reason: str, decided_at: datetime,
            folder: Path, force: bool = False) -> PromotionDecision:
    """Make a checkpoint champion by an operator's decision. Its own weights are tested all the same.

    Args:
        connection: Of `WarehouseFile.write`.
        checkpoint: Its id.
        reason: Why, for people.
        decided_at: When, timezone-aware.
        folder: Where checkpoints lie.
        force: Promote it though it fails the acceptance test; the reason then says so.

    Raises:
        CantPromote: It is unknown, can't be used, fails the acceptance test without `force`, or is champion already.
    """
    return _by_operator(connection, checkpoint, "promoted", reason, decided_at, folder, force)


def roll_back(connection: duckdb.DuckDBPyConnection, reason: str, decided_at: datetime, folder: Path,
              force: bool = False) -> PromotionDecision:
    """Make the champion before this one champion again; once more goes one further back.

    Arguments as `promote`: a former champion is tested like any other, since the one before may be the broken one.
    """
    champion, past = champion_of(connection), _line_of_champions(connection)
    if champion is None or len(past) < 2 or past[-1] != champion:
        raise CantPromote(f"there was no champion before {champion}, so there is nothing to roll back to; name one: "
                          "`f1 promote CHECKPOINT`")
    return _by_operator(connection, past[-2], "rolled_back", reason or f"rolled back from {champion}", decided_at,
                        folder, force)


def usable(connection: duckdb.DuckDBPyConnection, checkpoint: str, folder: Path) -> Checkpoint:
    """The checkpoint, loaded; `CantPromote` where predictions could not use it."""
    from f1_pipelines.checkpoints.store import CheckpointError
    from f1_pipelines.models.checkpoints import load_checkpoint

    rows = connection.execute("SELECT path FROM ranking.checkpoints WHERE checkpoint = ?", [checkpoint]).fetchall()
    if not rows:
        newest = [known for (known,) in connection.execute(
            "SELECT checkpoint FROM ranking.checkpoints ORDER BY created_at DESC LIMIT 3").fetchall()]
        raise UnknownCheckpoint(f'"{checkpoint}" is no checkpoint of this warehouse; the newest are '
                                f"{', '.join(newest) or 'not there yet: materialize pretrained_ranker'}")
    try:
        return load_checkpoint(folder / checkpoint if (folder / checkpoint).is_dir() else Path(rows[0][0]))
    except CheckpointError as problem:
        raise CantPromote(f"{checkpoint} can't be champion: {problem}") from problem


def history(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """All decisions, the oldest first."""
    return connection.execute("SELECT * FROM ranking.promotions ORDER BY decided_at, rowid").df()


def ancestry(connection: duckdb.DuckDBPyConnection, checkpoint: str) -> list[str]:
    """The checkpoint, its parent, and so on to the pretrained one."""
    return [link for (link,) in connection.execute("""
        WITH RECURSIVE chain AS (
            SELECT checkpoint, parent, 0 AS steps FROM ranking.checkpoints WHERE checkpoint = ?
            UNION ALL
            SELECT link.checkpoint, link.parent, steps + 1
            FROM ranking.checkpoints link JOIN chain ON link.checkpoint = chain.parent)
        SELECT checkpoint FROM chain ORDER BY steps""", [checkpoint]).fetchall()]


def acceptance_of(connection: duckdb.DuckDBPyConnection, checkpoint: Checkpoint, rows: pd.DataFrame, folder: Path,
                  champion: Checkpoint | None = None, limits: Limits = LIMITS) -> AcceptanceResult:
    """Examine a checkpoint's own weights beside those of its ancestors.

    Args:
        connection: To the warehouse.
        checkpoint: The candidate.
        rows: Starters of run races with features and outcome.
        folder: Where checkpoints lie.
        champion: As for `acceptance_test`.
        limits: As for `acceptance_test`.
    """
    parent, compared = checkpoint.meta["parent"], []
    if parent:
        chain = ancestry(connection, parent)
        try:
            # Parent and pretrained ranker; nothing depends on those between.
            compared = [usable(connection, link, folder) for link in dict.fromkeys([parent, *chain[-1:]])]
            if compared[-1].meta["parent"]:
                raise CantPromote(f"{compared[-1].meta['parent']} is not stored")
        except CantPromote as unusable:
            return AcceptanceResult(f"its weights can't be compared with those it was trained from: {unusable}")
    return acceptance_test(checkpoint, rows, compared, champion, limits)


def current_champions(connection: duckdb.DuckDBPyConnection) -> dict[str, str | None]:
    """Champion, and the newest candidate that was decided on, champion or not: checkpoint ids."""
    candidates = connection.execute("SELECT candidate FROM ranking.promotions WHERE decided_by = 'rule' "
                                    "ORDER BY decided_at DESC, rowid DESC LIMIT 1").fetchall()
    return {"champion": champion_of(connection), "candidate": candidates[0][0] if candidates else None}


def _by_operator(connection: duckdb.DuckDBPyConnection, checkpoint: str, decision: Literal["promoted", "rolled_back"],
                 reason: str, decided_at: datetime, folder: Path, force: bool) -> PromotionDecision:
    champion = champion_of(connection)
    if checkpoint == champion:
        raise CantPromote(f"{checkpoint} is champion already")
    candidate = usable(connection, checkpoint, folder)
    # The champion is no measure here: a person may have reasons to leave it.
    acceptance = acceptance_of(connection, candidate, learning_rows(connection), folder)
    if acceptance.refusal and not force:
        raise CantPromote(f"{checkpoint} fails the acceptance test: {acceptance.refusal}. Nothing has changed; "
                          "`--force` promotes it all the same")
    if acceptance.refusal:
        reason = f"{reason or 'by hand'} (forced: {acceptance.refusal})"
    made = PromotionDecision(checkpoint, champion, candidate.trained.trained_through, decision, "operator", reason,
                             **acceptance.numbers)
    record(connection, made, decided_at)
    return made


def _line_of_champions(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Champions as one followed the other, those that were rolled back left out."""
    line: list[str] = []
    for row in history(connection).itertuples():
        if row.decision == "rolled_back":
            line = line[:len(line) - line[::-1].index(row.candidate)] if row.candidate in line else [row.candidate]
        elif row.decision == "promoted":
            line += [row.champion] if not line and isinstance(row.champion, str) else []
            line.append(row.candidate)
    return line
