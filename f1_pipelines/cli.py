"""The command `f1`: ask the warehouse, predict a weekend, run the demo, look after the installation."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import duckdb

from f1_pipelines.settings import settings
from f1_pipelines.warehouse.database import WarehouseFile

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table",
                       show_default=True, help="How rows are printed.")


def main() -> None:
    """Run `f1`. What a user can mend is told in one sentence and exit code 1, never as a traceback."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except click.Abort:
        sys.exit(130)
    except (ValueError, RuntimeError, OSError, duckdb.Error) as problem:
        _fail(" ".join(str(problem).split()) or type(problem).__name__)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """From a Formula 1 race weekend to a ranked prediction."""


@cli.command()
@click.argument("sql", required=False)
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Read the SQL from a file.")
@_FORMAT
def query(sql: str | None, file: Path | None, form: str) -> None:
    """Ask the published warehouse, for example: f1 query "SELECT * FROM race.calendar LIMIT 5"."""
    if (sql is None) == (file is None):
        raise click.UsageError('wanted either an SQL text or --file, for example f1 query "SELECT 1"')
    with WarehouseFile(settings().f1_warehouse).read() as connection:
        answer = connection.sql(_text_of(file) if file else sql)
        _print_rows(answer.df() if answer else None, form)


@cli.command()
@click.argument("weekend")
@_FORMAT
def predict(weekend: str, form: str) -> None:
    """Rank WEEKEND with the promoted model: f1 predict 2026-monaco, or f1 predict next."""
    from f1_pipelines.predict import predict_stored

    told = predict_stored(weekend)
    if form == "table":
        click.echo(told.heading)
    _print_rows(told.ranking, form)


@cli.command()
def demo() -> None:
    """Run the whole flow, then print the evaluation and the next prediction."""
    from f1_pipelines.demo import run

    run()


@cli.command()
@click.option("--free-pools", is_flag=True, help="End runs whose process is gone and free their pool slots.")
def doctor(free_pools: bool) -> None:
    """Check settings, warehouse, calendar and source, and say what to do."""
    from f1_pipelines.doctor import examine, free_pool_slots

    if free_pools:
        click.echo(free_pool_slots())
        return
    findings = examine()
    for finding in findings:
        click.echo(f"{'ok  ' if finding.well else 'FAIL'}  {finding.what}: {finding.told}")
    if not all(finding.well for finding in findings):
        sys.exit(1)


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
