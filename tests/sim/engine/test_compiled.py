"""The machine code of the simulator belongs to its sources."""
from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from f1_pipelines.sim.engine import compiled

ROOT = Path(__file__).parents[3]


@pytest.fixture
def sources(tmp_path, monkeypatch) -> Path:
    """A copy of the simulator, which the cache folder is named after."""
    copy = tmp_path / "sim"
    shutil.copytree(compiled.SIM, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compiled, "SIM", copy)
    compiled.cache_folder.cache_clear()
    yield copy
    compiled.cache_folder.cache_clear()


def folder_name() -> str:
    compiled.cache_folder.cache_clear()
    return compiled.cache_folder().name


def test_any_change_of_the_sources_gives_another_cache_folder(sources):
    """numba compares only the file of a function, not those of the functions that it calls."""
    names = {folder_name()}
    assert names == {folder_name()}
    for path in (sources / "engine" / "tyres.py", sources / "scenarios" / "opponents.py"):
        path.write_text(path.read_text() + "\n")
        names.add(folder_name())
    (sources / "engine" / "tyres.py").rename(sources / "engine" / "sets.py")
    assert len({*names, folder_name()}) == 4


def compiled_functions() -> set[str]:
    """Every function under `@compiled`, as module.name."""
    names = set()
    for path in compiled.SIM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                    isinstance(d, ast.Name) and d.id == "compiled" for d in node.decorator_list):
                names.add(f"{path.stem}.{node.name}")
    return names


def test_setup_compiles_every_function_and_drops_the_code_of_other_sources(tmp_path):
    package = tmp_path / "f1_pipelines"
    shutil.copytree(compiled.SIM, package / "sim", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__init__.py").touch()
    cache = package / "sim" / "__pycache__"
    (cache / f"{compiled.PREFIX}0").mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "f1_pipelines.sim.compile"], cwd=tmp_path, check=True)
    [folder] = cache.glob(f"{compiled.PREFIX}*")
    assert {path.name.rpartition("-")[0] for path in folder.rglob("*.nbi")} == compiled_functions()


def test_coverage_leaves_compiled_files_alone():
    """slipcover changes the bytecode that numba compiles."""
    with_compiled = sorted(path.relative_to(ROOT).as_posix() for path in compiled.SIM.rglob("*.py")
                           if "\n@compiled\n" in path.read_text())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["tool"]["slipcover"]["omit"] == with_compiled
