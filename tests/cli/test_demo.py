"""The whole demo on real seasons, and commands that users run after it."""
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from f1_pipelines.cli.demo import flow
from f1_pipelines.settings import PROJECT_ROOT
from f1_pipelines.warehouse.database import WarehouseFile

pytestmark = [pytest.mark.xdist_group("demo"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def f1(folder: Path, f1db_folder: Path):
    """The command `f1` in an empty working directory, with its own warehouse and Dagster home."""
    home = folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text((PROJECT_ROOT / "dagster.yaml").read_text())
    environment = {**os.environ, "DAGSTER_HOME": str(home), "F1_SOURCE": "f1db", "F1_F1DB_PATH": str(f1db_folder),
                   "F1_WAREHOUSE": str(folder / "f1.duckdb"), "OMP_WAIT_POLICY": "PASSIVE"}

    def run(*arguments: str) -> str:
        process = subprocess.run([sys.executable, "-m", "f1_pipelines", *arguments], cwd=folder, env=environment,
                                 capture_output=True, text=True, timeout=580)
        assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
        return process.stdout

    return run


@pytest.fixture(scope="module")
def output(f1) -> str:
    return f1("demo", "--engineer", "none")


@pytest.fixture
def rows(output, folder: Path):
    def query(sql: str) -> list[tuple]:
        with WarehouseFile(folder / "f1.duckdb").read() as connection:
            return connection.execute(sql).fetchall()
    return query


def test_it_prints_evaluation_prediction_and_next_commands(output):
    assert re.search(r"^  > +champion +0\.6\d\d  \+0\.0\d\d \[\+0\.0\d\d, \+0\.\d\d\d\] +\d\d\.\d %$", output, re.M)
    assert re.search(r"^ +rank_sum +0\.6", output, re.M)
    assert "EVALUATION: 152 races unseen in training" in output
    assert "FORECAST: the first 10 of 22 cars\n  Dutch Grand Prix 2026 (2026-netherlands)" in output
    assert "known: practice, data: f1db" in output
    assert "SIMULATED" not in output and "SAMPLE" not in output and "ENGINEERS" not in output
    assert "make dev" in output


def test_it_prints_one_line_per_asset_with_its_figure(output):
    assets = [*flow.CALENDAR, *flow.FLOW, *flow.RANKER_RESULTS]
    lines = [line for line in output.splitlines() if line.startswith("[")]
    assert [line.split("]")[0] for line in lines] == [f"[{n:2}/14" for n in range(1, 15)]
    figures = {match["asset"]: match["figure"] for line in lines if (match := re.fullmatch(
        r"\[ ?\d+/14\] +\d+:\d\d  (?P<asset>\w+) +(\d+\.\d s|\d+:\d\d)   (?P<figure>.+)", line))}
    assert set(figures) == set(assets), "each has a figure"
    assert "WARNING: 1 sessions refused; first: 2026-netherlands qualifying" in output
    assert "STEP_SUCCESS" not in output and "\x1b" not in output
    assert len(output.splitlines()) < 90


def test_our_ranker_beats_the_grid_by_its_target(rows):
    [(spearman, low, races)] = rows("""
        SELECT spearman, delta_low, n_races FROM ranking.evaluation_summary
        WHERE predictor = 'champion' AND protocol = 'rolling_2019_2025' AND population = 'starters'""")
    assert races == 152
    assert 0.665 <= spearman < 0.70
    assert low > 0.015


def test_the_reference_has_its_documented_score(rows):
    [(spearman,)] = rows("""
        SELECT spearman FROM ranking.evaluation_summary
        WHERE predictor = 'f1net_reference' AND protocol = 'rolling_2019_2025' AND population = 'starters'""")
    assert spearman == pytest.approx(0.644, abs=0.01)


def test_all_predictors_and_baselines_are_evaluated_for_both_populations(rows):
    assert rows("SELECT protocol, count(*), count(DISTINCT predictor) FROM ranking.evaluation_summary GROUP BY ALL "
                "ORDER BY ALL") == [("holdout_2025", 18, 9), ("prequential_2026", 22, 11), ("rolling_2019_2025", 18, 9)]
    assert rows("SELECT round(spearman, 3) FROM ranking.evaluation_summary WHERE predictor = 'grid' "
                "AND protocol = 'rolling_2019_2025' ORDER BY population") == [(0.735,), (0.629,)]


def test_predictions_are_complete_and_mark_training_races(rows):
    assert rows("SELECT count(*) FROM (SELECT weekend FROM ranking.predictions GROUP BY weekend, stage "
                "HAVING count(*) <> max(predicted_position))") == [(0,)]
    assert rows("SELECT min(weekend), max(weekend) FROM ranking.predictions WHERE in_sample") == [
        ("2022-abu-dhabi", "2026-monaco")]
    assert rows("SELECT DISTINCT weekend[:4] FROM ranking.predictions WHERE NOT in_sample ORDER BY 1") == [
        (season,) for season in ("2018", "2019", "2020", "2021", "2026")]
    assert rows("SELECT count(*) FROM ranking.predictions WHERE p_win IS NULL") == [(0,)]
    assert rows("SELECT DISTINCT weekend FROM ranking.simulated_predictions") == [("2026-netherlands",)]


def test_probabilities_meet_their_targets_and_beat_those_of_the_grid_alone(rows):
    [metrics] = rows("""
        SELECT log_loss_win, brier_podium, ece_win, ece_podium, ece_points, delta_log_loss_win_high,
               delta_brier_podium_high
        FROM ranking.evaluation_summary
        WHERE predictor = 'champion' AND protocol = 'rolling_2019_2025' AND population = 'starters'""")
    assert metrics[0] <= 1.25 and metrics[1] <= 0.065 and max(metrics[2:5]) <= 0.015
    assert max(metrics[5:]) < 0


def test_the_newest_link_of_the_chain_was_promoted_with_weights_and_description(rows):
    [(path, kind, through, n_races)] = rows(
        "SELECT path, kind, trained_through, n_races FROM ranking.checkpoints WHERE promoted")
    assert sorted(file.name for file in Path(path).iterdir()) == ["meta.json", "model.safetensors"]
    assert (kind, through, n_races) == ("ewc", "2026-hungary", 103)
    assert json.loads((Path(path) / "meta.json").read_text())["data_version"]
    [(pretrained, n_races)] = rows("SELECT path, n_races FROM ranking.checkpoints WHERE kind = 'pretrained' "
                                   "AND model = 'champion'")
    assert n_races == 92 and (Path(pretrained) / "fisher.safetensors").is_file()


def test_learning_after_every_race_gains_in_2026_without_forgetting(rows):
    [(adapted, unadapted)] = rows("""
        SELECT max(spearman) FILTER (predictor = 'champion_ewc'), max(spearman) FILTER (predictor = 'champion')
        FROM ranking.evaluation_summary WHERE protocol = 'prequential_2026' AND population = 'starters'""")
    assert 0.70 <= adapted < 0.75 and adapted > unadapted - 0.005
    [(links, before, after)] = rows("""
        SELECT count(*), arg_min(old_season_before, race_start), arg_max(old_season_after, race_start)
        FROM ranking.updates JOIN race.calendar USING (weekend)
        WHERE current AND kind = 'ewc' AND model = 'champion'""")
    assert links == 11 and after > before - 0.02


def test_any_weekend_can_be_predicted(output, f1):
    ranking = json.loads(f1("predict", "2026-monaco", "--format", "json"))
    assert [row["place"] for row in ranking] == list(range(1, 23))
    assert all(row["actual"] for row in ranking)
    assert "look back, not a forecast" in f1("predict", "2024-sao-paulo")


def test_the_example_queries_work(output, rows):
    for file in sorted((PROJECT_ROOT / "warehouse" / "queries").glob("*.sql")):
        assert isinstance(rows(file.read_text()), list), file.name
    assert len(rows((PROJECT_ROOT / "warehouse" / "queries" / "ranking_table.sql").read_text())) == 29


def test_the_doctor_finds_no_fault(output, f1):
    assert "FAIL" not in f1("doctor")


def test_training_again_on_the_same_data_gives_the_same_checkpoint_and_no_second_row(output, folder, rows, monkeypatch,
                                                                                    f1db_folder):
    import dagster as dg

    from f1_pipelines.assets.ranking import pretrained_ranker
    from f1_pipelines.resources.checkpoints import Checkpoints
    from f1_pipelines.resources.compute import Compute
    from f1_pipelines.resources.race_data import Clock
    from f1_pipelines.resources.tracking import Tracking
    from f1_pipelines.resources.warehouse import Warehouse

    before = rows("SELECT checkpoint, promoted FROM ranking.checkpoints ORDER BY 1")
    result = dg.materialize([pretrained_ranker], selection=[pretrained_ranker], resources={
        "warehouse": Warehouse(path=str(folder / "f1.duckdb")), "compute": Compute(device="cpu"),
        "checkpoints": Checkpoints(path=str(folder / "checkpoints")), "clock": Clock(), "tracking": Tracking()})
    assert result.success
    assert rows("SELECT checkpoint, promoted FROM ranking.checkpoints ORDER BY 1") == before


def test_a_forecast_made_before_the_race_stays_and_gets_its_outcome(output, folder, rows):
    """A forecast of 2026-hungary two days before the race doesn't change in a run after it."""
    import dagster as dg

    from f1_pipelines.assets.predictions import race_predictions
    from f1_pipelines.resources.checkpoints import Checkpoints
    from f1_pipelines.resources.race_data import Clock
    from f1_pipelines.resources.warehouse import Warehouse

    warehouse = Warehouse(path=str(folder / "f1.duckdb"))
    friday = datetime(2026, 7, 24, 18, 0, tzinfo=UTC)
    with warehouse.write("as on Friday") as connection:
        connection.execute("UPDATE ranking.predictions SET made_at = ?, score = -score, predicted_position = "
                           "23 - predicted_position WHERE weekend = '2026-hungary'", [friday])
    forecast = ("SELECT driver, predicted_position, made_at FROM ranking.predictions "
                "WHERE weekend = '2026-hungary' ORDER BY 1")
    before = rows(forecast)
    result = dg.materialize([race_predictions], selection=[race_predictions], partition_key="2026-hungary", resources={
        "warehouse": warehouse, "clock": Clock(fixed="2026-07-27T09:00:00+00:00"),
        "checkpoints": Checkpoints(path=str(folder / "checkpoints"))})
    assert result.success
    assert rows(forecast) == before
    assert rows("SELECT count(actual_position), count(exact_match) FROM ranking.predictions "
                "WHERE weekend = '2026-hungary'") == [(88, 88)]  # four stages


def test_the_jobs_run_one_weekend_before_and_after_its_race(output, folder, rows, f1db_folder, monkeypatch):
    from f1_pipelines.definitions import defs
    from f1_pipelines.resources.checkpoints import Checkpoints
    from f1_pipelines.resources.race_data import Clock, RaceData
    from f1_pipelines.resources.warehouse import Warehouse

    monkeypatch.setenv("F1_WAREHOUSE", str(folder / "f1.duckdb"))
    resources = {
        **defs.resources, "warehouse": Warehouse(path=str(folder / "f1.duckdb")),
        "race_data": RaceData(source="f1db", f1db_path=str(f1db_folder), f1db_folder=str(folder),
                              fastf1_cache=str(folder)),
        "clock": Clock(fixed="2026-08-22T06:00:00+00:00"), "checkpoints": Checkpoints(path=str(folder / "checkpoints"))}
    jobs = {job.name: job for job in defs.jobs}
    for name, partition in (("pre_race", "2026-netherlands"), ("post_race", "2026-hungary")):
        job = defs.resolve_job_def(jobs[name].name)
        assert job.execute_in_process(partition_key=partition, resources=resources).success
    assert rows("SELECT DISTINCT stage FROM ranking.predictions WHERE weekend = '2026-netherlands' ORDER BY 1") == [
        ("entry",), ("practice",)]
