"""What asset checks came to the last time they ran, in whatever run that was."""
from collections.abc import Iterable
from typing import TYPE_CHECKING

import dagster as dg

if TYPE_CHECKING:
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

_ENDED = {"FAILED": "failed", "PLANNED": "did not end"}


def not_passed(instance: dg.DagsterInstance, assets: Iterable[dg.AssetsDefinition],
               checks: Iterable[dg.AssetChecksDefinition]) -> list[str]:
    """The blocking checks of these assets that did not pass the last time.

    Within a run Dagster itself stops what is downstream of them; this tells a later run that has only a part of the
    assets in it.

    Args:
        instance: Dagster's instance.
        assets: The assets.
        checks: Checks of these assets, and of others that are left out.

    Returns:
        Of each a phrase: which check of which asset, and how it ended. Checks that never ran, or that only warned of
        other weekends, are left out.
    """
    of = {key for asset in assets for key in asset.keys}
    keys = [spec.key for check in checks for spec in check.check_specs if spec.blocking and spec.asset_key in of]
    records = {key: instance.get_latest_asset_check_evaluation_record(key) for key in keys}
    return [f"{key.name} of {key.asset_key.to_user_string()} {_ENDED[record.status.value]} in run {record.run_id[:8]}"
            for key, record in records.items()
            if record is not None and record.status.value in _ENDED and not _only_warned(record)]


def _only_warned(record: "AssetCheckExecutionRecord") -> bool:
    """Whether it found rows that stop nobody: Dagster has a failed check in either case."""
    return record.evaluation is not None and record.evaluation.severity == dg.AssetCheckSeverity.WARN
