"""Progress of a Dagster run, read from its event log during the run."""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import dagster as dg

_INFO, _WARNING = 20, 30


@dataclass(frozen=True)
class Started:
    """A step started."""

    step: str


@dataclass(frozen=True)
class Finished:
    """A step succeeded. `metadata` has the plain values of its materialization; it is empty for a check."""

    step: str
    seconds: float
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class Failed:
    """A step failed."""

    step: str


@dataclass(frozen=True)
class Message:
    """A line that an asset logged."""

    step: str
    text: str


@dataclass(frozen=True)
class Warned:
    """A warning of an asset, or a failed check that does not block."""

    subject: str
    text: str


@dataclass(frozen=True)
class CheckPassed:
    """A check that passed."""

    name: str


Update = Started | Finished | Failed | Message | Warned | CheckPassed


class RunEvents:
    """Follow one run: `new()` yields the updates since the last call.

    Args:
        home: DAGSTER_HOME of the run.
        run_id: Id of an existing run.
        assets: Names of its asset steps. Log lines of other steps, the checks, are skipped: they repeat the
            evaluation.
    """

    def __init__(self, home: Path, run_id: str, assets: Collection[str]) -> None:
        self._home, self._run_id, self._assets = home, run_id, frozenset(assets)
        self._instance: dg.DagsterInstance | None = None
        self._cursor: str | None = None
        self._metadata: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> RunEvents:
        import dagster as dg

        self._instance = dg.DagsterInstance.from_config(str(self._home)).__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._instance:
            self._instance.__exit__(kind, error, trace)

    def new(self) -> Iterator[Update]:
        """Yield the updates since the last call, in order."""
        if self._instance is None:
            raise RuntimeError("RunEvents is a context manager: call new() inside `with`")
        more = True
        while more:
            page = self._instance.get_records_for_run(self._run_id, cursor=self._cursor)
            self._cursor, more = page.cursor, page.has_more
            for record in page.records:
                yield from self._updates(record.event_log_entry)

    def _updates(self, entry: dg.EventLogEntry) -> Iterator[Update]:
        event, step = entry.dagster_event, entry.step_key
        if event is None:
            yield from self._log_updates(entry)
        elif event.event_type_value == "ASSET_CHECK_EVALUATION":
            yield from _check_updates(event.asset_check_evaluation_data)
        elif step is None:
            return
        elif event.event_type_value == "STEP_START":
            yield Started(step)
        elif event.event_type_value == "STEP_FAILURE":
            yield Failed(step)
        elif event.event_type_value == "ASSET_MATERIALIZATION":
            # Keep the last one: a run over a range of weekends has one event per weekend with the same values.
            values = event.step_materialization_data.materialization.metadata
            self._metadata[step] = {name: getattr(value, "value", None) for name, value in values.items()}
        elif event.event_type_value == "STEP_SUCCESS":
            yield Finished(step, event.step_success_data.duration_ms / 1000, self._metadata.pop(step, {}))

    def _log_updates(self, entry: dg.EventLogEntry) -> Iterator[Update]:
        if entry.step_key not in self._assets:
            return
        if int(entry.level) >= _WARNING:
            yield Warned(entry.step_key, entry.user_message.strip())
        elif int(entry.level) >= _INFO and entry.user_message.strip():
            yield Message(entry.step_key, entry.user_message.strip().splitlines()[0])


def _check_updates(check: Any) -> Iterator[Update]:
    """Yield the update of a check; none if it blocks the run, since the reason is shown after the run."""
    name = f"check {check.check_name} of {check.asset_key.to_user_string()}"
    if check.passed:
        yield CheckPassed(name)
    elif not (check.blocking and check.severity.value == "ERROR"):
        values = (f"{key}: {value.value}" for key, value in check.metadata.items() if not hasattr(value, "records"))
        yield Warned(name, check.description or next(values, "it did not pass"))
