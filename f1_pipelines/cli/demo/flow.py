"""`make demo`: the whole flow as a newcomer runs it, and what came out."""
from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from f1_pipelines.cli.demo.progress import Progress
from f1_pipelines.cli.demo.runs import Sizes, materialize
from f1_pipelines.cli.demo.summary import summary
from f1_pipelines.identity.weekends import Weekend, known_weekends
from f1_pipelines.settings import PROJECT_ROOT, Settings, settings
from f1_pipelines.sources.base import RaceDataSource
from f1_pipelines.sources.factory import open_source
from f1_pipelines.tables.race import RESULTS

CALENDAR = ("race_calendar",)
# What trains the ranker comes before the engineer, who holds the pool of the GPU for minutes; a run that waits for a
# pool keeps a core busy with waiting.
FLOW = ("practice_results", "qualifying_results", "race_results", "race_laps", "ranking_features", "circuit_fits",
        "listnet_temperature", "pretrained_ranker", "ewc_ranker", "promoted_ranker")
MEASURED = ("race_predictions", "ranking_evaluation", "simulator_validation")
# The race engineer: what it learns from, who it is compared with, its training, and what came of it.
LESSONS, COMPARED, TRAINED = ("sft_dataset",), ("scripted_races",), ("sft_engineer", "grpo_engineer")
REPORTED = ("strategy_evaluation", "promoted_engineers", "race_story", "training_evidence")

# The race engineer as two cores train and evaluate it in ten minutes; assets alone take more held-out races.
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
SIZES: dict[str, Sizes | None] = {"demo": DEMO_SIZE, "toy": TOY_SIZE, "none": None}


def run(engineer: str = "demo", verbose: bool = False) -> None:
    """Materialize the flow for what the source has, train a race engineer, print what was made and what to open.

    Args:
        engineer: How much of the race engineer, a key of `SIZES`.
        verbose: Print Dagster's own lines as well.

    Raises:
        click.ClickException: A step failed; which and why is printed.
    """
    chosen, sizes = settings(), SIZES[engineer]
    source = chosen.f1_source + (f" ({chosen.f1_f1db_path})" if chosen.f1_f1db_path else "")
    click.echo(f"Race weekends from {source} into {chosen.f1_warehouse}\n")
    engineers = (*LESSONS, *COMPARED, *TRAINED, *REPORTED) if sizes is not None else ()
    with Progress((*CALENDAR, *FLOW, *MEASURED, *engineers), verbose) as progress:
        upcoming = _materialize_all(chosen, sizes, progress)
    click.echo(f"\nMaterialized in {progress.elapsed_s:.0f} s: {progress.done} assets; {progress.checks_passed} checks "
               f"passed, {progress.warnings or 'no'} warning{'s' if progress.warnings != 1 else ''}.\n")
    for block in summary(upcoming, engineer):
        click.echo(f"{block}\n")
    click.echo(_what_to_open(upcoming))


def _materialize_all(chosen: Settings, sizes: Sizes | None, progress: Progress) -> str:
    """Run everything, the engineer beside what is measured of the ranker; the weekend to predict."""
    make = partial(_materialize, progress, sizes)
    weekends = _weekends(chosen)
    make(CALENDAR, f"{weekends[0].key}...{weekends[-1].key}")
    first, upcoming = span(_source(chosen), _weekends(chosen))  # once more: the source may know new weekends
    make(FLOW, f"{first}...{upcoming}")
    with ThreadPoolExecutor(1) as beside:  # where the engineer leaves a core idle
        results = [beside.submit(make, MEASURED, f"{first}...{upcoming}", patient=sizes is not None)]
        if sizes is not None:
            progress.say("A race engineer, from nothing: it imitates the expert, then practises in the simulator")
            make(LESSONS)
            results.append(beside.submit(make, COMPARED, patient=True))
            make(TRAINED)
        for result in results:
            result.result()
    if sizes is not None:
        make(REPORTED)
    return upcoming


def _materialize(progress: Progress, sizes: Sizes | None, assets: Sequence[str], partitions: str | None = None,
                 patient: bool = False) -> None:
    materialize(",".join(assets), partitions, sizes, patient, progress)


def _what_to_open(upcoming: str) -> str:
    # What was set for this run must be set again, or another warehouse answers.
    given = " ".join(f"{name}={shlex.quote(os.environ[name])}" for name in ("F1_SOURCE", "F1_F1DB_PATH", "F1_WAREHOUSE")
                     if name in os.environ)
    f1, tables = _command(), _near(PROJECT_ROOT / "warehouse" / "README.md")
    lines = [("make dev", "asset graph, checks and plots on http://127.0.0.1:3000"),
             (f"{f1} serve", "pit wall on http://127.0.0.1:8000: watch a race, drive one, predict"),
             (f"{f1} predict {upcoming}", "the whole forecast; any other weekend works too"),
             (f'{f1} query "FROM race.calendar"', f"any SQL; {tables} describes the tables"),
             (f"{f1} race --family weather_roulette --seed 7 --policy expert", "a race lap by lap")]
    return "\n".join(["What to open:", *([f"  export {given}"] if given else []),
                      *(f"  {command:42}  {what}" for command, what in lines)])


def _command() -> str:
    """How `f1` of this installation is called from here."""
    own = Path(sys.executable).with_name("f1")
    return "f1" if shutil.which("f1") == str(own) else _near(own)


def _near(path: Path) -> str:
    """A path as seen from the working directory, if it lies below."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def span(source: RaceDataSource, weekends: Sequence[Weekend]) -> tuple[str, str]:
    """Keys of the first weekend that the source has results of, and of the next one to predict.

    Only weekends that there is something of: a longer range would mark the others as materialized all the same.
    """
    run = set(source.results(weekends).tables.get(RESULTS.qualified, RESULTS.empty())["weekend"])
    held = [at for at, weekend in enumerate(weekends) if weekend.key in run]
    after = weekends[held[-1] + 1:] if held else weekends
    upcoming = next((weekend.key for weekend in after if weekend.planned == "scheduled"), weekends[-1].key)
    return (weekends[held[0]].key if held else upcoming), upcoming


def _weekends(chosen: Settings) -> tuple[Weekend, ...]:
    """Those of the demo, by race start: all, but with FastF1, which loads a weekend for minutes, from this season."""
    known = known_weekends(chosen.calendar_path)
    if chosen.f1_source != "fastf1":
        return known
    season = max(weekend.season for weekend in known if weekend.race_start <= datetime.now(UTC))
    return tuple(weekend for weekend in known if weekend.season >= season)


def _source(chosen: Settings) -> RaceDataSource:
    return open_source(
        chosen.f1_source, lambda: datetime.now(UTC), f1db_path=chosen.f1_f1db_path, f1db_url=chosen.f1_f1db_url,
        f1db_folder=chosen.f1_warehouse.with_name("f1db"), fastf1_cache=chosen.f1_fastf1_cache,
        calendar_path=chosen.calendar_path)
