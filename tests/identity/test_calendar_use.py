"""How the package uses the calendar: names are never keys, and it needs no third-party package."""
import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from f1_pipelines.identity import weekends as calendar


def test_nothing_is_joined_or_looked_up_by_an_event_name():
    """The Spanish Grand Prix moved from Barcelona to Madrid in 2026, so a name is only displayed, never a key."""
    package, matches = Path(calendar.__file__).parents[1], []
    calls = {"merge", "merge_asof", "join", "groupby", "set_index", "pivot", "pivot_table", "isin", "drop_duplicates",
             "duplicated", "sort_values"}
    in_text = re.compile(r"(using\s*\(|group by|partition by|join[^)]*\bon\b|where|query\()[^)]*event_?name"
                         "|get_event_by_name", re.IGNORECASE)
    event_name = re.compile(r"^event_?name$", re.IGNORECASE)
    for path in [*package.rglob("*.py"), *(package.parent / "warehouse" / "queries").glob("*.sql")]:
        text = path.read_text(encoding="utf-8")
        matches += [(path.name, match[0]) for match in in_text.finditer(text)]
        for node in ast.walk(ast.parse(text)) if path.suffix == ".py" else ():
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in calls:
                operands = [arg for part in (*node.args, *node.keywords) for arg in ast.walk(part)]
            elif isinstance(node, ast.Compare):
                operands = list(ast.walk(node))
            else:
                continue
            matches += [(path.name, node.lineno) for part in operands
                        if event_name.match(str(getattr(part, "value", "")) if isinstance(part, ast.Constant)
                                            else getattr(part, "attr", ""))]
    assert matches == []


def test_the_calendar_needs_the_standard_library_only():
    code = ("import sys; from f1_pipelines.identity.weekends import known_weekends; known_weekends(); "
            "print(*sorted({'pandas', 'numpy', 'dagster', 'fastf1', 'duckdb'} & set(sys.modules)))")
    root = Path(__file__).resolve().parents[2]
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                             env=os.environ | {"PYTHONPATH": str(root)})
    assert process.stdout.strip() == ""
