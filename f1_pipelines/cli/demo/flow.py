"""`make demo`: run the whole flow and print its results."""
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
# The ranker trains before the engineer, which holds the GPU pool for minutes: a run that waits for a pool keeps a core
# busy.
FLOW = ("practice_results", "qualifying_results", "race_results", "race_laps", "ranking_features", "circuit_fits",
        "listnet_temperature", "pretrained_ranker", "ewc_ranker", "promoted_ranker")
RANKER_RESULTS = ("race_predictions", "ranking_evaluation", "simulator_validation")
# The race engineer: training data, policies for comparison, training, results.
DATASET, BASELINES, TRAINING = ("sft_dataset",), ("scripted_races",), ("sft_engineer", "grpo_engineer")
ENGINEER_RESULTS = ("strategy_evaluation", "promoted_engineers", "race_story", "training_evidence")

# Ten minutes of training and evaluation on two cores; the assets' defaults have more held-out races.
DEMO_SIZE: Sizes = {"scripted_races": {"seeds": 40, "unseen_circuits": 8, "workers": 1},
                    "strategy_evaluation": {"seeds": 30, "unseen_circuits": 8, "hint_races": 10}}
# Shows that everything runs; too small to learn anything.
TOY_SIZE: Sizes = {"sft_dataset": {"races": 2, "validation_races": 1},
                   "sft_engineer": {"settings": {"epochs": 12.0, "warmup_steps": 5, "round_races": 1,
                                                 "round_epochs": 6.0}},
                   "grpo_engineer": {"settings": {"steps": 1, "races": 1, "states": 2, "looks": 7, "samples": 4,
                                                  "temperature": 0.4}},
                   "scripted_races": {"seeds": 1, "unseen_circuits": 1, "workers": 1},
                   "strategy_evaluation": {"seeds": 1, "unseen_circuits": 1, "hint_races": 1, "workers": 1}}
SIZES: dict[str, Sizes | None] = {"demo": DEMO_SIZE, "toy": TOY_SIZE, "none": None}


def run(engineer: str = "demo", verbose: bool = False) -> None:
    """Materialize the flow for all weekends of the source, train a race engineer, print results and next commands.

    Args:
        engineer: Size of the race engineer, a key of `SIZES`.
        verbose: Also print Dagster's own lines.

    Raises:
        click.ClickException: A step failed; the step and reason are printed.
    """
    current, sizes = settings(), SIZES[engineer]
    source = current.f1_source + (f" ({current.f1_f1db_path})" if current.f1_f1db_path else "")
    click.echo(f"Race weekends from {source} into {current.f1_warehouse}\n")
    engineers = (*DATASET, *BASELINES, *TRAINING, *ENGINEER_RESULTS) if sizes is not None else ()
    with Progress((*CALENDAR, *FLOW, *RANKER_RESULTS, *engineers), verbose) as progress:
        upcoming = _materialize_all(current, sizes, progress)
    click.echo(f"\nMaterialized in {progress.elapsed_s:.0f} s: {progress.done} assets; {progress.checks_passed} checks "
               f"passed, {progress.warnings or 'no'} warning{'s' if progress.warnings != 1 else ''}.\n")
    for block in summary(upcoming, engineer):
        click.echo(f"{block}\n")
    click.echo(_next_commands(upcoming))


def _materialize_all(current: Settings, sizes: Sizes | None, progress: Progress) -> str:
    """Run the flow, with the engineer in parallel to the ranker's evaluation. Return the weekend to predict."""
    run_assets = partial(_materialize, progress, sizes)
    weekends = _weekends(current)
    run_assets(CALENDAR, f"{weekends[0].key}...{weekends[-1].key}")
    first, upcoming = span(_source(current), _weekends(current))  # read again: the source may have added weekends
    run_assets(FLOW, f"{first}...{upcoming}")
    with ThreadPoolExecutor(1) as background:  # uses the core that the engineer leaves idle
        futures = [background.submit(run_assets, RANKER_RESULTS, f"{first}...{upcoming}", patient=sizes is not None)]
        if sizes is not None:
            progress.say("Training a race engineer: SFT on the expert's races, then GRPO in the simulator")
            run_assets(DATASET)
            futures.append(background.submit(run_assets, BASELINES, patient=True))
            run_assets(TRAINING)
        for future in futures:
            future.result()
    if sizes is not None:
        run_assets(ENGINEER_RESULTS)
    return upcoming


def _materialize(progress: Progress, sizes: Sizes | None, assets: Sequence[str], partitions: str | None = None,
                 patient: bool = False) -> None:
    materialize(",".join(assets), partitions, sizes, patient, progress)


def _next_commands(upcoming: str) -> str:
    # The same variables must be set again, or the commands use another warehouse.
    variables = " ".join(f"{name}={shlex.quote(os.environ[name])}"
                         for name in ("F1_SOURCE", "F1_F1DB_PATH", "F1_WAREHOUSE") if name in os.environ)
    f1, tables = _command(), _relative(PROJECT_ROOT / "warehouse" / "README.md")
    lines = [("make dev", "asset graph, checks and plots on http://127.0.0.1:3000"),
             (f"{f1} serve", "pit wall on http://127.0.0.1:8000: watch a race, drive one, predict"),
             (f"{f1} predict {upcoming}", "the whole forecast; other weekends work too"),
             (f'{f1} query "FROM race.calendar"', f"any SQL; {tables} describes the tables"),
             (f"{f1} race --family weather_roulette --seed 7 --policy expert", "a race lap by lap")]
    return "\n".join(["Next commands:", *([f"  export {variables}"] if variables else []),
                      *(f"  {command:42}  {description}" for command, description in lines)])


def _command() -> str:
    """The command that calls `f1` of this installation."""
    own = Path(sys.executable).with_name("f1")
    return "f1" if shutil.which("f1") == str(own) else _relative(own)


def _relative(path: Path) -> str:
    """The path relative to the working directory, if below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def span(source: RaceDataSource, weekends: Sequence[Weekend]) -> tuple[str, str]:
    """Keys of the first weekend with results in the source, and of the next weekend to predict.

    A longer range would mark weekends without data as materialized.
    """
    with_results = set(source.results(weekends).tables.get(RESULTS.qualified, RESULTS.empty())["weekend"])
    raced = [at for at, weekend in enumerate(weekends) if weekend.key in with_results]
    later = weekends[raced[-1] + 1:] if raced else weekends
    upcoming = next((weekend.key for weekend in later if weekend.planned == "scheduled"), weekends[-1].key)
    return (weekends[raced[0]].key if raced else upcoming), upcoming


def _weekends(current: Settings) -> tuple[Weekend, ...]:
    """Weekends of the demo, by race start: all, or with FastF1 (minutes per weekend) those since the current season."""
    known = known_weekends(current.calendar_path)
    if current.f1_source != "fastf1":
        return known
    season = max(weekend.season for weekend in known if weekend.race_start <= datetime.now(UTC))
    return tuple(weekend for weekend in known if weekend.season >= season)


def _source(current: Settings) -> RaceDataSource:
    return open_source(
        current.f1_source, lambda: datetime.now(UTC), f1db_path=current.f1_f1db_path, f1db_url=current.f1_f1db_url,
        f1db_folder=current.f1_warehouse.with_name("f1db"), fastf1_cache=current.f1_fastf1_cache,
        calendar_path=current.calendar_path)
