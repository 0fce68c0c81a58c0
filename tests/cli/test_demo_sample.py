"""`make demo` without any data: the embedded sample, offline, labelled as simulated."""
import os
import re
import subprocess
import sys

import pytest

from f1_pipelines.cli.demo.flow import BASELINES, CALENDAR, DATASET, ENGINEER_RESULTS, FLOW, RANKER_RESULTS, TRAINING
from f1_pipelines.settings import PROJECT_ROOT
from f1_pipelines.warehouse.database import WarehouseFile

pytestmark = [pytest.mark.xdist_group("demo-sample"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    home = folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text((PROJECT_ROOT / "dagster.yaml").read_text())
    clean = {name: value for name, value in os.environ.items() if not name.startswith("F1_")}
    environment = {**clean, "DAGSTER_HOME": str(home), "F1_WAREHOUSE": str(folder / "f1.duckdb")}
    process = subprocess.run([sys.executable, "-m", "f1_pipelines", "demo", "--engineer", "toy"], cwd=folder,
                             capture_output=True, text=True, timeout=580, env=environment)
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return process.stdout, WarehouseFile(folder / "f1.duckdb")


def test_it_runs_the_whole_flow_and_says_that_the_data_are_simulated(demo):
    output, _ = demo
    assert "SAMPLE: a season driven by the simulator of this project. No result in it is real." in output
    assert "Dutch Grand Prix 2026 (2026-netherlands)" in output
    assert "known: grid, data: sample" in output
    blocks = [output.index(title) for title in ("THE DATA ARE SIMULATED", "FORECAST", "EVALUATION", "ENGINEERS")]
    assert blocks == sorted(blocks)


def test_every_asset_has_a_line_with_its_figure(demo):
    lines = re.findall(r"^\[[ \d]\d/22\] +\d+:\d\d  (\w+) +(?:\d+\.\d s|\d+:\d\d)   .+$", demo[0], re.M)
    assert sorted(lines) == sorted((*CALENDAR, *FLOW, *RANKER_RESULTS, *DATASET, *BASELINES, *TRAINING,
                                    *ENGINEER_RESULTS))
    assert re.search(r"^  > +sft +\d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\] +-?\d+\.\d %$", demo[0], re.M)
    assert "Toy size" in demo[0] and "STEP_SUCCESS" not in demo[0] and "\x1b" not in demo[0]


def test_every_row_is_labelled(demo):
    with demo[1].read() as connection:
        tables = [name for (name,) in connection.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_columns() WHERE column_name = 'source' "
            "AND schema_name = 'race' AND table_name NOT LIKE 'current%'").fetchall()]
        sources = {table: {source for (source,) in connection.execute(
            f"SELECT DISTINCT source FROM {table}").fetchall()} for table in tables}
        versions = connection.execute(
            "SELECT data_version FROM ranking.checkpoints UNION SELECT data_version FROM ranking.predictions "
            "UNION SELECT data_version FROM ranking.evaluation_summary").fetchall()
    assert sources.pop("race.calendar") == {"embedded", "sample"}  # earlier seasons are only in the calendar
    assert len(sources) >= 9
    assert all(labels == {"sample"} for labels in sources.values()), sources
    assert {version.split("-")[0] for (version,) in versions} == {"sample"}


def test_the_ranker_beats_the_grid_on_the_sample(demo):
    with demo[1].read() as connection:
        [(spearman, low)] = connection.execute(
            "SELECT spearman, delta_low FROM ranking.evaluation_summary WHERE predictor = 'champion' "
            "AND protocol = 'rolling_2019_2025' AND population = 'starters'").fetchall()
    assert 0.6 < spearman < 0.7
    assert low > 0


def test_the_simulator_is_fitted_to_the_laps_and_reproduces_them(demo):
    with demo[1].read() as connection:
        [(fitted,)] = connection.execute(
            "SELECT count(DISTINCT circuit) FROM sim.circuits WHERE provenance = 'fitted'").fetchall()
        [(spearman,)] = connection.execute("SELECT spearman FROM sim.validation_summary "
                                           "WHERE method = 'replay_fitted' AND races = 'all'").fetchall()
    assert fitted >= 20
    assert spearman > 0.9


def test_the_sample_has_laps_without_gaps(demo):
    with demo[1].read() as connection:
        [(races, laps, with_gaps)] = connection.execute(
            "SELECT count(DISTINCT weekend), count(*), (SELECT count(*) FROM (SELECT 1 FROM race.laps "
            "GROUP BY weekend, driver HAVING count(*) <> max(lap))) FROM race.laps").fetchall()
    assert (races, with_gaps) == (103, 0)
    assert laps > 100_000


def test_a_race_engineer_is_trained_and_evaluated(demo):
    """At toy size: every step runs and stores its results; scores are not tested."""
    output, warehouse = demo
    assert output.index("Materialized in") < output.rindex("oracle"), "the leaderboard comes last"
    with warehouse.read() as connection:
        stages = connection.sql("SELECT stage, parent IS NULL FROM strategy.engineers").fetchall()
        board = connection.sql("SELECT DISTINCT policy FROM strategy.leaderboard WHERE variant = 'plain'").fetchall()
        variants = connection.sql("SELECT DISTINCT variant FROM strategy.episodes").fetchall()
        [counts] = connection.sql("""
            SELECT count(*), count(*) FILTER (abs(paid - score) > 1e-6), sum(fallbacks) FROM strategy.episodes
            JOIN (SELECT policy, variant, family, seed, sum(reward) AS paid FROM strategy.decisions GROUP BY ALL)
            USING (policy, variant, family, seed)""").fetchall()
        curve = {name for (name,) in connection.sql("SELECT DISTINCT metric FROM strategy.training_curve").fetchall()}
        [lessons] = connection.sql("SELECT count(DISTINCT lesson) FROM strategy.postmortems").fetchall()
    assert sorted(stages) == [("grpo", False), ("sft", False), ("untrained", True)]
    assert {policy for (policy,) in board} >= {"random", "stay_out", "checklist", "untrained", "sft", "grpo", "expert",
                                               "oracle"}
    assert {variant for (variant,) in variants} >= {"plain", "renamed", "training"}
    assert counts[0] > 50
    assert counts[1:] == (0, 0), "the rewards of a race add up to its score, without fallbacks"
    assert curve >= {"loss", "score", "selection_score", "kl_to_sft", "entropy", "frac_reward_zero_std"}
    assert lessons[0] > 1
    pictures = warehouse.path.parent / "pictures"
    assert {path.name for path in pictures.glob("*.png")} == {"race-story.png", "training.png", "scores.png",
                                                             "journey.png", "circuits.png"}
