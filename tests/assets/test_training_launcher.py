"""Trainings in separate processes through Dagster Pipes: logs, stored results and failures."""
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from f1_pipelines.assets import training_launcher
from f1_pipelines.assets.engineer import lineage
from f1_pipelines.definitions import defs
from f1_pipelines.engineer.data.demonstrations import expert_demonstrations, turn_rows
from f1_pipelines.engineer.inference.checkpoints import load_engineer, read_checkpoint
from f1_pipelines.engineer.profiles import PROFILES
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import race_keys
from f1_pipelines.resources.compute import Compute
from f1_pipelines.resources.engineers import Engineers
from f1_pipelines.tables.strategy import SFT_TURNS
from f1_pipelines.warehouse.replace import replace_slices
from tests.engineer.conftest import TOY
from tests.engineer.training import toy_training

# 2026-11: Dagster 1.13's own client uses a part of Pipes that it warns about.
pytestmark = pytest.mark.filterwarnings("ignore:Function `PipesMessageReader.expected_writer_count`")
SMALL = {"rounds": 0, "batch": 16, "lr": 3e-3, "warmup_steps": 2}


@pytest.fixture
def trained(resources, tmp_path):
    """Train an SFT engineer on the turns of a few races; return Dagster's result and log."""
    keys = race_keys("train", 2, ("dry_strategy_sprint", "tyre_cliff_management"))
    turns = turn_rows(turn for race in expert_demonstrations(ScenarioSampler(), keys) for turn in race)
    with resources["warehouse"].write("turns") as connection:
        replace_slices(connection, SFT_TURNS, turns.assign(
            collected_by="expert", near_tie=False, env_version=2, prompt_version=2, scenes_version="x"))
    engineers = Engineers(path=str(tmp_path / "engineers"), pictures=str(tmp_path / "pictures"))

    def run(launcher: str, processes: int = 0, grpo: dict | None = None, seed: int = 0,
            **settings) -> tuple[dg.ExecuteInProcessResult, str]:
        training_resources = {**resources, "engineers": engineers,
                              "compute": Compute(device="cpu", launcher=launcher, processes=processes)}
        stages = {"sft_engineer": {"config": {"settings": SMALL | settings, "seed": seed}}}
        if grpo:
            stages["grpo_engineer"] = {"config": {"settings": grpo}}
        with dg.DagsterInstance.ephemeral() as instance:
            result = dg.materialize(
                [*defs.assets, *defs.asset_checks], instance=instance, resources=training_resources,
                raise_on_error=False,
                selection=dg.AssetSelection.assets(*stages), run_config={"ops": stages})
            log = "\n".join(entry.user_message for entry in instance.all_logs(result.run_id))
        return result, log

    return run


def test_a_separate_process_logs_its_progress_and_stores_a_checkpoint(trained, resources, tmp_path):
    result, log = trained("subprocess", epochs=2.0)
    assert result.success, log
    assert "tokens/s, 0 s left" in log, "progress is in Dagster's log"
    [event] = result.asset_materializations_for_node("sft_engineer")
    assert event.metadata["launcher"].value == "subprocess"
    with resources["warehouse"].read() as connection:
        rows = lineage(connection, "tiny")
        curve = connection.execute("SELECT DISTINCT metric FROM strategy.training_curve").fetchall()
    assert rows["stage"].tolist() == ["untrained", "sft"]
    checkpoint = read_checkpoint(tmp_path / "engineers" / rows["path"][1])
    assert checkpoint.meta["parent"] == rows["checkpoint"][0]
    assert {"loss", "entropy", "tokens_per_s"} <= {metric for metric, in curve}
    assert {check.check_name: check.passed for check in result.get_asset_check_evaluations()} == {
        "prompts_are_token_identical": True, "keys_are_unique": True}


def test_a_failed_process_gives_the_run_its_reason(trained, resources):
    result, log = trained("subprocess", epochs=11.0, lr=1e-9, muon_lr=1e-9)
    assert not result.success
    failure = result.failure_data_for_node("sft_engineer")
    assert "nothing was learnt; check the turns and the learning rate" in str(failure.user_failure_data.description)
    with resources["warehouse"].read() as connection:
        assert connection.execute("SELECT count(*) FROM strategy.engineers").fetchone() == (0,)


def test_a_finished_training_starts_again_with_the_same_result(trained, resources, tmp_path):
    """It leaves no job to resume, and a promotion stays."""
    result, log = trained("in_process", epochs=1.0)
    assert result.success, log
    with resources["warehouse"].write("promotion") as connection:
        assert connection.execute("SELECT count(*) FROM strategy.engineers WHERE promoted").fetchone() == (0,)
        connection.execute("UPDATE strategy.engineers SET promoted = true, promotion = 'examined' WHERE stage = 'sft'")
    work = tmp_path / "engineers" / "work" / "tiny-sft-0"
    assert (work / "result.json").is_file() and not (work / "began.json").is_file()
    _, log = trained("in_process", epochs=1.0)
    assert "s left" in log, "it trains again"
    with resources["warehouse"].read() as connection:
        assert connection.execute("SELECT count(*) FROM strategy.engineers").fetchone() == (2,), "the same checkpoints"
        assert connection.execute("SELECT stage, promotion FROM strategy.engineers WHERE promoted").fetchall() == [
            ("sft", "examined")], "the promotion stays"


@pytest.fixture
def toys(monkeypatch):
    """Trainings of toy size, in this process and in subprocesses."""
    monkeypatch.setitem(PROFILES, "tiny", replace(PROFILES["tiny"], architecture=TOY, max_new_tokens=12))
    monkeypatch.setattr(training_launcher, "TRAINING", toy_training.__name__)
    monkeypatch.chdir(Path(__file__).parents[2])


@pytest.mark.timeout(600)
def test_two_processes_train_like_one_and_store_one_checkpoint_per_stage(toys, trained, resources, tmp_path):
    settings = {"epochs": 4.0, "lr": 1e-2, "max_turns": 48}
    result, log = trained("in_process", batch=16, **settings)
    assert result.success, log
    with resources["warehouse"].read() as connection:
        expected = _losses(connection)
    result, log = trained("accelerate", 2, batch=8, rounds=1, round_races=1, **settings, grpo={
        "steps": 2, "races": 2, "states": 4, "samples": 4, "batch": 4})
    [event] = result.asset_materializations_for_node("grpo_engineer")  # its checks fail: a toy learns nothing
    assert event.metadata["processes"].value == 2
    assert log.count("round 1: the student") == log.count("step 2: 0.") == 1, "one process drives and logs"
    with resources["warehouse"].read() as connection:
        rows, losses = lineage(connection, "tiny"), _losses(connection)
        scores = connection.execute("SELECT step, value FROM strategy.training_curve WHERE stage = 'grpo' AND "
                                    "metric = 'selection_score' ORDER BY step").fetchall()
    assert losses[:len(expected)] == pytest.approx(expected, rel=1e-3), "two half batches equal one batch"
    assert rows["stage"].tolist() == ["untrained", "sft", "grpo"]
    assert not rows["promoted"].any(), "a checkpoint that fails a blocking check is not served"
    assert [step for step, _ in scores] == [0, 1, 2]
    engineers = tmp_path / "engineers"
    for path in rows["path"]:
        assert isinstance(load_engineer(engineers / path).commands(["LAP 1"])[0], str)
    assert len(list(engineers.iterdir())) == 5, "these three, the one of the first training, and the work folder"
    assert not [path for path in engineers.rglob("*") if path.name.startswith(".") or path.suffix == ".growing"]


def _losses(connection) -> list[float]:
    return [loss for loss, in connection.execute("""
        SELECT value FROM strategy.training_curve WHERE metric = 'loss' AND stage = 'sft' AND run = (
            SELECT checkpoint FROM strategy.engineers WHERE stage = 'sft' ORDER BY made_at DESC, checkpoint LIMIT 1)
        ORDER BY step""").fetchall()]


def test_one_failed_process_ends_all_and_gives_its_reason(toys, trained, resources, tmp_path):
    result, _ = trained("accelerate", 2, seed=toy_training.SEED_THAT_FAILS, epochs=2.0)
    assert not result.success
    failure = result.failure_data_for_node("sft_engineer")
    assert failure.user_failure_data.description == f"TrainingFailed: {toy_training.WORDS}"
    with resources["warehouse"].read() as connection:
        assert connection.execute("SELECT count(*) FROM strategy.engineers").fetchone() == (0,)
    assert not list((tmp_path / "engineers").rglob("result.json"))
