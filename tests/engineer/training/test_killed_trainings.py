"""A training killed with SIGKILL several times ends like an uninterrupted one: checkpoint, metrics, checks."""
import json
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from f1_pipelines.assets.engineer_checks import engineer_checks
from f1_pipelines.assets.training_launcher import _keep
from f1_pipelines.engineer.inference.checkpoints import read_checkpoint
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.training.job import Job, TrainingResult
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.sim.environment.prompt import PROMPT_VERSION
from f1_pipelines.sim.scenarios import ENV_VERSION
from f1_pipelines.tables.strategy import ENGINEERS
from tests.engineer.conftest import repeatable, steps_and_metrics
from tests.engineer.training import toy_killed_trainings

pytestmark = [pytest.mark.xdist_group("kills"), pytest.mark.timeout(300)]
# Each attempt resumes from the previous one.
MOMENTS = {
    "sft": ["logged steps-5", "weights", "driven", "logged steps-1-10", "stored"],
    "grpo": ["evaluated 1", "torn 2", "stored"],
}
SETTINGS = {"sft": toy_killed_trainings.SFT, "grpo": toy_killed_trainings.GRPO}


@pytest.fixture(scope="module")
def results(tmp_path_factory, examples, student_folder) -> dict[str, tuple[Job, TrainingResult, TrainingResult]]:
    """By stage: the killed job, the result of an uninterrupted training, and that of the killed one."""
    folder = tmp_path_factory.mktemp("kills")
    inputs = {"turns.jsonl": "\n".join(json.dumps(asdict(example)) for example in examples),
              "scenes.json": ScenarioSampler().as_json()}

    def begin(stage: str, name: str) -> tuple[Job, str]:
        work = folder / f"{stage}-{name}"
        job = Job(stage, "tiny", SETTINGS[stage], str(work / "turns.jsonl"), str(student_folder),
                  str(work / "scenes.json"), 3, str(work), str(folder / f"{name}-engineers"))
        return job, str(job.begin(inputs))

    jobs = {(stage, name): begin(stage, name) for stage in MOMENTS for name in ("uninterrupted", "killed")}
    plan = [[jobs[stage, "uninterrupted"][1], None] for stage in MOMENTS] + [
        [jobs[stage, "killed"][1], moment] for stage, moments in MOMENTS.items() for moment in [*moments, None]]
    (folder / "plan.json").write_text(json.dumps(plan))
    process = subprocess.run([sys.executable, "-m", "tests.engineer.training.toy_killed_trainings",
                          str(folder / "plan.json")],
                         cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-3000:]
    assert json.loads(process.stdout) == [0 if moment is None else -9 for _, moment in plan], process.stderr[-3000:]
    return {stage: (jobs[stage, "killed"][0],
                    *(TrainingResult.read(Path(jobs[stage, name][0].work)) for name in ("uninterrupted", "killed")))
            for stage in MOMENTS}


@pytest.mark.parametrize("stage", MOMENTS)
def test_a_killed_training_ends_like_an_uninterrupted_one(results, stage):
    job, uninterrupted, killed = results[stage]
    assert killed.checkpoint == uninterrupted.checkpoint
    assert repeatable(killed.points) == repeatable(uninterrupted.points)
    assert steps_and_metrics(killed.points) == steps_and_metrics(uninterrupted.points)
    for name in ("untrained", "n_turns", "settings"):
        assert getattr(killed, name) == getattr(uninterrupted, name)
    assert killed.tokens_per_s > 0 and killed.peak_memory_gib > 0
    assert killed.seconds > uninterrupted.seconds, "all attempts count"
    assert not [path for path in Path(job.work).rglob("*.growing") if "finished" not in path.name]


def test_the_selected_step_is_the_same(results):
    job, uninterrupted, _ = results["grpo"]
    folders = [Path(job.checkpoints).with_name(f"{name}-engineers") for name in ("uninterrupted", "killed")]
    steps = [read_checkpoint(folder / uninterrupted.checkpoint).meta["chosen_step"] for folder in folders]
    assert steps[0] == steps[1] > 0


def test_checks_pass_for_a_killed_grpo_training_as_for_an_uninterrupted_one(results, tmp_path):
    """Checks the stored rows. Toy models truncate their calls, so `calls_stay_calls` fails for both."""
    job, *outcomes = results["grpo"]
    passed = [_passed(Warehouse(path=str(tmp_path / f"{k}.duckdb"), wait_s=5), job, result)
              for k, result in enumerate(outcomes)]
    assert passed[0] == passed[1]
    assert {"practice_began_at_the_imitator", "numbers_are_finite"} <= passed[1]


def _passed(warehouse: Warehouse, job: Job, result: TrainingResult) -> set[str]:
    """Names of the GRPO checks that pass once this training is stored."""
    row = {"checkpoint": result.checkpoint, "stage": job.stage, "profile": job.profile, "parent": result.untrained,
           "training_seed": job.seed, "n_turns": result.n_turns, "n_parameters": result.n_parameters,
           "settings": json.dumps(result.settings), "env_version": ENV_VERSION, "prompt_version": PROMPT_VERSION,
           "scenes_version": "x", "device": "cpu", "seconds": result.seconds, "path": result.checkpoint,
           "made_at": datetime(2026, 11, 29, tzinfo=UTC)}
    with warehouse.write("engineers") as connection:
        columns = [name for name in ENGINEERS.column_names if not name.startswith("promot")]
        _keep(connection, job, pd.DataFrame([row]).reindex(columns=columns), result)
    keys = {next(iter(check.check_keys)): check for check in engineer_checks}
    return {key.name for key, check in keys.items()
            if key.asset_key.to_user_string() == "grpo_engineer" and check(warehouse).passed}
