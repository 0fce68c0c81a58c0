"""README and documentation refer to things that exist, and agree with the code."""
import re
import subprocess
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from f1_pipelines.serve.settings import ServeSettings
from f1_pipelines.settings import PROJECT_ROOT, Settings
from f1_pipelines.sim.engine.parameters import describe
from f1_pipelines.tables.catalog import TABLES, VIEWS

DOCS = PROJECT_ROOT / "docs"
README = PROJECT_ROOT / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# A path in comments and pages, with an optional anchor.
DOCS_PATH = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w-]+)?")
CREATED_LATER = {"warehouse/f1.duckdb", "warehouse/f1.published.duckdb", "warehouse/mlflow.db", "warehouse/real.duckdb",
              "warehouse/fastf1-cache"}


def id_of(page: Path) -> str:
    return str(page.relative_to(PROJECT_ROOT))


def anchors(page: Path) -> set[str]:
    """The ids of a page's headings, as in GitHub and mkdocs."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) for title in titles}


def code_files() -> list[Path]:
    """Text files of the package, tests and benchmarks that git tracks or doesn't ignore."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "f1_pipelines", "tests",
                             "benchmarks", "Makefile"], cwd=PROJECT_ROOT, capture_output=True, text=True)
    if listed.returncode:  # not a git repository
        paths = [path for folder in ("f1_pipelines", "tests", "benchmarks")
                 for path in (PROJECT_ROOT / folder).rglob("*")]
    else:
        paths = [PROJECT_ROOT / name for name in listed.stdout.splitlines()]
    return [path for path in paths if path.suffix in {".py", ".md"} and path.is_file() and path != Path(__file__)]


def missing_target(link: str, folder: Path) -> bool:
    """Whether the target or anchor of a local link is missing."""
    name, _, anchor = link.partition("#")
    target = folder / name
    return not target.exists() or (bool(anchor) and target.suffix == ".md" and anchor not in anchors(target))


@pytest.fixture(scope="module")
def generate():
    spec = spec_from_file_location("docs_generate", DOCS / "generate.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_fits_on_a_few_screens():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 130


@pytest.mark.parametrize("page", [README, PROJECT_ROOT / "warehouse" / "README.md", *PAGES], ids=id_of)
def test_every_local_link_has_a_target(page):
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8"))
             if not link.startswith(("http://", "https://", "mailto:"))]
    links = [f"{page.name}{link}" if link.startswith("#") else link for link in links]
    assert [link for link in links if missing_target(link, page.parent)] == []


def test_links_of_the_site_stay_inside_it():
    outside = [(id_of(page), link) for page in PAGES for link in LINK.findall(page.read_text(encoding="utf-8"))
               if not link.startswith(("http", "#"))
               and not (page.parent / link.partition("#")[0]).resolve().is_relative_to(DOCS)]
    assert outside == []


@pytest.mark.parametrize("page", [README, *PAGES], ids=id_of)
def test_every_path_that_is_named_exists(page):
    names = re.findall(r"(?<![\w./-])((?:f1_pipelines|warehouse|docs|tests|benchmarks)/[\w./-]*)",
                       page.read_text(encoding="utf-8"))
    paths = {path.rstrip(".") for path in names} - CREATED_LATER
    assert sorted(path for path in paths if not (PROJECT_ROOT / path).exists()) == []


@pytest.mark.parametrize("page", [README, *PAGES], ids=id_of)
def test_every_module_that_is_run_exists(page):
    text = page.read_text(encoding="utf-8")
    modules = re.findall(r"python -m ((?:benchmarks|f1_pipelines)(?:\.\w+)*)", text)
    modules += re.findall(r"from (f1_pipelines(?:\.\w+)*) import", text)
    places = [PROJECT_ROOT / module.replace(".", "/") for module in modules]
    assert [str(place) for place in places if not place.with_suffix(".py").exists() and not place.is_dir()] == []


@pytest.mark.parametrize("page", [README, *PAGES], ids=id_of)
def test_every_diagram_declares_its_kind(page):
    """Without the first line, mermaid shows a diagram as text."""
    text = page.read_text(encoding="utf-8")
    assert [block[:40] for block in re.findall(r"```mermaid\n(.*?)```", text, re.S)
            if not re.match(r"(graph|flowchart) (LR|TD)\n", block)] == []


def test_the_asset_graph_matches_dagsters():
    from f1_pipelines.definitions import defs

    keys = {key.to_user_string() for key in defs.resolve_all_asset_keys()}
    for page in (README, DOCS / "architecture.md"):
        graph = next(block for block in re.findall(r"```mermaid\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
                     if "race_calendar" in block)
        assert set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", graph)) == keys


def test_every_documentation_page_that_code_names_exists():
    wrong = [(id_of(path), name) for path in code_files()
             for name in DOCS_PATH.findall(path.read_text(encoding="utf-8")) if missing_target(name, PROJECT_ROOT)]
    assert wrong == []


def test_sources_of_the_physics_are_sections_of_its_page():
    named = {anchor for row in describe() for anchor in re.findall(r"#([a-z][\w-]+)", row["source"])}
    assert named
    assert named <= anchors(DOCS / "physics.md")


def test_no_code_names_a_document_outside_the_repository():
    outside = re.compile(r"\b[Pp]hysics \d|facts? page|bug-report|shared/facts|shared/faults")
    hits = [f"{id_of(path)}:{number}" for path in [*code_files(), *PAGES, README]
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if outside.search(line)]
    assert hits == []


@pytest.mark.parametrize("name", ["settings.md", "tables.md", "parameters.md", "commands.md"])
def test_generated_pages_are_fresh(generate, name):
    assert set(generate.PAGES) == {"settings.md", "tables.md", "parameters.md", "commands.md"}
    stored = (DOCS / name).read_text(encoding="utf-8")
    assert stored == generate.PAGES[name](), "run `python docs/generate.py`"


def test_every_environment_variable_is_in_the_settings_page(generate):
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    names = [*generate.variables(Settings), *generate.variables(ServeSettings)]
    assert {"F1_SOURCE", "MLFLOW_TRACKING_URI", "F1_API_KEY", "F1_SERVE_SOCKETS"} <= set(names)
    read = {name for path in code_files() if path.is_relative_to(PROJECT_ROOT / "f1_pipelines")
            for name in re.findall(r"\"((?:F1|MLFLOW|HF)_[A-Z0-9_]{3,})\"", path.read_text(encoding="utf-8"))}
    assert sorted(name for name in {*names, *read} if f"| `{name}` |" not in page and name != "F1_SERVE_") == []


def test_every_table_column_and_view_is_in_the_tables_page():
    page = (DOCS / "tables.md").read_text(encoding="utf-8")
    sections = {part.split("\n", 1)[0]: part for part in page.split("\n### ")[1:]}
    assert sorted(sections) == sorted(declared.qualified for declared in (*TABLES, *VIEWS))
    assert [f"{t.qualified}.{c.name}" for t in TABLES for c in t.columns
            if f"| `{c.name}` | {c.type} |" not in sections[t.qualified]] == []


def test_every_test_that_the_reliability_page_names_exists():
    page = (DOCS / "reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)", page))
    defined = {name for path in (PROJECT_ROOT / "tests").rglob("test_*.py")
               for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))}
    assert len(named) > 50
    assert sorted(named - defined) == []


def test_every_page_is_in_the_navigation():
    navigation = re.findall(r"(?:- |: )([\w/-]+\.md)$", (PROJECT_ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    assert sorted(navigation) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


def test_the_site_requests_no_other_host():
    """No fonts, scripts or pictures from other hosts; mermaid is NiceGUI's copy."""
    configuration = (PROJECT_ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in configuration
    assert not re.search(r"^\s*(analytics|extra_javascript: .*http|extra_css: .*http)", configuration, re.M)
    scripts = [path.read_text(encoding="utf-8") for path in [*DOCS.rglob("*.mjs"), *DOCS.rglob("*.css")]]
    assert [text for text in scripts if "http" in text] == []
    assert [id_of(page) for page in PAGES if re.search(r"!\[[^\]]*\]\(http", page.read_text(encoding="utf-8"))] == []
    spec = spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    hooks = module_from_spec(spec)
    spec.loader.exec_module(hooks)
    assert re.search(r"\bmermaid\b", (hooks.mermaid_folder() / "index.js").read_text(encoding="utf-8"))
