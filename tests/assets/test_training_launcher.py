"""A training in processes of its own, through Dagster Pipes: what it tells, what it leaves, how it fails."""
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

# 2026-11: Dagster 1.13 warns of a part of Pipes that its own client uses.
pytestmark = pytest.mark.filterwarnings("ignore:Function `PipesMessageReader.expected_writer_count`")
SMALL = {"rounds": 0, "batch": 16, "lr": 3e-3, "warmup_steps": 2}


@pytest.fixture
def trained(resources, tmp_path):
    """Trains an imitator on the turns of a few races; returns Dagster's result and what its log says."""
    keys = race_keys("train", 2, ("dry_strategy_sprint", "tyre_cliff_management"))
    turns = turn_rows(turn for race in expert_demonstrations(ScenarioSampler(), keys) for turn in race)
    with resources["warehouse"].write("turns") as connection:
        replace_slices(connection, SFT_TURNS, turns.assign(
            collected_by="expert", near_tie=False, env_version=2, prompt_version=2, scenes_version="x"))
    engineers = Engineers(path=str(tmp_path / "engineers"), pictures=str(tmp_path / "pictures"))

    def run(launcher: str, processes: int = 0, practice: dict | None = None, seed: int = 0,
            **settings) -> tuple[dg.ExecuteInProcessResult, str]:
        lent = {**resources, "engineers": engineers,
                "compute": Compute(device="cpu", launcher=launcher, processes=processes)}
        stages = {"sft_engineer": {"config": {"settings": SMALL | settings, "seed": seed}}}
        if practice:
            stages["grpo_engineer"] = {"config": {"settings": practice}}
        with dg.DagsterInstance.ephemeral() as instance:
            result = dg.materialize(
                [*defs.assets, *defs.asset_checks], instance=instance, resources=lent, raise_on_error=False,
                selection=dg.AssetSelection.assets(*stages), run_config={"ops": stages})
            log = "\n".join(entry.user_message for entry in instance.all_logs(result.run_id))
        return result, log

    return run


def test_a_process_of_its_own_tells_as_it_goes_and_leaves_a_checkpoint(trained, resources, tmp_path):
    result, log = trained("subprocess", epochs=2.0)
    assert result.success, log
    assert "tokens/s, 0 s left" in log, "progress is in Dagster's log"
    [shown] = result.asset_materializations_for_node("sft_engineer")
    assert shown.metadata["launcher"].value == "subprocess"
    with resources["warehouse"].read() as connection:
        rows = lineage(connection, "tiny")
        curve = connection.execute("SELECT DISTINCT metric FROM strategy.training_curve").fetchall()
    assert rows["stage"].tolist() == ["untrained", "sft"]
    checkpoint = read_checkpoint(tmp_path / "engineers" / rows["path"][1])
    assert checkpoint.meta["parent"] == rows["checkpoint"][0]
    assert {"loss", "entropy", "tokens_per_s"} <= {metric for metric, in curve}
    assert {check.check_name: check.passed for check in result.get_asset_check_evaluations()} == {
        "prompts_are_token_identical": True, "keys_are_unique": True}


def test_a_process_that_fails_says_why_in_the_run(trained, resources):
    result, log = trained("subprocess", epochs=11.0, lr=1e-9, muon_lr=1e-9)
    assert not result.success
    failure = result.failure_data_for_node("sft_engineer")
    assert "nothing was learnt; check the turns and the learning rate" in str(failure.user_failure_data.description)
    with resources["warehouse"].read() as connection:
        assert connection.execute("SELECT count(*) FROM strategy.engineers").fetchone() == (0,)


def test_what_is_gone_on_from_and_what_begins_anew(trained, resources, tmp_path):
    """A run that was killed between the training and the warehouse is not trained twice; a finished one is."""
    result, log = trained("in_process", epochs=1.0)
    assert result.success, log
    with resources["warehouse"].write("promoted meanwhile") as connection:
        assert connection.execute("SELECT count(*) FROM strategy.engineers WHERE promoted").fetchone() == (0,)
        connection.execute("UPDATE strategy.engineers SET promoted = true, promotion = 'examined' WHERE stage = 'sft'")
    work = tmp_path / "engineers" / "work" / "tiny-sft-0"
    assert (work / "result.json").is_file() and not (work / "began.json").is_file()
    _, again = trained("in_process", epochs=1.0)
    assert "s left" in again, "what was kept is trained anew"
    with resources["warehouse"].read() as connection:
        assert connection.execute("SELECT count(*) FROM strategy.engineers").fetchone() == (2,), "and is the same"
        assert connection.execute("SELECT stage, promotion FROM strategy.engineers WHERE promoted").fetchall() == [
            ("sft", "examined")], "whoever was promoted stays so, trained again or not"


@pytest.fixture
def toys(monkeypatch):
    """Trainings of toy size, in this process and in those that are started."""
    monkeypatch.setitem(PROFILES, "tiny", replace(PROFILES["tiny"], architecture=TOY, max_new_tokens=12))
    monkeypatch.setattr(training_launcher, "TRAINING", toy_training.__name__)
    monkeypatch.chdir(Path(__file__).parents[2])


@pytest.mark.timeout(600)
def test_two_processes_train_as_one_does_and_leave_one_checkpoint_of_each_stage(toys, trained, resources, tmp_path):
    one = {"epochs": 4.0, "lr": 1e-2, "max_turns": 48}
    result, log = trained("in_process", batch=16, **one)
    assert result.success, log
    with resources["warehouse"].read() as connection:
        expected = _losses(connection)
    result, log = trained("accelerate", 2, batch=8, rounds=1, round_races=1, **one, practice={
        "steps": 2, "races": 2, "states": 4, "samples": 4, "batch": 4})
    [shown] = result.asset_materializations_for_node("grpo_engineer")  # its checks find that a toy learns nothing
    assert shown.metadata["processes"].value == 2
    assert log.count("round 1: the student") == log.count("step 2: 0.") == 1, "one process drives and tells"
    with resources["warehouse"].read() as connection:
        rows, losses = lineage(connection, "tiny"), _losses(connection)
        scores = connection.execute("SELECT step, value FROM strategy.training_curve WHERE stage = 'grpo' AND "
                                    "metric = 'selection_score' ORDER BY step").fetchall()
    assert losses[:len(expected)] == pytest.approx(expected, rel=1e-3), "half a batch each is the whole batch"
    assert rows["stage"].tolist() == ["untrained", "sft", "grpo"]
    assert not rows["promoted"].any(), "a checkpoint that fails a blocking check is not served"
    assert [step for step, _ in scores] == [0, 1, 2]
    engineers = tmp_path / "engineers"
    for path in rows["path"]:
        assert isinstance(load_engineer(engineers / path).commands(["LAP 1"])[0], str)
    assert len(list(engineers.iterdir())) == 5, "these three, that of the first training, and the work folder"
    assert not [path for path in engineers.rglob("*") if path.name.startswith(".") or path.suffix == ".growing"]


def _losses(connection) -> list[float]:
    return [loss for loss, in connection.execute("""
        SELECT value FROM strategy.training_curve WHERE metric = 'loss' AND stage = 'sft' AND run = (
            SELECT checkpoint FROM strategy.engineers WHERE stage = 'sft' ORDER BY made_at DESC, checkpoint LIMIT 1)
        ORDER BY step""").fetchall()]


def test_one_process_that_fails_ends_all_and_says_why(toys, trained, resources, tmp_path):
    result, _ = trained("accelerate", 2, seed=toy_training.SEED_THAT_FAILS, epochs=2.0)
    assert not result.success
    failure = result.failure_data_for_node("sft_engineer")
    assert failure.user_failure_data.description == f"TrainingFailed: {toy_training.WORDS}"
    with resources["warehouse"].read() as connection:
        assert connection.execute("SELECT count(*) FROM strategy.engineers").fetchone() == (0,)
    assert not list((tmp_path / "engineers").rglob("result.json"))
