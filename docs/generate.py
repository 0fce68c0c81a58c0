"""Write the pages that are made from the code: `python docs/generate.py`. A test fails while one is stale.

settings.md comes from the settings classes, tables.md from the declared tables, parameters.md from the physics'
parameters, commands.md from the grammar of the race engineer's environment.
"""
from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings

from f1_pipelines.serve.settings import ServeSettings
from f1_pipelines.settings import PROJECT_ROOT, Settings
from f1_pipelines.sim.engine.parameters import CircuitParameters, describe
from f1_pipelines.sim.environment.commands import EFFECTS, GRAMMAR
from f1_pipelines.tables.catalog import SCHEMAS, TABLES, VIEWS
from f1_pipelines.tables.schema import Column

DOCS = Path(__file__).resolve().parent
NOTE = "<!-- Made by docs/generate.py: edit the code it reads, then run `python docs/generate.py`. -->\n"
# Variables that belong to other programs or to the tests, and that no settings class declares.
OTHER_VARIABLES = {
    "DAGSTER_HOME": "Dagster's home folder. The Makefile sets `.dagster_home` in the project.",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "MLflow's own; 10 [s] where nothing is set.",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "MLflow's own; 2 where nothing is set.",
    "MLFLOW_DISABLE_TELEMETRY": "MLflow's own; `true` where nothing is set: no usage data is sent.",
    "MLFLOW_EXPERIMENT_ID": "MLflow's own; a run sets it for its length and restores it.",
    "HF_HUB_OFFLINE": "Hugging Face's own; `1` in trainings where nothing is set and weights are local.",
    "F1_STARTED_BY": "Set by a run for the training process it starts, which ends with it. Not for you to set.",
    "F1_SHARED_REQUIRED": "`1`: tests that miss the real data of `F1_SHARED` fail instead of being skipped (CI).",
    "F1_BROWSER_REQUIRED": "`1`: tests of the pages that find no browser fail instead of being skipped (CI).",
}


def cell(value: Any) -> str:
    """The value as one cell of a table."""
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(head: list[str], rows: list[list[Any]]) -> str:
    """A markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(value) for value in line) + " |" for line in lines) + "\n"


def variables(settings: type[BaseSettings]) -> dict[str, Any]:
    """Environment variable -> field of a settings class."""
    prefix = settings.model_config.get("env_prefix", "")
    return {str(field.validation_alias or f"{prefix}{name}").upper(): field
            for name, field in settings.model_fields.items()}


def default_of(field: Any) -> str:
    """The default as somebody would write it into `.env`."""
    value = field.default
    if value is None or value == []:
        return ""
    if isinstance(value, Path):
        value = value.relative_to(PROJECT_ROOT)
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def settings_page() -> str:
    """Every environment variable."""
    text = [NOTE, "# Settings\n", """\
Every setting is an environment variable. A `.env` file in the project folder works too; the environment wins over
it. Paths may be anywhere. `f1 doctor` checks the settings and says what is wrong and what to do. An invalid value is
refused with the variable's name, its value and what was expected.
"""]
    for title, kind in (("Data, models and runs", Settings), ("The web server (`f1 serve`)", ServeSettings)):
        rows = [[f"`{name}`", default_of(field), field.description] for name, field in variables(kind).items()]
        text += [f"## {title}\n", table(["variable", "default", "meaning"], rows)]
    text += ["## Other programs and tests\n",
             table(["variable", "meaning"], [[f"`{name}`", meaning] for name, meaning in OTHER_VARIABLES.items()])]
    return "\n".join(text)


def allowed(column: Column) -> str:
    """What values a column takes."""
    if column.allowed:
        return ", ".join(f"`{value}`" for value in column.allowed)
    low, high = column.minimum, column.maximum
    if low is None and high is None:
        return ""
    return f"{low:g} to {high:g}" if None not in (low, high) else f"from {low:g}" if high is None else f"to {high:g}"


def tables_page() -> str:
    """Every table with its columns, every view."""
    text = [NOTE, "# Tables\n", """\
The warehouse is one DuckDB file; `warehouse/README.md` and [data](data.md) say how to query, back up and restore it.
Instants are UTC, units stand in the names, and a missing value is unknown, never zero. Rows are replaced
slice by slice in one transaction: a new slice replaces the stored one.
"""]
    for schema in SCHEMAS:
        text.append(f"## {schema}\n")
        for declared in (t for t in TABLES if t.schema == schema):
            text += [f"### {declared.qualified}\n", f"{declared.comment}.".replace("..", "."), "",
                     f"Primary key: {', '.join(f'`{name}`' for name in declared.key)}. "
                     f"Replaced by: {', '.join(f'`{name}`' for name in declared.slice_by)}.\n",
                     table(["column", "type", "required", "values", "meaning"],
                           [[f"`{c.name}`", c.type, "yes" if c.required else "", allowed(c), c.comment]
                            for c in declared.columns])]
        for view in (v for v in VIEWS if v.schema == schema):
            text += [f"### {view.qualified}\n", f"A view. {view.comment}.".replace("..", "."), ""]
    return "\n".join(text)


def parameters_page() -> str:
    """Every parameter of the physics with unit, default and source; the priors of each circuit."""
    rows = []
    names = {name for name in CircuitParameters.__dataclass_fields__}
    for row in describe():
        default = row["default"]
        default = " / ".join(f"{x:g}" for x in default) if isinstance(default, tuple) else default
        source = re.sub(r"physics\.md#([a-z0-9-]+)", r"[\1](physics.md#\1)", row["source"])
        source = re.sub(r" #([a-z-]+)", r" [\1](physics.md#\1)", source)
        rows.append([f"`{row['name']}`", default, row["unit"], source, row["name"] in names])
    head = ["parameter", "default", "unit", "source"]
    with (PROJECT_ROOT / "f1_pipelines" / "sim" / "data" / "circuit_priors.csv").open(encoding="utf-8") as file:
        lines = list(csv.reader(file))
    return "\n".join([
        NOTE, "# Parameters of the simulator\n",
        "Every number of the physics with its unit, its default and its source: a section of\n"
        "[physics](physics.md), or *assumption* where nothing was measured. Values by compound are\n"
        "soft / medium / hard / intermediate / wet.\n",
        "## By circuit and season\n",
        "The defaults are pooled priors. The table of circuits below replaces them where it has a value, and\n"
        "`circuit_fits` replaces those by what it fits to stored laps.\n",
        table(head, [row[:4] for row in rows if row[4]]),
        "## The same for every circuit\n", table(head, [row[:4] for row in rows if not row[4]]),
        "## Priors by circuit\n",
        "Measured on real laps of 2018-2026 and shrunk towards the pooled value: see [circuits](physics.md#circuits).\n"
        "An empty cell is unknown. Lap times and stop losses are in s, slopes in s per lap.\n",
        table([name.replace("_", " ") for name in lines[0]], lines[1:])])


def commands_page() -> str:
    """The grammar of the race engineer."""
    rows = [[f"`{verb}`", "" if kind is None else kind if isinstance(kind, str) else ", ".join(kind), EFFECTS[verb]]
            for verb, kind in GRAMMAR.items()]
    return "\n".join([NOTE, "# Commands of the race engineer\n",
                      f"One of {len(rows)} commands is called for each lap, for example `PIT_NOW hard`.\n"
                      "Verbs and words are read in any case, free text stands in double quotes. Text that\n"
                      "does not parse is counted and reported in `info[\"error\"]`, and the car stays out.\n",
                      table(["command", "takes", "effect"], rows)])


PAGES = {"settings.md": settings_page, "tables.md": tables_page, "parameters.md": parameters_page,
         "commands.md": commands_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
        print(f"docs/{name}")
