"""Current and former champions, and promotion. Only this module writes `ranking.checkpoints.promoted`."""
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
    """The checkpoint can't become champion. Nothing has changed; the message says what to do."""


class UnknownCheckpoint(CantPromote):
    """The warehouse has no checkpoint of this id."""


@dataclass(frozen=True)
class PromotionDecision:
    """A row of `ranking.promotions` without `decided_at`."""

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
    """Id of the checkpoint that predictions use; None before the first promotion."""
    rows = connection.execute("SELECT checkpoint FROM ranking.checkpoints WHERE promoted "
                              "ORDER BY created_at DESC LIMIT 1").fetchall()
    return rows[0][0] if rows else None


def newest_candidate(connection: duckdb.DuckDBPyConnection, model: str) -> str | None:
    """Id of the checkpoint to decide on: the newest link of the newest pretrained ranker of a model, one of
    `tables.ranking.MODELS`, or else that ranker; None if no ranker is pretrained."""
    rows = connection.execute("""
        WITH pretrained AS (
            SELECT checkpoint FROM ranking.checkpoints WHERE kind = 'pretrained' AND model = ?
            ORDER BY created_at DESC, rowid DESC LIMIT 1)
        SELECT coalesce(
            (SELECT u.checkpoint FROM ranking.updates u JOIN ranking.checkpoints USING (checkpoint)
             LEFT JOIN race.calendar c ON c.weekend = u.weekend
             WHERE u.current AND u.model = ? AND u.pretrained = pretrained.checkpoint
             ORDER BY c.race_start DESC, u.kind = 'ewc' DESC LIMIT 1), checkpoint)
        FROM pretrained""", [model, model]).fetchall()
    return rows[0][0] if rows else None


def store_checkpoints(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame) -> None:
    """Store rows of `ranking.checkpoints`; the champion stays promoted, even if it is stored again."""
    champion = champion_of(connection)
    replace_slices(connection, CHECKPOINTS, rows.assign(promoted=rows["checkpoint"] == champion))


def record(connection: duckdb.DuckDBPyConnection, decision: PromotionDecision, decided_at: datetime) -> None:
    """Apply and store a decision, in the caller's transaction. Skips a repeated decision to wait."""
    last = PROMOTIONS.conform(history(connection)).tail(1)
    row = PROMOTIONS.conform(pd.DataFrame([{"decided_at": decided_at, **asdict(decision)}], dtype=object))
    if decision.decision != "candidate":
        connection.execute("UPDATE ranking.checkpoints SET promoted = (checkpoint = ?)", [decision.candidate])
    elif last.drop(columns="decided_at").reset_index(drop=True).equals(row.drop(columns="decided_at")):
        return
    replace_slices(connection, PROMOTIONS, row)


def promote(connection: duckdb.DuckDBPyConnection, checkpoint: str, reason: str, decided_at: datetime,
            folder: Path, force: bool = False) -> PromotionDecision:
    """Make a checkpoint champion by an operator's decision, if it passes the acceptance test.

    Args:
        connection: Connection from `WarehouseFile.write`.
        checkpoint: Id of the checkpoint.
        reason: Reason to store, free text.
        decided_at: Time of the decision, timezone-aware.
        folder: Checkpoint folder.
        force: Promote a checkpoint that fails the acceptance test; the stored reason then says so.

    Raises:
        CantPromote: It is unknown, can't be used, fails the acceptance test without `force`, or is champion already.
    """
    return _by_operator(connection, checkpoint, "promoted", reason, decided_at, folder, force)


def roll_back(connection: duckdb.DuckDBPyConnection, reason: str, decided_at: datetime, folder: Path,
              force: bool = False) -> PromotionDecision:
    """Make the previous champion champion again; each further call goes back one more.

    Arguments as for `promote`. The previous champion must pass the acceptance test too, since it may be broken itself.

    Raises:
        CantPromote: There is no previous champion; or as for `promote`.
    """
    champion, champions = champion_of(connection), _past_champions(connection)
    if champion is None or len(champions) < 2 or champions[-1] != champion:
        raise CantPromote(f"there was no champion before {champion}, so there is nothing to roll back to; name one: "
                          "`f1 promote CHECKPOINT`")
    return _by_operator(connection, champions[-2], "rolled_back", reason or f"rolled back from {champion}", decided_at,
                        folder, force)


def usable(connection: duckdb.DuckDBPyConnection, checkpoint: str, folder: Path) -> Checkpoint:
    """Load a checkpoint for predictions.

    Raises:
        CantPromote: It is unknown or can't be loaded.
    """
    from f1_pipelines.checkpoints.store import CheckpointError
    from f1_pipelines.models.checkpoints import load_checkpoint

    rows = connection.execute("SELECT path FROM ranking.checkpoints WHERE checkpoint = ?", [checkpoint]).fetchall()
    if not rows:
        newest = [recent for (recent,) in connection.execute(
            "SELECT checkpoint FROM ranking.checkpoints ORDER BY created_at DESC LIMIT 3").fetchall()]
        raise UnknownCheckpoint(f'"{checkpoint}" is no checkpoint of this warehouse; the newest: '
                                f"{', '.join(newest) or 'none yet, materialize pretrained_ranker'}")
    try:
        return load_checkpoint(folder / checkpoint if (folder / checkpoint).is_dir() else Path(rows[0][0]))
    except CheckpointError as problem:
        raise CantPromote(f"{checkpoint} can't be champion: {problem}") from problem


def history(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """All decisions, oldest first."""
    return connection.execute("SELECT * FROM ranking.promotions ORDER BY decided_at, rowid").df()


def ancestry(connection: duckdb.DuckDBPyConnection, checkpoint: str) -> list[str]:
    """Ids of the checkpoint, its parent, and so on to the pretrained one."""
    return [link for (link,) in connection.execute("""
        WITH RECURSIVE chain AS (
            SELECT checkpoint, parent, 0 AS steps FROM ranking.checkpoints WHERE checkpoint = ?
            UNION ALL
            SELECT link.checkpoint, link.parent, steps + 1
            FROM ranking.checkpoints link JOIN chain ON link.checkpoint = chain.parent)
        SELECT checkpoint FROM chain ORDER BY steps""", [checkpoint]).fetchall()]


def acceptance_of(connection: duckdb.DuckDBPyConnection, checkpoint: Checkpoint, rows: pd.DataFrame, folder: Path,
                  champion: Checkpoint | None = None, limits: Limits = LIMITS) -> AcceptanceResult:
    """Load a checkpoint's parent and pretrained ranker, and run `acceptance_test` (arguments: see there)."""
    parent, ancestors = checkpoint.meta["parent"], []
    if parent:
        chain = ancestry(connection, parent)
        try:
            # Only the parent and the pretrained ranker matter.
            ancestors = [usable(connection, link, folder) for link in dict.fromkeys([parent, *chain[-1:]])]
            if ancestors[-1].meta["parent"]:
                raise CantPromote(f"{ancestors[-1].meta['parent']} is not stored")
        except CantPromote as unusable:
            return AcceptanceResult(f"its weights can't be compared with those it was trained from: {unusable}")
    return acceptance_test(checkpoint, rows, ancestors, champion, limits)


def current_champions(connection: duckdb.DuckDBPyConnection) -> dict[str, str | None]:
    """Checkpoint ids of the champion and of the newest candidate that the rule decided on."""
    candidates = connection.execute("SELECT candidate FROM ranking.promotions WHERE decided_by = 'rule' "
                                    "ORDER BY decided_at DESC, rowid DESC LIMIT 1").fetchall()
    return {"champion": champion_of(connection), "candidate": candidates[0][0] if candidates else None}


def _by_operator(connection: duckdb.DuckDBPyConnection, checkpoint: str, decision: Literal["promoted", "rolled_back"],
                 reason: str, decided_at: datetime, folder: Path, force: bool) -> PromotionDecision:
    champion = champion_of(connection)
    if checkpoint == champion:
        raise CantPromote(f"{checkpoint} is champion already")
    candidate = usable(connection, checkpoint, folder)
    # Without a comparison with the champion: an operator may have reasons to replace it.
    acceptance = acceptance_of(connection, candidate, learning_rows(connection), folder)
    if acceptance.refusal and not force:
        raise CantPromote(f"{checkpoint} fails the acceptance test: {acceptance.refusal}. Nothing has changed; "
                          "`--force` promotes it anyway")
    if acceptance.refusal:
        reason = f"{reason or 'by hand'} (forced: {acceptance.refusal})"
    promotion = PromotionDecision(checkpoint, champion, candidate.trained.trained_through, decision, "operator", reason,
                                  **acceptance.numbers)
    record(connection, promotion, decided_at)
    return promotion


def _past_champions(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """All champions in order, without those that were rolled back."""
    champions: list[str] = []
    for row in history(connection).itertuples():
        if row.decision == "rolled_back":
            last = len(champions) - champions[::-1].index(row.candidate) if row.candidate in champions else 0
            champions = champions[:last] or [row.candidate]
        elif row.decision == "promoted":
            champions += [row.champion] if not champions and isinstance(row.champion, str) else []
            champions.append(row.candidate)
    return champions
