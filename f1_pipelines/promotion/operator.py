"""`f1 promote`: promotion by an operator."""
from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from f1_pipelines.promotion.champion import PromotionDecision, champion_of, current_champions, promote, roll_back
from f1_pipelines.settings import settings
from f1_pipelines.tracking.registry import follow
from f1_pipelines.tracking.store import StoreConnection, TrackingStore
from f1_pipelines.warehouse.database import WarehouseFile


def decide_by_hand(checkpoint: str | None, reason: str, warn: Callable[[str], None],
                   force: bool = False) -> PromotionDecision:
    """Promote a checkpoint, or roll back to the previous champion, and update MLflow's aliases.

    Args:
        checkpoint: Id of the checkpoint; None to roll back.
        reason: Reason to store, free text.
        warn: Receives a message if MLflow is unreachable; the warehouse is changed anyway.
        force: Promote a checkpoint that fails the acceptance test.

    Raises:
        CantPromote: The checkpoint is unknown, can't be used or fails the acceptance test, or there is none to
            roll back to. Nothing has changed.
    """
    current = settings()
    warehouse, folder = WarehouseFile(current.f1_warehouse, current.f1_write_wait_s), current.checkpoints_path
    with warehouse.read() as connection:  # a wrong path fails here, before it would get an empty warehouse
        champion_of(connection)
    with warehouse.write("f1 promote") as connection:
        now = datetime.now(UTC)
        decision = promote(connection, checkpoint, reason, now, folder, force) if checkpoint else \
            roll_back(connection, reason, now, folder, force)
        aliases = current_champions(connection)
    if current.tracking_uri:
        store = TrackingStore(current.tracking_uri, current.f1_warehouse.parent)

        def update_aliases() -> None:
            with store.open() as opened:
                follow(opened, aliases, folder)

        StoreConnection(warn).attempt(update_aliases)
    return decision
