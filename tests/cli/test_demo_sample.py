"""`make demo` as it is for somebody with nothing but the project: the embedded sample, offline, labelled as made up."""
import os
import re
import subprocess
import sys

import pytest

from f1_pipelines.cli.demo.flow import CALENDAR, COMPARED, FLOW, LESSONS, MEASURED, REPORTED, TRAINED
from f1_pipelines.settings import PROJECT_ROOT
from f1_pipelines.warehouse.database import WarehouseFile

pytestmark = [pytest.mark.xdist_group("demo-sample"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    place = tmp_path_factory.mktemp("sample")
    home = place / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text((PROJECT_ROOT / "dagster.yaml").read_text())
    bare = {name: value for name, value in os.environ.items() if not name.startswith("F1_")}
    environment = {**bare, "DAGSTER_HOME": str(home), "F1_WAREHOUSE": str(place / "f1.duckdb")}
    done = subprocess.run([sys.executable, "-m", "f1_pipelines", "demo", "--engineer", "toy"], cwd=place,
                          capture_output=True, text=True, timeout=580, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout, WarehouseFile(place / "f1.duckdb")


def test_it_runs_the_whole_flow_and_says_that_it_is_made_up(demo):
    told, _ = demo
    assert "SAMPLE: a season driven by the simulator of this project. No result in it is real." in told
    assert "Dutch Grand Prix 2026 (2026-netherlands)" in told
    assert "known: grid, data: sample" in told
    blocks = [told.index(title) for title in ("THE DATA ARE MADE UP", "FORECAST", "EVALUATION", "ENGINEERS")]
    assert blocks == sorted(blocks)


def test_every_asset_has_a_line_with_its_figure(demo):
    lines = re.findall(r"^\[[ \d]\d/22\] +\d+:\d\d  (\w+) +(?:\d+\.\d s|\d+:\d\d)   .+$", demo[0], re.M)
    assert sorted(lines) == sorted((*CALENDAR, *FLOW, *MEASURED, *LESSONS, *COMPARED, *TRAINED, *REPORTED))
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
    assert sources.pop("race.calendar") == {"embedded", "sample"}  # seasons before the sample's are known, not run
    assert len(sources) >= 9
    assert all(found == {"sample"} for found in sources.values()), sources
    assert {version.split("-")[0] for (version,) in versions} == {"sample"}


def test_the_ranker_finds_what_there_is_to_find(demo):
    with demo[1].read() as connection:
        [(spearman, low)] = connection.execute(
            "SELECT spearman, delta_low FROM ranking.evaluation_summary WHERE predictor = 'champion' "
            "AND protocol = 'rolling_2019_2025' AND population = 'starters'").fetchall()
    assert 0.6 < spearman < 0.7
    assert low > 0


def test_the_simulator_is_fitted_to_the_laps_and_repeats_them(demo):
    with demo[1].read() as connection:
        [(fitted,)] = connection.execute(
            "SELECT count(DISTINCT circuit) FROM sim.circuits WHERE provenance = 'fitted'").fetchall()
        [(spearman,)] = connection.execute("SELECT spearman FROM sim.validation_summary "
                                           "WHERE method = 'replay_fitted' AND races = 'all'").fetchall()
    assert fitted >= 20
    assert spearman > 0.9


def test_laps_come_with_it(demo):
    with demo[1].read() as connection:
        [(races, laps, torn)] = connection.execute(
            "SELECT count(DISTINCT weekend), count(*), (SELECT count(*) FROM (SELECT 1 FROM race.laps "
            "GROUP BY weekend, driver HAVING count(*) <> max(lap))) FROM race.laps").fetchall()
    assert (races, torn) == (103, 0)
    assert laps > 100_000


def test_a_race_engineer_goes_from_nothing_to_the_leaderboard(demo):
    """At toy size: all of it runs and is kept; what it scores is not looked at."""
    told, warehouse = demo
    assert told.index("Materialized in") < told.rindex("oracle"), "the leaderboard comes last"
    with warehouse.read() as connection:
        stages = connection.sql("SELECT stage, parent IS NULL FROM strategy.engineers").fetchall()
        board = connection.sql("SELECT DISTINCT policy FROM strategy.leaderboard WHERE variant = 'plain'").fetchall()
        variants = connection.sql("SELECT DISTINCT variant FROM strategy.episodes").fetchall()
        [alike] = connection.sql("""
            SELECT count(*), count(*) FILTER (abs(paid - score) > 1e-6), sum(fallbacks) FROM strategy.episodes
            JOIN (SELECT policy, variant, family, seed, sum(reward) AS paid FROM strategy.decisions GROUP BY ALL)
            USING (policy, variant, family, seed)""").fetchall()
        curve = {name for (name,) in connection.sql("SELECT DISTINCT metric FROM strategy.training_curve").fetchall()}
        [lessons] = connection.sql("SELECT count(DISTINCT lesson) FROM strategy.postmortems").fetchall()
    assert sorted(stages) == [("grpo", False), ("sft", False), ("untrained", True)]
    assert {policy for (policy,) in board} >= {"random", "stay_out", "checklist", "untrained", "sft", "grpo", "expert",
                                               "oracle"}
    assert {variant for (variant,) in variants} >= {"plain", "renamed", "training"}
    assert alike[0] > 50
    assert alike[1:] == (0, 0), "the rewards of a race's calls add up to its score, and no script called"
    assert curve >= {"loss", "score", "selection_score", "kl_to_sft", "entropy", "frac_reward_zero_std"}
    assert lessons[0] > 1
    pictures = warehouse.path.parent / "pictures"
    assert {path.name for path in pictures.glob("*.png")} == {"race-story.png", "training.png", "scores.png",
                                                             "journey.png", "circuits.png"}
