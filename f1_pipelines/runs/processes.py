"""Whether a process of this machine lives. Its id alone does not say: ids are given out again."""
from __future__ import annotations

import os
from pathlib import Path

# A process that began so long after an event named it is another one under the same id [s].
_BORN_LATER_S = 5.0


def process_lives(pid: int, started: int | None) -> bool:
    """Whether a process of this machine is still there, and not another one under its id.

    Args:
        pid: Its id.
        started: As `started_ticks` said.
    """
    return exists(pid) and (started is None or started_ticks(pid) in (None, started))


def exists(pid: int) -> bool:
    """Whether a process of that id is at work on this machine. One that only waits to be collected is not."""
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    fields = _stat(pid)
    return fields is None or fields[0] != "Z"


def started_ticks(pid: int) -> int | None:
    """When a process started [clock ticks since the machine did], None where the system does not tell."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def may_be(pid: int, named_at: float) -> bool:
    """Whether the process of that id may be the one that an event named.

    Args:
        pid: Its id.
        named_at: Instant of the event [s since the epoch].
    """
    if not exists(pid):
        return False
    ticks = started_ticks(pid)
    if ticks is None:
        return True
    started = _boot_instant() + ticks / os.sysconf("SC_CLK_TCK")
    return started <= named_at + _BORN_LATER_S


def _boot_instant() -> float:
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third, the state, on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
