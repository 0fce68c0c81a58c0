"""Why a run of `dagster asset materialize` failed, in a few lines: from its event log, else from what it printed.

The event log has each failed step with its error, and each failed check with the rows it found. A process that ended
before its run began, as for a module that can't be imported, has left nothing but its output.
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
# Errors of Dagster that only carry another one; a failed check is shown with its rows instead.
_WRAPPERS = ("DagsterExecutionStepExecutionError", "DagsterResourceFunctionError", "DagsterUserCodeExecutionError")
_FAILED_CHECK, _CRASH = "DagsterAssetCheckFailedError", "ChildProcessCrashException"
_WITHOUT_A_WORD = "its process ended without an error message: it was killed, often for want of memory"
_LAST_LINES = 20  # of an output in which no error is recognised
_MOST_ROWS = 10


@dataclass(frozen=True)
class Reason:
    """What failed, and the error in full: type, message and place of it and of each of its causes."""

    what: str
    error: str

    def __str__(self) -> str:
        return f"{self.what}\n" + "\n".join(f"    {line}" for line in self.error.splitlines())


def run_of(line: str) -> str | None:
    """Id of the run that a line of Dagster's output belongs to; None for any other line."""
    match = _LOGGED.match(line)
    return match["run"] if match else None


def reasons(output: Sequence[str], returncode: int, home: Path) -> list[Reason]:
    """At least one reason, steps and checks in the order in which they failed.

    Args:
        output: All lines that the process printed.
        returncode: Its exit code; below 0 the signal that ended it.
        home: Its DAGSTER_HOME.
    """
    run = next(filter(None, map(run_of, output)), None)
    logged: list[Reason] = []
    running: list[str] = []
    if run:
        try:
            logged, running = _from_events(run, home)
        except Exception as unreadable:  # whatever keeps the log from being read, the output still has the reason
            output = [*output, f"(the event log in {home} can't be read: {unreadable})"]
    if logged:
        return logged
    what = f"step {', '.join(running)}" if running else "the run" if run else "dagster, before the run began"
    if returncode < 0:
        ended = f"its process was ended by signal {-returncode} ({signal.strsignal(-returncode)})"
        return [Reason(what, ended + (", often for want of memory" if returncode == -signal.SIGKILL else ""))]
    return [Reason(what, _from_text(output) or _WITHOUT_A_WORD)]


def _from_events(run: str, home: Path) -> tuple[list[Reason], list[str]]:
    """Reasons in the event log of a run, and the steps that it has not seen the end of."""
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
        failed += _of_event(event)
    ends = [event.job_failure_data.error for event in events if event.event_type == kind.RUN_FAILURE]
    if not failed and ends and ends[-1]:
        failed = [Reason("the run", _chain(ends[-1]))]
    return failed, list(running)


def _of_event(event: dg.DagsterEvent) -> list[Reason]:
    """A failed step or blocking check; nothing else."""
    if event.event_type_value == "STEP_FAILURE":
        error = event.step_failure_data.error
        if error is None:
            return [Reason(f"step {event.step_key}", _WITHOUT_A_WORD)]
        return [] if error.cls_name == _FAILED_CHECK else [Reason(f"step {event.step_key}", _chain(error))]
    if event.event_type_value == "ASSET_CHECK_EVALUATION":
        check = event.asset_check_evaluation_data
        if not check.passed and check.blocking and check.severity.value == "ERROR":
            return [Reason(f"check {check.check_name} of {check.asset_key.to_user_string()}",
                           "\n".join(_findings(check)) or "it did not pass")]
    return []


def _findings(check: Any) -> Iterator[str]:
    """What a check says of itself: single values, then its rows as `column=value, ...`."""
    if check.description:
        yield check.description
    tables = {name: value for name, value in check.metadata.items() if hasattr(value, "records")}
    yield from (f"{name}: {value.value}" for name, value in check.metadata.items() if name not in tables)
    for table in tables.values():
        columns = [column.name for column in table.schema.columns]
        for record in table.records[:_MOST_ROWS]:
            yield ", ".join(f"{name}={record.data.get(name)}" for name in columns)
        if len(table.records) > _MOST_ROWS:
            yield f"... and {len(table.records) - _MOST_ROWS} more"


def _chain(error: Any) -> str:
    """An error and its causes. Dagster's wrapper around it and a repeated message are left out."""
    errors = []
    while error is not None:
        errors.append(error)
        error = error.cause
    if errors[0].cls_name == _CRASH:
        return f"{_CRASH}: {_WITHOUT_A_WORD}"
    shown = [one for one, cause in zip(errors, [*errors[1:], None], strict=True)
             if cause is None or one.cls_name not in _WRAPPERS and _message(one) != _message(cause)]
    return "\ncaused by ".join(f"{one.cls_name}: {_message(one)}{_place(one.stack)}" for one in shown)


def _message(error: Any) -> str:
    """Its message without the type in front."""
    start, _, rest = error.message.partition(": ")
    return str(rest if start.split(".")[-1] == error.cls_name else error.message).strip()


def _place(stack: Sequence[str]) -> str:
    """Where it was raised: the last line of code that is no library's."""
    frames = [frame for frame in (_FRAME.search(line) for line in stack) if frame]
    own = [frame for frame in frames if "site-packages" not in frame["file"] and not frame["file"].startswith("<")]
    return f"\n  at {own[-1]['file']}, line {own[-1]['line']}" if own else ""


def _from_text(output: Sequence[str]) -> str:
    """The exceptions that ended a process, as Python prints them without the frames; the last lines without any."""
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
        return "\n".join("\n".join(one).strip() for one in exceptions)
    return "\n".join([line for line in lines if line][-_LAST_LINES:])
