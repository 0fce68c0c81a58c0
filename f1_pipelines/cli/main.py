"""The command `f1`: query the warehouse, predict a weekend, simulate a race, serve, maintain the installation."""
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
                       show_default=True, help="Output format of the rows.")


def main() -> None:
    """Run `f1`. Errors that a user can fix print one sentence and exit with code 1, without a traceback."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except click.Abort:
        sys.exit(130)
    except (ValueError, RuntimeError, OSError, duckdb.Error) as problem:
        click.echo(f"f1: {' '.join(str(problem).split()) or type(problem).__name__}", err=True)
        sys.exit(1)


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
        raise click.UsageError('wanted either SQL or --file, for example f1 query "SELECT 1"')
    with WarehouseFile(settings().f1_warehouse).read() as connection:
        relation = connection.sql(_text_of(file) if file else str(sql))
        _print_rows(relation.df() if relation else None, form)


@cli.command()
@click.argument("weekend")
@click.option("--stage", type=click.Choice(["entry", "practice", "qualifying", "grid"]),
              help="Use data up to the entry list, practice, qualifying or the grid; default: all data.")
@_FORMAT
def predict(weekend: str, stage: str | None, form: str) -> None:
    """Forecast the finishing order of WEEKEND, with probabilities.

    WEEKEND is a key such as 2026-monaco, or next. Uses the promoted model.
    """
    from f1_pipelines.forecast.report import predict_stored

    stored = predict_stored(weekend, stage)
    if form == "table":
        click.echo(stored.heading)
    _print_rows(stored.ranking, form)


@cli.command()
@click.argument("checkpoint", required=False)
@click.option("--back", is_flag=True, help="Make the previous champion champion again.")
@click.option("--reason", default="", help="Reason, stored in ranking.promotions.")
@click.option("--force", is_flag=True,
              help="Promote even if its own weights fail the acceptance test; the stored reason says so.")
def promote(checkpoint: str | None, back: bool, reason: str, force: bool) -> None:
    """Use CHECKPOINT for forecasts, or return to the previous one."""
    from f1_pipelines.promotion.operator import decide_by_hand

    if (checkpoint is None) != back:
        raise click.UsageError("wanted either a checkpoint or --back; `f1 query \"SELECT checkpoint, kind, "
                               "trained_through, promoted FROM ranking.checkpoints\"` lists them")
    decision = decide_by_hand(checkpoint, reason, lambda warning: click.echo(f"f1: {warning}", err=True), force)
    click.echo(f"{decision.candidate} is champion now; before: {decision.champion or 'none'}")


@cli.command()
@click.argument("subject", metavar="CHECKPOINT|WEEKEND")
@click.option("--rebuild", is_flag=True, help="Recompute it from the stored input rows and compare bit by bit.")
def trace(subject: str, rebuild: bool) -> None:
    """Show the origin of a checkpoint or a forecast.

    Lists parents, rows, results, runs and settings of CHECKPOINT, or of the predictions of WEEKEND.
    """
    from f1_pipelines.lineage.trace import prove
    from f1_pipelines.lineage.trace import trace as sections_of

    with WarehouseFile(settings().f1_warehouse).read() as connection:
        for section in sections_of(connection, subject):
            click.echo(section.title)
            _print_rows(section.rows, "table")
            click.echo("")
        if rebuild:
            click.echo("\n".join(prove(connection, subject, settings().checkpoints_path)))


@cli.command()
@click.option("--family", required=True, help="Scenario family, for example dry_strategy_sprint, or grand_prix.")
@click.option("--seed", required=True, type=int, help="Seed of the race.")
@click.option("--policy", required=True, help="Policy on the pit wall: expert, oracle, stay_out, ...")
@click.option("--circuit", help="Circuit, instead of the seed's own.")
@click.option("--weekend", help="For grand_prix: weekend to rebuild the race from, for example 2026-monaco.")
@click.option("--driver", help="For grand_prix: driver of the pit wall, by id, part of the id, or car number.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Table of laps and log of decisions, or everything as JSON.")
@click.option("--picture", help="Also draw the race into this PNG file.")
def race(family: str, seed: int, policy: str, circuit: str | None, weekend: str | None, driver: str | None,
         form: str, picture: str | None) -> None:
    """Simulate one race."""
    from f1_pipelines.plots.race import picture_file, save_race
    from f1_pipelines.sim.policies.play import as_text, play, played, policy_for
    from f1_pipelines.sim.scenarios import GRAND_PRIX, make_grand_prix

    file = picture_file(picture) if picture is not None else None
    if family == GRAND_PRIX:
        if circuit or not weekend or not driver:
            raise click.UsageError("--family grand_prix rebuilds a weekend of the warehouse: wanted --weekend and "
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
@click.option("--n", default=100, show_default=True, type=click.IntRange(min=1), help="Unseen seeds per family.")
@click.option("--skip", default=0, show_default=True, type=click.IntRange(min=0),
              help="Unseen seeds to skip first, for example seeds already looked at.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(min=1), help="Number of processes.")
def policies(n: int, skip: int, workers: int) -> None:
    """Compare all scripted policies on the same races.

    Includes degenerate policies, expert and oracle. Takes minutes at n = 100.
    """
    from f1_pipelines.engineer.evaluation.policy_table import as_text, policy_table
    from f1_pipelines.sim.policies.episodes import all_episodes

    with counting("Every policy drives every race", "races") as on_race:
        rows = all_episodes(n, skip=skip, workers=workers, on_race=on_race)
    click.echo(as_text(policy_table(rows)))


@cli.command()
@click.option("--engineer", type=click.Choice(["demo", "toy", "none"]), default="demo", show_default=True,
              help="Race engineer: train for minutes (demo), minimal run (toy), or none.")
@click.option("--verbose", is_flag=True, help="Also print Dagster's own lines.")
def demo(engineer: str, verbose: bool) -> None:
    """Run the whole flow and print its results.

    Prints the forecast of the next race, the evaluation of the ranker and the scores of the race engineers.
    """
    from f1_pipelines.cli.demo.flow import run

    run(engineer, verbose)


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
def serve(host: str, port: int) -> None:
    """Serve the web pages and the environment server.

    Includes the live simulator and predictions.
    """
    from f1_pipelines.serve.run import run

    run(host, port)


@cli.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
def backup(folder: Path | None) -> None:
    """Copy warehouse, calendar and checkpoints into FOLDER.

    Verifies the copy. The default is a new folder in backups/ beside the warehouse. Restore with `f1 restore FOLDER`.
    """
    from f1_pipelines.warehouse.backup import create_backup

    current, now = settings(), datetime.now(UTC)
    target = (folder or current.f1_warehouse.with_name("backups") / f"f1-{now:%Y%m%dT%H%M%SZ}").expanduser().absolute()
    size = create_backup(_warehouse(), target, current.calendar_path, current.checkpoints_path, now)
    click.echo(f"{target}: {size / 2**20:,.1f} MiB, verified. Restore it with `f1 restore {target}`")


@cli.command()
@click.argument("source", required=False, type=click.Path(exists=True, path_type=Path))
def restore(source: Path | None) -> None:
    """Restore the warehouse from a copy.

    Uses the newest intact copy, or SOURCE: a folder of f1 backup, or a DuckDB file. Replaced files are set aside,
    never deleted.
    """
    from f1_pipelines.warehouse.backup import restore_backup
    from f1_pipelines.warehouse.restore import restore as restore_file

    current, now = settings(), datetime.now(UTC)
    source = source and source.expanduser().absolute()
    restored = restore_backup(_warehouse(), source, current.calendar_path, current.checkpoints_path, now) \
        if source and source.is_dir() else restore_file(_warehouse(), now, source)
    for sentence in restored.skipped:
        click.echo(f"skipped: {sentence}")
    click.echo(f"{current.f1_warehouse}: {restored.rows:,} rows restored from {restored.source} of "
               f"{restored.published_at:%Y-%m-%d %H:%M} UTC; materialize later data again")
    for path in restored.set_aside:
        click.echo(f"set aside: {path}")


@cli.command()
@click.confirmation_option(prompt="Set the warehouse and all its copies aside?")
def reset() -> None:
    """Set the warehouse and its copies aside and start an empty one.

    Deletes nothing.
    """
    from f1_pipelines.warehouse.restore import reset as set_aside

    click.echo(f"moved to {set_aside(_warehouse(), datetime.now(UTC))}; the next write starts an empty warehouse")


@cli.command()
@click.option("--free-pools", is_flag=True, help="End runs whose process is gone and free their pool slots.")
@click.option("--run", help="With --free-pools: end this run of any machine, unless its process is alive on this one.")
@click.option("--quiet", is_flag=True, help="With --free-pools: print nothing if no run was ended.")
@click.option("--deep", is_flag=True, help="Read the whole warehouse, its copies and all checkpoints: seconds per GB.")
def doctor(free_pools: bool, run: str | None, quiet: bool, deep: bool) -> None:
    """Check settings, warehouse, calendar and source."""
    from f1_pipelines.cli.doctor import diagnose, free_pool_slots

    if (run or quiet) and not free_pools:
        raise click.UsageError("--run and --quiet need --free-pools")
    if free_pools:
        report = free_pool_slots(run)
        if not (quiet and report.startswith("0 ")):
            click.echo(report)
        return
    findings = diagnose(deep)
    for finding in findings:
        click.echo(f"{'ok  ' if finding.well else 'FAIL'}  {finding.what}: {finding.text}")
    if not all(finding.well for finding in findings):
        sys.exit(1)


def _warehouse() -> WarehouseFile:
    """The warehouse of the settings, for commands that write."""
    current = settings()
    return WarehouseFile(current.f1_warehouse, current.f1_write_wait_s, current.f1_generations)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise ValueError(f"{file} is not UTF-8 text ({problem}); save it as UTF-8") from problem


def _print_rows(rows: pd.DataFrame | None, form: str) -> None:
    if rows is None:
        click.echo("(no rows)")
    elif form == "json":
        click.echo(rows.to_json(orient="records", date_format="iso", force_ascii=False, indent=1))
    elif form == "csv":
        click.echo(rows.to_csv(index=False), nl=False)
    else:
        cells = rows.astype(object).where(rows.notna(), "")
        click.echo(f"{cells.to_markdown(index=False, tablefmt='simple', floatfmt='.3f')}\n({len(rows)} rows)")

