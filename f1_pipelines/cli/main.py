"""The command `f1`: ask the warehouse, predict a weekend, play a race, serve, look after the installation."""
from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import duckdb

from f1_pipelines.cli.help import CommandGroup
from f1_pipelines.cli.terminal import counting
from f1_pipelines.settings import settings
from f1_pipelines.warehouse.database import WarehouseFile

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table",
                       show_default=True, help="How rows are printed.")


def main() -> None:
    """Run `f1`. An error that a user can mend is one sentence with exit code 1, never a traceback."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except click.Abort:
        sys.exit(130)
    except (ValueError, RuntimeError, OSError, duckdb.Error) as problem:
        _fail(" ".join(str(problem).split()) or type(problem).__name__)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """From a Formula 1 race weekend to a ranked prediction."""


@cli.command()
@click.argument("sql", required=False)
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Read the SQL from a file.")
@_FORMAT
def query(sql: str | None, file: Path | None, form: str) -> None:
    """Run an SQL query on the published warehouse."""
    if (sql is None) == (file is None):
        raise click.UsageError('wanted either an SQL text or --file, for example f1 query "SELECT 1"')
    with WarehouseFile(settings().f1_warehouse).read() as connection:
        answer = connection.sql(_text_of(file) if file else str(sql))
        _print_rows(answer.df() if answer else None, form)


@cli.command()
@click.argument("weekend")
@click.option("--stage", type=click.Choice(["entry", "practice", "qualifying", "grid"]),
              help="Look no further than the entry list, practice, qualifying or the grid; all that is known without.")
@_FORMAT
def predict(weekend: str, stage: str | None, form: str) -> None:
    """Forecast the finishing order of WEEKEND, with chances.

    WEEKEND is a key such as 2026-monaco, or next. The promoted model makes the forecast.
    """
    from f1_pipelines.forecast.report import predict_stored

    stored = predict_stored(weekend, stage)
    if form == "table":
        click.echo(stored.heading)
    _print_rows(stored.ranking, form)


@cli.command()
@click.argument("checkpoint", required=False)
@click.option("--back", is_flag=True, help="Make the champion before this one champion again.")
@click.option("--reason", default="", help="Why, for ranking.promotions.")
@click.option("--force", is_flag=True,
              help="Promote it though its own weights fail the acceptance test; the reason says so.")
def promote(checkpoint: str | None, back: bool, reason: str, force: bool) -> None:
    """Use CHECKPOINT for forecasts, or go back to the one before."""
    from f1_pipelines.promotion.operator import decide_by_hand

    if (checkpoint is None) != back:
        raise click.UsageError("wanted either a checkpoint or --back; `f1 query \"SELECT checkpoint, kind, "
                               "trained_through, promoted FROM ranking.checkpoints\"` lists them")
    made = decide_by_hand(checkpoint, reason, lambda warning: click.echo(f"f1: {warning}", err=True), force)
    click.echo(f"{made.candidate} is champion now; before: {made.champion or 'none'}")


@cli.command()
@click.argument("subject", metavar="CHECKPOINT|WEEKEND")
@click.option("--rebuild", is_flag=True, help="Make it again from the rows that were kept, and compare bit by bit.")
def trace(subject: str, rebuild: bool) -> None:
    """Show where a checkpoint or a forecast comes from.

    Of CHECKPOINT, or of what was predicted of WEEKEND: parents, rows, results, runs, settings.
    """
    from f1_pipelines.lineage.trace import prove
    from f1_pipelines.lineage.trace import trace as sections_of

    with WarehouseFile(settings().f1_warehouse).read() as connection:
        for section in sections_of(connection, subject):
            click.echo(f"{section.title}")
            _print_rows(section.rows, "table")
            click.echo("")
        if rebuild:
            click.echo("\n".join(prove(connection, subject, settings().checkpoints_path)))


@cli.command()
@click.option("--family", required=True, help="Scenario family, for example dry_strategy_sprint, or grand_prix.")
@click.option("--seed", required=True, type=int, help="Which race of the family.")
@click.option("--policy", required=True, help="Who sits on the pit wall: expert, oracle, stay_out, ...")
@click.option("--circuit", help="Another circuit than the seed's own.")
@click.option("--weekend", help="Of a grand_prix: the weekend it is rebuilt from, for example 2026-monaco.")
@click.option("--driver", help="Of a grand_prix: whose pit wall, by driver id, a part of it, or car number.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="A table of laps and the log of decisions, or all of it as JSON.")
@click.option("--picture", help="Draw the race into this PNG file as well.")
def race(family: str, seed: int, policy: str, circuit: str | None, weekend: str | None, driver: str | None,
         form: str, picture: str | None) -> None:
    """Drive one race in the simulator."""
    from f1_pipelines.plots.race import picture_file, save_race
    from f1_pipelines.sim.policies.play import as_text, play, played, policy_for
    from f1_pipelines.sim.scenarios import GRAND_PRIX, make_grand_prix

    file = picture_file(picture) if picture is not None else None
    if family == GRAND_PRIX:
        if circuit or not weekend or not driver:
            raise click.UsageError("a grand_prix is rebuilt from a weekend of the warehouse: wanted --weekend and "
                                   "--driver, for example --weekend 2026-monaco --driver leclerc, and no --circuit")
        from f1_pipelines.weekend_scenarios import stored_weekend

        scenario = make_grand_prix(stored_weekend(weekend), driver, seed)
        with counting(f"{policy} drives {weekend}", "laps") as on_lap:
            race_log = played(scenario, policy_for(policy, scenario), policy, on_lap)
    elif weekend or driver:
        raise click.UsageError("--weekend and --driver belong to --family grand_prix")
    else:
        with counting(f"{policy} drives {family}", "laps") as on_lap:
            race_log = play(family, seed, policy, circuit, on_lap=on_lap)
    if file:
        save_race(race_log, file)
    click.echo(as_text(race_log) if form == "text" else json.dumps(asdict(race_log), ensure_ascii=False, indent=1))


@cli.command()
@click.option("--n", default=100, show_default=True, type=click.IntRange(min=1), help="Unseen seeds of each family.")
@click.option("--skip", default=0, show_default=True, type=click.IntRange(min=0),
              help="Unseen seeds to leave out first, for example those that somebody has looked at.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Processes.")
def policies(n: int, skip: int, workers: int) -> None:
    """Compare all scripted policies on the same races.

    The degenerate ones stand beside expert and oracle. Takes minutes at n = 100.
    """
    from f1_pipelines.engineer.evaluation.policy_table import as_text, policy_table
    from f1_pipelines.sim.policies.episodes import all_episodes

    with counting("Every policy drives every race", "races") as on_race:
        rows = all_episodes(n, skip=skip, workers=workers, on_race=on_race)
    click.echo(as_text(policy_table(rows)))


@cli.command()
@click.option("--engineer", type=click.Choice(["demo", "toy", "none"]), default="demo", show_default=True,
              help="Race engineer: trained in minutes, only just run, or left out.")
@click.option("--verbose", is_flag=True, help="Print Dagster's own lines as well.")
def demo(engineer: str, verbose: bool) -> None:
    """Run the whole flow and show what came out of it.

    At the end: the forecast of the next race, the evaluation of the ranker, the scores of the race engineers.
    """
    from f1_pipelines.cli.demo.flow import run

    run(engineer, verbose)


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
def serve(host: str, port: int) -> None:
    """Open the web pages and the environment server.

    Pages, environment server, live simulator, predictions.
    """
    from f1_pipelines.serve.run import run

    run(host, port)


@cli.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
def backup(folder: Path | None) -> None:
    """Copy warehouse, calendar and checkpoints into FOLDER.

    The copy is verified. Without FOLDER it is a new one in backups/ beside the warehouse. `f1 restore FOLDER` goes
    back to it.
    """
    from f1_pipelines.warehouse.backup import create_backup

    chosen, now = settings(), datetime.now(UTC)
    target = (folder or chosen.f1_warehouse.with_name("backups") / f"f1-{now:%Y%m%dT%H%M%SZ}").expanduser().absolute()
    size = create_backup(_warehouse(), target, chosen.calendar_path, chosen.checkpoints_path, now)
    click.echo(f"{target}: {size / 2**20:,.1f} MiB, verified. Go back to it with `f1 restore {target}`")


@cli.command()
@click.argument("source", required=False, type=click.Path(exists=True, path_type=Path))
def restore(source: Path | None) -> None:
    """Restore the warehouse from a copy.

    From the newest intact copy, or from SOURCE: a folder of f1 backup, or a DuckDB file. What is replaced is
    set aside, never deleted.
    """
    from f1_pipelines.warehouse.backup import restore_backup
    from f1_pipelines.warehouse.restore import restore as restore_file

    chosen, now = settings(), datetime.now(UTC)
    source = source and source.expanduser().absolute()
    restored = restore_backup(_warehouse(), source, chosen.calendar_path, chosen.checkpoints_path, now) \
        if source and source.is_dir() else restore_file(_warehouse(), now, source)
    for sentence in restored.skipped:
        click.echo(f"skipped: {sentence}")
    click.echo(f"{chosen.f1_warehouse} holds {restored.rows:,} rows again, from {restored.source} of "
               f"{restored.published_at:%Y-%m-%d %H:%M} UTC; materialize again what came later")
    for path in restored.set_aside:
        click.echo(f"set aside: {path}")


@cli.command()
@click.confirmation_option(prompt="Set the warehouse and all its copies aside?")
def reset() -> None:
    """Set the warehouse aside and begin an empty one.

    All its copies are set aside with it; nothing is deleted.
    """
    from f1_pipelines.warehouse.restore import reset as set_aside

    click.echo(f"everything lies in {set_aside(_warehouse(), datetime.now(UTC))}; the next write begins an empty "
               "warehouse")


@cli.command()
@click.option("--free-pools", is_flag=True, help="End runs whose process is gone and free their pool slots.")
@click.option("--run", help="With --free-pools: end this run, wherever it was, unless it is at work on this machine.")
@click.option("--quiet", is_flag=True, help="With --free-pools: say nothing when there was nothing to end.")
@click.option("--deep", is_flag=True, help="Read all of the warehouse, its copies and the checkpoints: seconds a GB.")
def doctor(free_pools: bool, run: str | None, quiet: bool, deep: bool) -> None:
    """Check settings, warehouse, calendar and source."""
    from f1_pipelines.cli.doctor import diagnose, free_pool_slots

    if (run or quiet) and not free_pools:
        raise click.UsageError("--run and --quiet go with --free-pools")
    if free_pools:
        done = free_pool_slots(run)
        if not (quiet and done.startswith("0 ")):
            click.echo(done)
        return
    findings = diagnose(deep)
    for finding in findings:
        click.echo(f"{'ok  ' if finding.well else 'FAIL'}  {finding.what}: {finding.text}")
    if not all(finding.well for finding in findings):
        sys.exit(1)


def _warehouse() -> WarehouseFile:
    """The warehouse of the settings, for commands that write."""
    chosen = settings()
    return WarehouseFile(chosen.f1_warehouse, chosen.f1_write_wait_s, chosen.f1_generations)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise ValueError(f"{file} is no text in UTF-8 ({problem}); save it as that") from problem


def _print_rows(rows: pd.DataFrame | None, form: str) -> None:
    if rows is None:
        click.echo("(no rows)")
    elif form == "json":
        click.echo(rows.to_json(orient="records", date_format="iso", force_ascii=False, indent=1))
    elif form == "csv":
        click.echo(rows.to_csv(index=False), nl=False)
    else:
        shown = rows.astype(object).where(rows.notna(), "")
        click.echo(f"{shown.to_markdown(index=False, tablefmt='simple', floatfmt='.3f')}\n({len(rows)} rows)")


def _fail(sentence: str) -> None:
    click.echo(f"f1: {sentence}", err=True)
    sys.exit(1)
