"""The machine and the process of a Dagster run.

Dagster records process ids, not machines. Our executor writes both into the run's tags before the first step. A process
is identified by its id and its start time, since ids are reused.
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
    """A machine since its last boot. Unknown fields are empty.

    Attributes:
        name: Host name.
        machine: Id of the installation.
        boot: Id of the last boot.
        pids: Namespace of process ids; each container has its own.
    """

    name: str
    machine: str
    boot: str
    pids: str

    @classmethod
    def here(cls) -> "Host":
        """This machine."""
        return cls(socket.gethostname(), _text_of("/etc/machine-id"), _text_of("/proc/sys/kernel/random/boot_id"),
                   _namespace())

    def seen_from(self, here: "Host") -> Place:
        """Compare this host with the current host `here`.

        Returns:
            "here": both share process ids. "before a restart": the same machine before its last boot, so none of its
            processes is left. "elsewhere": another machine or container, or possibly one.
        """
        if self.name != here.name or self.machine != here.machine:
            return "elsewhere"
        if self.boot == here.boot:
            return "here" if self.pids == here.pids else "elsewhere"
        return "before a restart" if self.machine and self.boot and here.boot else "elsewhere"


@dataclass(frozen=True)
class RunProcess:
    """The process of a run.

    Attributes:
        run_id: Id of the run. A re-executed run inherits the tags, and with them the process, of the run before.
        host: Its machine.
        pid: Its process id there.
        started: Its start time [clock ticks since boot]; None if unknown.
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
        """The process recorded in the run's tags; None if there is none."""
        try:
            fields = json.loads(run.tags[PROCESS_TAG])
            process = cls(**{**fields, "host": Host(**fields["host"])})
        except (KeyError, TypeError, ValueError):
            return None
        return process if process.run_id == run.run_id else None

    def tags(self) -> dict[str, str]:
        """Tags for the run: the host name for people, the process for `of`."""
        return {HOST_TAG: self.host.name, PROCESS_TAG: json.dumps(asdict(self))}

    def lives(self) -> bool:
        """Whether the process is alive. Call it on the process's machine."""
        return process_lives(self.pid, self.started)


class RecordedExecutor(dg.Executor):
    """Record host and process in the run's tags, then execute with another executor."""

    def __init__(self, executor: dg.Executor) -> None:
        self._executor = executor

    # Any: Dagster does not export these four types.
    @property
    def retries(self) -> Any:
        """Retry mode of the wrapped executor."""
        return self._executor.retries

    @property
    def step_dependency_config(self) -> Any:
        """Step dependencies of the wrapped executor."""
        return self._executor.step_dependency_config

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Record the process, then execute the plan."""
        run_id = plan_context.run_id
        plan_context.instance.add_run_tags(run_id, RunProcess.current(run_id).tags())
        yield from self._executor.execute(plan_context, execution_plan)


def _recorded_in_process(init_context: dg.InitExecutorContext) -> RecordedExecutor:
    """Dagster's in-process executor, wrapped to record the machine."""
    create = dg.in_process_executor.executor_creation_fn
    if create is None:
        raise RuntimeError("dagster's in_process_executor no longer creates an executor; wrap another one")
    return RecordedExecutor(create(init_context))


recorded_in_process_executor = dg.ExecutorDefinition(
    name="in_process", config_schema=cast("Any", dg.in_process_executor.config_schema),
    executor_creation_fn=_recorded_in_process,
    description="Run in one process, and record its machine.")


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
