"""A training process ends when the Dagster run that started it has ended.

A run killed with SIGKILL can't end the processes it started. They would keep the GPU, and write to the same folder as
the training that resumes.
"""
from __future__ import annotations

import json
import os
import sys
import threading
import time

from f1_pipelines.runs.processes import process_lives, started_ticks

STARTER = "F1_STARTED_BY"  # environment variable
CHECK_EVERY_S = 2.0


def parent_of() -> dict[str, str]:
    """Return the environment variables for a process that must end with this one."""
    return {STARTER: json.dumps([os.getpid(), started_ticks(os.getpid())])}


def exit_with_parent() -> None:
    """Watch the process that `parent_of` named in the environment, if any, and end soon after it."""
    if STARTER not in os.environ:
        return
    pid, started = json.loads(os.environ[STARTER])

    def watch() -> None:
        while process_lives(pid, started):
            time.sleep(CHECK_EVERY_S)
        print("the run that started this training has ended, so it stops; the next run resumes it", file=sys.stderr)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
