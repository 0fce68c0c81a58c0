"""Check whether a process of this machine is alive. Process ids are reused, so its start time is compared too."""
from __future__ import annotations

import os
from pathlib import Path

# A process that started this long after the event that names its id is another one with the same id [s].
_REUSED_AFTER_S = 5.0


def process_lives(pid: int, started: int | None) -> bool:
    """Whether a process of this machine is alive, and not another one with its id.

    Args:
        pid: Its process id.
        started: Its `started_ticks`; None if unknown.
    """
    return exists(pid) and (started is None or started_ticks(pid) in (None, started))


def exists(pid: int) -> bool:
    """Whether a process with this id runs on this machine. A zombie does not."""
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    fields = _stat(pid)
    return fields is None or fields[0] != "Z"


def started_ticks(pid: int) -> int | None:
    """Start time of a process [clock ticks since boot]; None if unknown."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def may_be(pid: int, named_at: float) -> bool:
    """Whether the process with this id may be the one that an event named.

    Args:
        pid: Its process id.
        named_at: Time of the event [s since the epoch].
    """
    if not exists(pid):
        return False
    ticks = started_ticks(pid)
    if ticks is None:
        return True
    started = _boot_time() + ticks / os.sysconf("SC_CLK_TCK")
    return started <= named_at + _REUSED_AFTER_S


def _boot_time() -> float:
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third one, the state."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
