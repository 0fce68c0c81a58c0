"""On which machine a Dagster run is, and whether its processes live.

Dagster records process ids, not machines. So our executor writes both into the run's tags before the first step; a
process is known by its id and the instant it started, since ids are given out again.
"""
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast

import dagster as dg

from f1_pipelines.runs.processes import process_lives, started_ticks

HOST_TAG, PROCESS_TAG = "f1/host", "f1/process"
Place = Literal["here", "before a restart", "elsewhere"]


@dataclass(frozen=True)
class Host:
    """A machine since its last start. Fields are empty where the system does not tell.

    Attributes:
        name: Host name.
        machine: Id of its installation.
        boot: Id of its last start.
        pids: Namespace of its process ids: a container has its own.
    """

    name: str
    machine: str
    boot: str
    pids: str

    @classmethod
    def here(cls) -> "Host":
        """This machine."""
        return cls(socket.gethostname(), _line_of("/etc/machine-id"), _line_of("/proc/sys/kernel/random/boot_id"),
                   _namespace())

    def seen_from(self, here: "Host") -> Place:
        """Where this is for a process on `here`. "here": process ids of both are the same. "before a restart": nothing
        of it is left. "elsewhere": another machine or container, or one that might be."""
        if self.name != here.name or self.machine != here.machine:
            return "elsewhere"
        if self.boot == here.boot:
            return "here" if self.pids == here.pids else "elsewhere"
        return "before a restart" if self.machine and self.boot and here.boot else "elsewhere"


@dataclass(frozen=True)
class RunProcess:
    """The process of a run.

    Attributes:
        run_id: Of the run. A re-executed run inherits the tags of the one before, and with them its process.
        host: Its machine.
        pid: Its id there.
        started: Instant it started [clock ticks since the machine did]; None where the system does not tell.
    """

    run_id: str
    host: Host
    pid: int
    started: int | None

    @classmethod
    def current(cls, run_id: str) -> "RunProcess":
        """This process."""
        return cls(run_id, Host.here(), os.getpid(), started_ticks(os.getpid()))

    @classmethod
    def of(cls, run: dg.DagsterRun) -> "RunProcess | None":
        """As recorded in the run's tags, None where it is not."""
        try:
            fields = json.loads(run.tags[PROCESS_TAG])
            process = cls(**{**fields, "host": Host(**fields["host"])})
        except (KeyError, TypeError, ValueError):
            return None
        return process if process.run_id == run.run_id else None

    def tags(self) -> dict[str, str]:
        """For the run: the host for people, the process for `of`."""
        return {HOST_TAG: self.host.name, PROCESS_TAG: json.dumps(asdict(self))}

    def lives(self) -> bool:
        """Whether it is still there; asked on its machine."""
        return process_lives(self.pid, self.started)


class RecordedExecutor(dg.Executor):
    """Executes as another executor does, and first records host and process in the run's tags."""

    def __init__(self, executor: dg.Executor) -> None:
        self._executor = executor

    # Dagster does not export the types of these four: Any.
    @property
    def retries(self) -> Any:
        """Retry mode of the wrapped executor."""
        return self._executor.retries

    @property
    def step_dependency_config(self) -> Any:
        """Step dependencies of the wrapped executor."""
        return self._executor.step_dependency_config

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Record, then execute."""
        run_id = plan_context.run_id
        plan_context.instance.add_run_tags(run_id, RunProcess.current(run_id).tags())
        yield from self._executor.execute(plan_context, execution_plan)


def _recorded_in_process(init_context: dg.InitExecutorContext) -> RecordedExecutor:
    """Dagster's in-process executor, for runs that record their machine."""
    create = dg.in_process_executor.executor_creation_fn
    if create is None:
        raise RuntimeError("dagster's in_process_executor creates no executor any more; another one must be wrapped")
    return RecordedExecutor(create(init_context))


recorded_in_process_executor = dg.ExecutorDefinition(
    name="in_process", config_schema=cast("Any", dg.in_process_executor.config_schema),
    executor_creation_fn=_recorded_in_process,
    description="In one process, recorded with its machine.")


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _line_of(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
