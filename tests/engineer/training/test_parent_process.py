"""Training processes end with the run that started them."""
import os
import subprocess
import sys
import time
from pathlib import Path

from f1_pipelines.engineer.training.parent_process import STARTER, parent_of
from f1_pipelines.runs.processes import exists

# Starts a process that watches its parent, prints its id, and waits.
PARENT = """
import subprocess, sys, time
from f1_pipelines.engineer.training import parent_process
child = subprocess.Popen([sys.executable, "-c", "import time; from f1_pipelines.engineer.training import "
                          "parent_process as p; p.CHECK_EVERY_S = 0.1; p.exit_with_parent(); "
                          "print('ready', flush=True); time.sleep(60)"],
                         env={**__import__("os").environ, **parent_process.parent_of()}, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_training_ends_when_its_run_is_killed():
    run = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                           env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])})
    try:
        child = int(run.stdout.readline())
        time.sleep(0.5)
        assert exists(child), "while its run lives"
    finally:
        run.kill()
        run.wait()
        run.stdout.close()
    deadline = time.monotonic() + 20
    while exists(child):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_only_processes_started_by_a_run_name_a_parent():
    assert STARTER not in os.environ and set(parent_of()) == {STARTER}
