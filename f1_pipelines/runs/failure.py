"""Summarize why `dagster asset materialize` failed, from the event log of its run or else from its output.

The event log has each failed step with its error, and each failed check with the rows it found. A process that ended
before its run began, for example because a module can't be imported, leaves only its output.
"""
from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import dagster as dg

# "2026-11-30 06:00:00 +0000 - dagster - DEBUG - __ASSET_JOB - 6d83222d-... - ..."
_LOGGED = re.compile(r"^\S+ \S+ \S+ - dagster - [A-Z]+ - \S+ - (?P<run>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}) - ")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_CHAINED = ("The above exception was", "During handling of the above exception", "Traceback (most recent call last)")
# Dagster's wrappers of other errors; a failed check is shown with its rows instead.
_WRAPPERS = ("DagsterExecutionStepExecutionError", "DagsterResourceFunctionError", "DagsterUserCodeExecutionError")
_FAILED_CHECK, _CRASH = "DagsterAssetCheckFailedError", "ChildProcessCrashException"
_NO_MESSAGE = "its process ended without an error message: it was killed, often for lack of memory"
_LAST_LINES = 20  # shown of an output without a recognized error
_MAX_ROWS = 10


@dataclass(frozen=True)
class Reason:
    """What failed, and its error and causes, each with type, message and code location."""

    what: str
    error: str

    def __str__(self) -> str:
        return f"{self.what}\n" + "\n".join(f"    {line}" for line in self.error.splitlines())


def run_of(line: str) -> str | None:
    """The run id in a line of Dagster's log output; None for other lines."""
    match = _LOGGED.match(line)
    return match["run"] if match else None


def reasons(output: Sequence[str], returncode: int, home: Path) -> list[Reason]:
    """The reasons why a process failed, at least one, in the order of the failed steps and checks.

    Args:
        output: All lines that the process printed.
        returncode: Its exit code; negative for the signal that ended it.
        home: Its DAGSTER_HOME.
    """
    run = next(filter(None, map(run_of, output)), None)
    logged: list[Reason] = []
    running: list[str] = []
    if run:
        try:
            logged, running = _from_events(run, home)
        except Exception as error:  # the output may still have the reason
            output = [*output, f"(the event log in {home} can't be read: {error})"]
    if logged:
        return logged
    what = f"step {', '.join(running)}" if running else "the run" if run else "dagster, before the run began"
    if returncode < 0:
        message = f"its process was ended by signal {-returncode} ({signal.strsignal(-returncode)})"
        return [Reason(what, message + (", often for lack of memory" if returncode == -signal.SIGKILL else ""))]
    return [Reason(what, _from_text(output) or _NO_MESSAGE)]


def _from_events(run: str, home: Path) -> tuple[list[Reason], list[str]]:
    """The reasons in the event log of a run, and the steps without an end."""
    import dagster as dg

    kind = dg.DagsterEventType
    failed: list[Reason] = []
    running: dict[str, None] = {}
    with dg.DagsterInstance.from_config(str(home)) as instance:
        events = [entry.dagster_event for entry in instance.all_logs(run, {
            kind.STEP_START, kind.STEP_SUCCESS, kind.STEP_FAILURE, kind.ASSET_CHECK_EVALUATION, kind.RUN_FAILURE})
            if entry.dagster_event is not None]
    for event in events:
        if event.event_type == kind.STEP_START:
            running[str(event.step_key)] = None
        elif event.event_type in (kind.STEP_SUCCESS, kind.STEP_FAILURE):
            running.pop(str(event.step_key), None)
        failed += _from_event(event)
    ends = [event.job_failure_data.error for event in events if event.event_type == kind.RUN_FAILURE]
    if not failed and ends and ends[-1]:
        failed = [Reason("the run", _chain(ends[-1]))]
    return failed, list(running)


def _from_event(event: dg.DagsterEvent) -> list[Reason]:
    """The reason of a failed step or blocking check; nothing for other events."""
    if event.event_type_value == "STEP_FAILURE":
        error = event.step_failure_data.error
        if error is None:
            return [Reason(f"step {event.step_key}", _NO_MESSAGE)]
        return [] if error.cls_name == _FAILED_CHECK else [Reason(f"step {event.step_key}", _chain(error))]
    if event.event_type_value == "ASSET_CHECK_EVALUATION":
        check = event.asset_check_evaluation_data
        if not check.passed and check.blocking and check.severity.value == "ERROR":
            return [Reason(f"check {check.check_name} of {check.asset_key.to_user_string()}",
                           "\n".join(_findings(check)) or "it did not pass")]
    return []


def _findings(check: Any) -> Iterator[str]:
    """Yield the description of a check, its single values, and its rows as `column=value, ...`."""
    if check.description:
        yield check.description
    tables = {name: value for name, value in check.metadata.items() if hasattr(value, "records")}
    yield from (f"{name}: {value.value}" for name, value in check.metadata.items() if name not in tables)
    for table in tables.values():
        columns = [column.name for column in table.schema.columns]
        for record in table.records[:_MAX_ROWS]:
            yield ", ".join(f"{name}={record.data.get(name)}" for name in columns)
        if len(table.records) > _MAX_ROWS:
            yield f"... and {len(table.records) - _MAX_ROWS} more"


def _chain(error: Any) -> str:
    """An error and its causes, without Dagster's wrappers and repeated messages."""
    errors = []
    while error is not None:
        errors.append(error)
        error = error.cause
    if errors[0].cls_name == _CRASH:
        return f"{_CRASH}: {_NO_MESSAGE}"
    kept = [error for error, cause in zip(errors, [*errors[1:], None], strict=True)
            if cause is None or error.cls_name not in _WRAPPERS and _message(error) != _message(cause)]
    return "\ncaused by ".join(f"{error.cls_name}: {_message(error)}{_location(error.stack)}" for error in kept)


def _message(error: Any) -> str:
    """The message of an error without its type."""
    start, _, rest = error.message.partition(": ")
    return str(rest if start.split(".")[-1] == error.cls_name else error.message).strip()


def _location(stack: Sequence[str]) -> str:
    """The last frame of the stack outside installed libraries, as file and line."""
    frames = [frame for frame in (_FRAME.search(line) for line in stack) if frame]
    own = [frame for frame in frames if "site-packages" not in frame["file"] and not frame["file"].startswith("<")]
    return f"\n  at {own[-1]['file']}, line {own[-1]['line']}" if own else ""


def _from_text(output: Sequence[str]) -> str:
    """The exceptions in the output, without their frames; the last lines if there are none."""
    lines = [line.rstrip() for line in output if not _LOGGED.match(line)]
    exceptions, message, in_frames = [], None, False
    for line in lines:
        if line.startswith(_CHAINED):
            message, in_frames = None, True
        elif in_frames and line and not line[0].isspace():
            message, in_frames = [line], False
            exceptions.append(message)
        elif message is not None:
            message.append(line)
    if exceptions:
        return "\n".join("\n".join(exception).strip() for exception in exceptions)
    return "\n".join([line for line in lines if line][-_LAST_LINES:])
