"""`make demo`: the whole flow as a newcomer runs it, and what came out."""
from __future__ import annotations

import os
import subprocess
import sys
import time

import click

from f1_pipelines.identity.weekends import known_weekends
from f1_pipelines.predict import next_weekend
from f1_pipelines.settings import PROJECT_ROOT, settings
from f1_pipelines.warehouse.database import WarehouseFile

_TABLE = PROJECT_ROOT / "warehouse" / "queries" / "ranking_table.sql"
FLOW = ("practice_results", "qualifying_results", "race_results", "race_laps", "ranking_features",
        "listnet_temperature", "pretrained_ranker", "race_predictions", "ranking_evaluation")


def run() -> None:
    """Materialize the flow for every season, print the evaluation and the next prediction, say what to open.

    Raises:
        click.ClickException: A step failed; Dagster has printed which and why.
    """
    told = settings()
    source = told.f1_source + (f" ({told.f1_f1db_path})" if told.f1_f1db_path else "")
    click.echo(f"Race weekends from {source} into {told.f1_warehouse}\n")
    weekends = [weekend.key for weekend in known_weekends(told.calendar_path)]
    start = time.monotonic()
    materialize("race_calendar", f"{weekends[0]}...{weekends[-1]}")
    # Only weekends that there is something of: a range would mark the others as materialized all the same.
    with WarehouseFile(told.f1_warehouse).read() as connection:
        done = connection.execute("SELECT weekend FROM race.calendar WHERE state = 'done' "
                                  "ORDER BY race_start").fetchall()
        upcoming = next_weekend(connection)
    materialize(",".join(FLOW), f"{done[0][0] if done else upcoming}...{upcoming}")
    click.echo(f"\nMaterialized in {time.monotonic() - start:.0f} s.\n")
    _f1("query", "--file", str(_TABLE))
    click.echo("")
    _f1("predict", "next")
    click.echo(f"""
What to open:
  make dev                              the asset graph, checks and plots on http://127.0.0.1:3000
  f1 predict 2026-monaco                any weekend
  f1 query "SELECT * FROM race.sessions WHERE weekend = '2026-monaco'"
  {PROJECT_ROOT / 'warehouse' / 'README.md'}   every table""")


def materialize(selection: str, partitions: str) -> None:
    """`dagster asset materialize` for a range of weekends, its debug lines left out."""
    command = [sys.executable, "-m", "dagster", "asset", "materialize", "-m", "f1_pipelines.definitions",
               "--select", selection, "--partition-range", partitions]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore::FutureWarning"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as run:
        for line in run.stdout or ():
            if _worth_showing(line):
                click.echo(f"  {_shortened(line)}")
    if run.returncode:
        raise click.ClickException("a step failed: see the lines above; `f1 doctor` checks the installation")


def _worth_showing(line: str) -> bool:
    return any(mark in line for mark in ("STEP_SUCCESS", "STEP_FAILURE", "RUN_FAILURE", " - WARNING - ", " - INFO - ",
                                         " - ERROR - ", "Failure:", "Error:"))


def _shortened(line: str) -> str:
    parts = line.rstrip().split(" - ")
    return " - ".join([parts[0][11:19], *parts[5:]]) if len(parts) > 5 else line.rstrip()


def _f1(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "f1_pipelines", *arguments], check=False)
    if done.returncode:
        raise click.ClickException(f"f1 {arguments[0]} failed: see the line above")
