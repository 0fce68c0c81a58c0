"""Everything that CONTRIBUTING.md names exists, and its commands work."""
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
ROW = re.compile(r"\| `([^`]+)` \| (.+) \|")
CHANGES = ("A feature of the ranker", "A scenario family", "A command", "A source of race data", "A policy",
           "A reward term", "An asset with a check", "A column", "A page", "A rule for EWC's lambda")
RUN_F1 = """
import sys
sys.argv = ["f1"]
from f1_pipelines.cli.main import main
main()
"""


def is_path(name: str) -> bool:
    return "/" in name and " " not in name and "://" not in name or re.fullmatch(r"\.?[\w-]+\.(md|py|lock|toml)", name)


def test_every_path_exists():
    paths = {name for name in re.findall(r"`([^`\n]+)`", TEXT) if is_path(name)} - {".venv/bin"}
    assert len(paths) > 50
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_each_of_the_ten_changes_has_files_and_a_test():
    parts = re.split(r"^### \d+\. ", TEXT, flags=re.M)[1:]
    assert tuple(part.splitlines()[0] for part in parts) == CHANGES
    for part in parts:
        files = [row[0] for row in ROW.findall(part)]
        assert any(file.startswith("f1_pipelines/") for file in files), part.splitlines()[0]
        assert any(file.startswith("tests/") for file in files), part.splitlines()[0]


@pytest.mark.parametrize(("file", "names"), [
    (file, re.findall(r"`([A-Za-z_]+)`", change)) for file, change in ROW.findall(TEXT) if "`" in change])
def test_every_name_is_in_the_file_of_its_row(file, names):
    content = (ROOT / file).read_text()
    assert [name for name in names if not re.search(rf"\b{name}\b", content) and name not in BUILTINS] == []


BUILTINS = {"ValueError", "RuntimeError"}


def test_every_target_of_make_exists():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    assert set(re.findall(r"make ([a-z]+)", TEXT)) <= set(targets)


@pytest.mark.parametrize(("shell", "marker"), [
    ("bash", "complete -o nosort -F _f1_completion f1"), ("zsh", "#compdef f1"), ("fish", "complete --no-files")])
def test_the_command_prints_its_completion(shell, marker):
    output = subprocess.run([sys.executable, "-c", RUN_F1], capture_output=True, text=True, check=True,
                            env={**os.environ, "_F1_COMPLETE": f"{shell}_source"}).stdout
    assert marker in output


def test_completion_lists_commands_and_options():
    def completions(words: str) -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", RUN_F1], capture_output=True, text=True, check=True,
            env={**os.environ, "_F1_COMPLETE": "bash_complete", "COMP_WORDS": words,
                 "COMP_CWORD": str(words.count(" "))}).stdout.split()

    assert completions("f1 pre") == ["plain,predict"]
    assert {"plain,entry", "plain,grid"} <= set(completions("f1 predict 2026-monaco --stage "))


def test_dg_and_dagster_load_the_same_definitions():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    project, dagster = tool["dg"]["project"], tool["dagster"]
    assert project["code_location_target_module"] == dagster["module_name"]
    assert project["code_location_name"] == dagster["code_location_name"]


def test_pre_commit_runs_the_linter_of_the_environment():
    [repository] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"].split()[0] for hook in repository["hooks"]] == [".venv/bin/ruff"]


def test_github_runs_what_ci_runs():
    [job] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"].values()
    assert job["steps"][-1]["run"] == "bash .ci/run"
    [python] = [step["with"]["python-version"] for step in job["steps"] if "setup-python" in step.get("uses", "")]
    assert f'requires-python = ">={python},<3.12"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(("variables", "required"), [
    ({}, "1"), ({"GITHUB_ACTIONS": "true"}, ""), ({"GITHUB_ACTIONS": "true", "F1_SHARED_REQUIRED": "1"}, "1"),
    ({"F1_SHARED_REQUIRED": ""}, "")])
def test_ci_requires_the_real_data_where_they_exist(variables, required, tmp_path):
    """With a `make` and a browser that only print their arguments."""
    for name in ("make", "chromium", "chromedriver"):
        (tmp_path / name).write_text('#!/bin/sh\necho "$1 [$F1_SHARED_REQUIRED]"\n')
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **variables}
    output = subprocess.run(["bash", ROOT / ".ci" / "run"], env=environment, capture_output=True, text=True,
                            check=True).stdout
    assert output.splitlines() == [f"lint [{required}]", f"test [{required}]"]
