"""`make demo`: the whole flow as a newcomer runs it, and what came out."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from f1_pipelines.identity.weekends import Weekend, known_weekends
from f1_pipelines.run_failure import reasons
from f1_pipelines.settings import PROJECT_ROOT, Settings, settings
from f1_pipelines.sources.base import RaceDataSource
from f1_pipelines.sources.choose import open_source
from f1_pipelines.tables.race import RESULTS

_TABLE = PROJECT_ROOT / "warehouse" / "queries" / "ranking_table.sql"
_LEADERBOARD = PROJECT_ROOT / "warehouse" / "queries" / "leaderboard.sql"
DEFINITIONS = "f1_pipelines.definitions"
Sizes = dict[str, dict[str, Any]]
# What trains the ranker comes before the engineer, who holds the pool of the GPU for minutes; a run that waits for a
# pool keeps a core busy with waiting.
FLOW = ("practice_results", "qualifying_results", "race_results", "race_laps", "ranking_features", "circuit_fits",
        "listnet_temperature", "pretrained_ranker", "ewc_ranker", "promoted_ranker")
MEASURED = ("race_predictions", "ranking_evaluation", "simulator_validation")

# The race engineer as two cores train and examine it in ten minutes; assets alone take more held-out races.
DEMO_SIZE: Sizes = {"scripted_races": {"seeds": 40, "unseen_circuits": 8, "workers": 1},
                    "strategy_evaluation": {"seeds": 30, "unseen_circuits": 8, "hint_races": 10}}
# Enough to see that everything runs, not to learn anything.
TOY_SIZE: Sizes = {"sft_dataset": {"races": 2, "validation_races": 1},
                   "sft_engineer": {"settings": {"epochs": 12.0, "warmup_steps": 5, "round_races": 1,
                                                 "round_epochs": 6.0}},
                   "grpo_engineer": {"settings": {"steps": 1, "races": 1, "states": 2, "looks": 7, "samples": 4,
                                                  "temperature": 0.4}},
                   "scripted_races": {"seeds": 1, "unseen_circuits": 1, "workers": 1},
                   "strategy_evaluation": {"seeds": 1, "unseen_circuits": 1, "hint_races": 1, "workers": 1}}
SIZES = {"demo": DEMO_SIZE, "toy": TOY_SIZE, "none": None}


def run(engineer: str = "demo") -> None:
    """Materialize the flow for what the source has, train a race engineer, print evaluation, next prediction and
    leaderboard, say what to open.

    Args:
        engineer: How much of the race engineer, a key of `SIZES`.

    Raises:
        click.ClickException: A step failed; which and why is printed.
    """
    told, sizes = settings(), SIZES[engineer]
    source = told.f1_source + (f" ({told.f1_f1db_path})" if told.f1_f1db_path else "")
    click.echo(f"Race weekends from {source} into {told.f1_warehouse}\n")
    start = time.monotonic()
    weekends = _weekends(told)
    materialize("race_calendar", f"{weekends[0].key}...{weekends[-1].key}")
    first, upcoming = span(_source(told), _weekends(told))  # asked again: the calendar may have told new weekends
    materialize(",".join(FLOW), f"{first}...{upcoming}")
    with ThreadPoolExecutor(1) as beside:  # where the engineer leaves a core idle
        waited_for = [beside.submit(materialize, ",".join(MEASURED), f"{first}...{upcoming}",
                                    patient=sizes is not None)]
        if sizes is not None:
            click.echo("\nA race engineer, from nothing: imitation of the expert, then practice in the simulator\n")
            materialize("sft_dataset", sizes=sizes)
            waited_for.append(beside.submit(materialize, "scripted_races", sizes=sizes, patient=True))
            materialize("sft_engineer,grpo_engineer", sizes=sizes)
        for one in waited_for:
            one.result()
    if sizes is not None:
        materialize("strategy_evaluation,promoted_engineers,race_story,training_evidence", sizes=sizes)
    click.echo(f"\nMaterialized in {time.monotonic() - start:.0f} s.\n")
    _f1("query", "--file", str(_TABLE))
    click.echo("")
    _f1("predict", upcoming)
    if sizes is not None:
        click.echo("")
        _f1("query", "--file", str(_LEADERBOARD))
    # What was given on the command line must be given again, or another warehouse answers.
    given = "".join(f"{name}={os.environ[name]} " for name in ("F1_SOURCE", "F1_F1DB_PATH", "F1_WAREHOUSE")
                    if name in os.environ)
    f1 = f"{given}{Path(sys.executable).with_name('f1')}"
    click.echo(f"""
What to open:
  {given}make dev     the asset graph, checks and plots on http://127.0.0.1:3000
  {f1} predict 2026-monaco     any weekend
  {f1} query "SELECT * FROM race.sessions WHERE weekend = '2026-monaco'"
  {f1} race --family weather_roulette --seed 7 --policy expert
  {f1} serve     the pit wall on http://127.0.0.1:8000: watch a race, drive one, predict
  {PROJECT_ROOT / 'warehouse' / 'README.md'}     every table""")


def span(source: RaceDataSource, weekends: Sequence[Weekend]) -> tuple[str, str]:
    """Keys of the first weekend that the source has results of, and of the next one to predict.

    Only weekends that there is something of: a longer range would mark the others as materialized all the same.
    """
    run = set(source.results(weekends).tables.get(RESULTS.qualified, RESULTS.empty())["weekend"])
    held = [at for at, weekend in enumerate(weekends) if weekend.key in run]
    after = weekends[held[-1] + 1:] if held else weekends
    upcoming = next((weekend.key for weekend in after if weekend.planned == "scheduled"), weekends[-1].key)
    return (weekends[held[0]].key if held else upcoming), upcoming


def _weekends(told: Settings) -> tuple[Weekend, ...]:
    """Those of the demo, by race start: all, but with FastF1, which loads a weekend for minutes, from this season."""
    known = known_weekends(told.calendar_path)
    if told.f1_source != "fastf1":
        return known
    season = max(weekend.season for weekend in known if weekend.race_start <= datetime.now(UTC))
    return tuple(weekend for weekend in known if weekend.season >= season)


def _source(told: Settings) -> RaceDataSource:
    return open_source(
        told.f1_source, lambda: datetime.now(UTC), f1db_path=told.f1_f1db_path, f1db_url=told.f1_f1db_url,
        f1db_folder=told.f1_warehouse.with_name("f1db"), fastf1_cache=told.f1_fastf1_cache,
        calendar_path=told.calendar_path)


def materialize(selection: str, partitions: str | None = None, sizes: Sizes | None = None,
                patient: bool = False) -> None:
    """`dagster asset materialize` for a range of weekends or, without, of assets of no weekend; its debug lines left
    out. `sizes` configures the assets that it names; a patient run lets others go before.

    Raises:
        click.ClickException: It failed. Why is printed: each failed step with its error, each failed check with its
            rows, and where the whole output lies.
    """
    command = [*(["nice", "-n", "10"] if patient else []), sys.executable, "-m", "dagster", "asset", "materialize",
               "-m", DEFINITIONS, "--select", selection,
               *(["--partition-range", partitions] if partitions else [])]
    told = {name: {"config": sizes[name]} for name in selection.split(",") if sizes and name in sizes}
    if told:
        command += ["--config-json", json.dumps({"ops": told})]
    with _dagster_home() as home, tempfile.NamedTemporaryFile(
            "w", prefix="f1-demo-", suffix=".log", delete=False, encoding="utf-8") as log:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore::FutureWarning", "DAGSTER_HOME": str(home)}
        output = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", env=environment) as run:
            for line in run.stdout or ():
                output.append(line)
                log.write(line)
                if _worth_showing(line):
                    click.echo(f"  {_shortened(line)}")
        if not run.returncode:
            os.unlink(log.name)
            return
        failed = reasons(output, run.returncode, home)
    # At once, and not only with the exception: what runs beside may go on for minutes before that is seen.
    click.echo("\n".join(["", *(f"FAILED: {reason}" for reason in failed), f"The whole log: {log.name}", ""]), err=True)
    raise click.ClickException(f"failed: {', '.join(reason.what for reason in failed)}; the reason stands above, the "
                               f"whole log in {log.name}; `f1 doctor` checks the installation")


@contextmanager
def _dagster_home() -> Iterator[Path]:
    """The caller's own, else one that goes when the run is over: its event log says why a run failed."""
    if given := os.environ.get("DAGSTER_HOME"):
        yield Path(given)
        return
    with tempfile.TemporaryDirectory(prefix="f1-demo-home-") as folder:
        Path(folder, "dagster.yaml").write_bytes((PROJECT_ROOT / "dagster.yaml").read_bytes())
        yield Path(folder)


def _worth_showing(line: str) -> bool:
    return any(mark in line for mark in ("STEP_SUCCESS", "STEP_FAILURE", "RUN_FAILURE", " - WARNING - ", " - INFO - ",
                                         " - ERROR - "))


def _shortened(line: str) -> str:
    parts = line.rstrip().split(" - ")
    return " - ".join([parts[0][11:19], *parts[5:]]) if len(parts) > 5 else line.rstrip()


def _f1(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "f1_pipelines", *arguments], check=False)
    if done.returncode:
        raise click.ClickException(f"f1 {arguments[0]} failed: see the line above")
