"""One line per asset of the demo: real Dagster runs in a pipe, and live lines on a terminal."""
import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from f1_pipelines.cli.demo import flow, runs
from f1_pipelines.cli.demo import progress as demo_progress
from f1_pipelines.cli.demo.figures import FIGURES, figure
from f1_pipelines.cli.demo.progress import Progress
from f1_pipelines.cli.terminal import clock, counting, duration, interactive
from f1_pipelines.runs.events import CheckPassed, Failed, Finished, Message, Started, Warned
from f1_pipelines.settings import PROJECT_ROOT

pytestmark = pytest.mark.timeout(120)
TOY = """
import dagster as dg

weekends = dg.StaticPartitionsDefinition(["2024-monaco", "2024-japan", "2024-spain"])

@dg.asset(partitions_def=weekends, backfill_policy=dg.BackfillPolicy.single_run())
def ranking_features(context: dg.AssetExecutionContext):
    context.log.warning("1 sessions refused")
    return dg.MaterializeResult(metadata={"rows_written_in_range": 4460})

@dg.asset
def sft_engineer(context: dg.AssetExecutionContext):
    for step in (40, 80, 120):
        context.log.info(f"step {step}/120: loss 0.31, 35 s left")
    return dg.MaterializeResult(metadata={"n_turns": 8700, "last_loss": 0.31})

@dg.asset(deps=[sft_engineer])
def nothing_to_count(): ...

@dg.asset_check(asset=ranking_features, blocking=True)
def keys_are_unique():
    return dg.AssetCheckResult(passed=True)

@dg.asset_check(asset=sft_engineer)
def learns_something(context):
    context.log.warning("same as the warning of the check")
    return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN, description="2 % are no commands",
                               metadata={"share": 0.02})

defs = dg.Definitions([ranking_features, sft_engineer, nothing_to_count], asset_checks=[keys_are_unique,
                      learns_something], executor=dg.in_process_executor)
"""
THREE = ("ranking_features", "sft_engineer", "nothing_to_count")


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text((PROJECT_ROOT / "dagster.yaml").read_text())
    (tmp_path / "f1_toy_definitions.py").write_text(TOY)
    monkeypatch.setenv("PYTHONPATH", f"{PROJECT_ROOT}:{tmp_path}")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(runs, "DEFINITIONS", "f1_toy_definitions")
    # Create the databases now: two processes that create the same ones at once fail.
    with dg.DagsterInstance.from_config(str(tmp_path / "home")):
        pass
    return tmp_path / "home"


@contextmanager
def terminal(monkeypatch, **environment: str) -> Iterator[list[str]]:
    """Use a real terminal as stdout and stderr. At the end, the list contains its output."""
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "100", **environment}.items():
        monkeypatch.setenv(name, value)
    master, slave = pty.openpty()
    chunks, output = [], []

    def read() -> None:
        while True:
            try:
                chunks.append(os.read(master, 4096))
            except OSError:  # the other end is closed
                return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with open(slave, "w", buffering=1, encoding="utf-8") as stream, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stream)
            patched.setattr(sys, "stderr", stream)
            yield output
    finally:
        reader.join()
        os.close(master)
        output.append(b"".join(chunks).decode())


def test_two_runs_in_a_pipe_show_one_plain_line_per_asset(home, capfd, monkeypatch):
    with Progress(THREE) as progress, ThreadPoolExecutor(1) as background:
        first = background.submit(runs.materialize, "ranking_features", "2024-monaco...2024-spain", progress=progress)
        monkeypatch.setattr(progress, "_next_message", 0.0)  # 30 s are over
        runs.materialize("sft_engineer,nothing_to_count", progress=progress)
        first.result()
    output, errors = capfd.readouterr()
    assert errors == "" and "\x1b" not in output and "STEP_SUCCESS" not in output
    line = {word: text for text in output.splitlines() for word in (*THREE, "check") if word in text}
    lines = output.splitlines()
    assert len(lines) == 6, output
    assert re.fullmatch(r"\[\d/3\]  0:\d\d  ranking_features   \d\.\d s   4,460 rows", line["ranking_features"])
    assert re.fullmatch(r"\[\d/3\]  0:\d\d  sft_engineer       \d\.\d s   8,700 turns learned, loss 0\.310",
                        next(text for text in lines if "turns learned" in text))
    assert re.fullmatch(r"\[\d/3\]  0:\d\d  nothing_to_count   \d\.\d s", line["nothing_to_count"])
    assert sorted(text[:5] for text in lines if text[0] == "[") == ["[1/3]", "[2/3]", "[3/3]"]
    [message] = [text for text in lines if "step " in text]
    assert re.fullmatch(r"       0:\d\d  sft_engineer         \.\.\.   step 40/120: loss 0.31, 35 s left", message)
    assert {re.sub(r"^       0:\d\d  ", "", text) for text in lines if "WARNING" in text} == {
        "check learns_something of sft_engineer   WARNING: 2 % are no commands",
        "ranking_features   WARNING: 1 sessions refused"}
    assert (progress.done, progress.checks_passed, progress.warnings) == (3, 1, 2)


def test_verbose_also_prints_dagsters_lines(home, capfd):
    with Progress(THREE, verbose=True) as progress:
        runs.materialize("sft_engineer", progress=progress)
    output = capfd.readouterr().out
    assert re.search(r"^  \d\d:\d\d:\d\d - sft_engineer - step 80/120: loss 0.31, 35 s left$", output, re.M)
    assert re.search(r"^  .* - sft_engineer - STEP_SUCCESS - Finished execution", output, re.M)
    assert re.search(r"^\[1/3\].*8,700 turns learned", output, re.M)


def test_an_unreadable_event_log_falls_back_to_dagsters_lines(tmp_path, capfd):
    (tmp_path / "dagster.yaml").write_text("storage: [no mapping]")
    log = tmp_path / "log"
    log.write_text("2026-11-30 06:00:00 +0000 - dagster - DEBUG - __ASSET_JOB - 6d83222d-9777-42e6-a313-c5e89e5f8453 "
                   '- 1 - race_laps - STEP_SUCCESS - Finished execution of step "race_laps" in 1.5s.\n' * 2)
    with Progress(["race_laps"]) as progress, subprocess.Popen(["sleep", "0.7"]) as process:
        runs._follow(process, log, tmp_path, ["race_laps"], progress)
    output = capfd.readouterr().out
    assert output.count("Can't read the event log") == 1
    assert progress.done == 0


def test_messages_come_at_most_every_30_s(capfd, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(demo_progress.time, "monotonic", lambda: now[0])
    progress = Progress(["sft_engineer"])
    for second in range(100):
        now[0] = 1000.0 + second
        progress.take(1, Message("sft_engineer", f"step {second}"))
    assert [line.split()[-1] for line in capfd.readouterr().out.splitlines()] == ["30", "60", "90"]


def test_lines_of_threads_do_not_mix(capfd):
    names = [f"asset_{n}" for n in range(200)]
    progress = Progress(names)
    with progress, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: progress.take(name, Finished(name, 1.0, {"dagster/row_count": 1000})), names))
    lines = capfd.readouterr().out.splitlines()
    assert [int(line[1:4]) for line in lines] == list(range(1, 201))
    matches = [re.fullmatch(r"\[ *\d+/200\]  0:\d\d  (asset_\d+) +1\.0 s   1,000 rows", line) for line in lines]
    assert {match[1] for match in matches} == set(names)


def test_a_terminal_shows_running_steps_on_live_lines(monkeypatch):
    with terminal(monkeypatch) as output, Progress(["race_laps", "sft_engineer"]) as progress:
        progress.begin("a", 2)
        for update in (Started("sft_engineer"), Message("sft_engineer", "step 40/120, 35 s left"), Started("race_laps"),
                       Finished("race_laps", 75.2, {"rows_by_table": {"race.laps": 115973}})):
            progress.take("a", update)
        progress.take("a", Started("laps_have_no_holes"))
        progress._live.refresh()
        progress.say("FAILED: [step] race_laps", error=True)
        progress.take("a", Failed("laps_have_no_holes"))
        progress.end("a")
    assert "\x1b[2K" in output[0], "live lines are erased"
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output[0])
    assert "[1/2]  0:00  race_laps       1:15   115,973 laps" in plain
    assert re.search(r"\S +0:00  sft_engineer +step 40/120, 35 s left", plain)
    assert re.search(r"\S +0:00  check +laps_have_no_holes", plain)
    assert "FAILED: [step] race_laps" in plain


def test_counted_work_shows_on_a_terminal(monkeypatch):
    with terminal(monkeypatch) as output, counting("Every policy drives every race", "races") as update:
        update(12, 600)
        time.sleep(0.2)
    assert "Every policy drives every race: 12 of 600 races" in output[0]


def test_counted_work_prints_nothing_in_a_pipe(capfd):
    with counting("Every policy drives every race", "races") as update:
        update(12, 600)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("NO_COLOR", "1"), ("CI", "true")])
def test_a_terminal_can_request_plain_text(monkeypatch, name, value):
    with terminal(monkeypatch):
        assert interactive(sys.stdout)
    with terminal(monkeypatch, **{name: value}) as output:
        assert not interactive(sys.stdout)
        with Progress(["race_laps"]) as progress:
            progress.take(1, Finished("race_laps", 3.1, {}))
            progress.take(1, CheckPassed("check a of race_laps"))
            progress.take(1, Warned("race_laps", "no tyres"))
    assert output[0].splitlines() == ["[1/1]  0:00  race_laps   3.1 s", "       0:00  race_laps   WARNING: no tyres"]


def test_all_figures_are_of_assets_of_the_demo():
    assert set(FIGURES) <= {*flow.CALENDAR, *flow.FLOW, *flow.RANKER_RESULTS, *flow.DATASET, *flow.BASELINES,
                            *flow.TRAINING, *flow.ENGINEER_RESULTS}


@pytest.mark.parametrize(("asset", "metadata", "expected"), [
    ("race_laps", {"rows_written_in_range": 134047, "rows_by_table": {"race.laps": 115973}}, "115,973 laps"),
    ("race_laps", {"rows_written_in_range": 0, "rows_by_table": {}}, "0 rows"),
    ("an_asset_without_an_entry", {"dagster/partition_row_count": 22}, "22 rows"),
    ("an_asset_without_an_entry", {"checkpoint": "443cc0f3fd7d"}, ""),
    ("ranking_evaluation", {"champion_spearman rolling_2019_2025": 0.6563838, "dagster/row_count": 1934},
     "Spearman of champion 0.656"),
    ("pretrained_ranker", {"races": "many", "trained_through": "2025-abu-dhabi"}, "through 2025-abu-dhabi"),
    ("promoted_ranker", {"promotion": "promoted: " + "x" * 100}, "promoted: " + "x" * 47 + "..."),
])
def test_the_figure_of_an_asset_comes_from_its_metadata(asset, metadata, expected):
    assert figure(asset, metadata) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0.04, "0.0 s"), (3.14, "3.1 s"), (59.96, "1:00"), (187, "3:07"),
                                                   (3787, "1:03:07")])
def test_durations_have_units(seconds, expected):
    assert duration(seconds) == expected
    assert seconds < 60 or clock(seconds) == expected
