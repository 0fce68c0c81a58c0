"""Latest results of asset checks, from any run."""
from collections.abc import Iterable
from typing import TYPE_CHECKING

import dagster as dg

if TYPE_CHECKING:
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

_ENDED = {"FAILED": "failed", "PLANNED": "did not end"}


def not_passed(instance: dg.DagsterInstance, assets: Iterable[dg.AssetsDefinition],
               checks: Iterable[dg.AssetChecksDefinition]) -> list[str]:
    """List the blocking checks of `assets` whose latest execution did not pass.

    Within a run, Dagster stops the downstream assets itself; a later run that contains only some of the assets needs
    this. Checks of other assets are ignored.

    Returns:
        One phrase for each check: its name, its asset and how it ended. Checks that never ran, or that only warned
        about other weekends, are left out.
    """
    asset_keys = {key for asset in assets for key in asset.keys}
    keys = [spec.key for check in checks for spec in check.check_specs
            if spec.blocking and spec.asset_key in asset_keys]
    records = {key: instance.get_latest_asset_check_evaluation_record(key) for key in keys}
    return [f"{key.name} of {key.asset_key.to_user_string()} {_ENDED[record.status.value]} in run {record.run_id[:8]}"
            for key, record in records.items()
            if record is not None and record.status.value in _ENDED and not _only_warned(record)]


def _only_warned(record: "AssetCheckExecutionRecord") -> bool:
    """Whether the check only warned; Dagster records a warning as failed too."""
    return record.evaluation is not None and record.evaluation.severity == dg.AssetCheckSeverity.WARN
