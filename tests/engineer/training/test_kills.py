"""Trainings that are killed with SIGKILL again and again end as one that was left alone: checkpoint, curve, checks."""
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
from tests.engineer.training import toy_kills

pytestmark = [pytest.mark.xdist_group("kills"), pytest.mark.timeout(300)]
# Each attempt goes on from what the one before left.
MOMENTS = {
    "sft": ["logged steps-5", "weights", "driven", "logged steps-1-10", "stored"],
    "grpo": ["evaluated 1", "torn 2", "stored"],
}
SETTINGS = {"sft": toy_kills.SFT, "grpo": toy_kills.GRPO}


@pytest.fixture(scope="module")
def ended(tmp_path_factory, examples, student_folder) -> dict[str, tuple[Job, TrainingResult, TrainingResult]]:
    """By stage: the job, what came of it when it was left alone, and when it was killed."""
    folder = tmp_path_factory.mktemp("kills")
    inputs = {"turns.jsonl": "\n".join(json.dumps(asdict(example)) for example in examples),
              "scenes.json": ScenarioSampler().as_json()}

    def begin(stage: str, name: str) -> tuple[Job, str]:
        work = folder / f"{stage}-{name}"
        job = Job(stage, "tiny", SETTINGS[stage], str(work / "turns.jsonl"), str(student_folder),
                  str(work / "scenes.json"), 3, str(work), str(folder / f"{name}-engineers"))
        return job, str(job.begin(inputs))

    jobs = {(stage, name): begin(stage, name) for stage in MOMENTS for name in ("alone", "killed")}
    plan = [[jobs[stage, "alone"][1], None] for stage in MOMENTS] + [
        [jobs[stage, "killed"][1], moment] for stage, moments in MOMENTS.items() for moment in [*moments, None]]
    (folder / "plan.json").write_text(json.dumps(plan))
    ran = subprocess.run([sys.executable, "-m", "tests.engineer.training.toy_kills", str(folder / "plan.json")],
                         cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert json.loads(ran.stdout) == [0 if moment is None else -9 for _, moment in plan], ran.stderr[-3000:]
    return {stage: (jobs[stage, "killed"][0],
                    *(TrainingResult.read(Path(jobs[stage, name][0].work)) for name in ("alone", "killed")))
            for stage in MOMENTS}


@pytest.mark.parametrize("stage", MOMENTS)
def test_a_killed_training_ends_as_one_that_was_left_alone(ended, stage):
    job, alone, killed = ended[stage]
    assert killed.checkpoint == alone.checkpoint
    assert repeatable(killed.points) == repeatable(alone.points)
    assert steps_and_metrics(killed.points) == steps_and_metrics(alone.points)
    assert (killed.untrained, killed.n_turns, killed.settings) == (alone.untrained, alone.n_turns, alone.settings)
    assert killed.tokens_per_s > 0 and killed.peak_memory_gib > 0
    assert killed.seconds > alone.seconds, "all attempts count"
    assert not [path for path in Path(job.work).rglob("*.growing") if "finished" not in path.name]


def test_the_step_that_is_kept_is_the_same(ended, tmp_path):
    job, alone, killed = ended["grpo"]
    kept = [read_checkpoint(Path(job.checkpoints).with_name(f"{name}-engineers") / alone.checkpoint).meta["chosen_step"]
            for name in ("alone", "killed")]
    assert kept[0] == kept[1] > 0


def test_checks_find_in_a_killed_practice_what_they_find_in_the_other(ended, tmp_path):
    """On the rows as they are stored. Toys cut their calls short, which `calls_stay_calls` finds in both."""
    job, *outcomes = ended["grpo"]
    passed = [_passed(Warehouse(path=str(tmp_path / f"{k}.duckdb"), wait_s=5), job, trained)
              for k, trained in enumerate(outcomes)]
    assert passed[0] == passed[1]
    assert {"practice_began_at_the_imitator", "numbers_are_finite"} <= passed[1]


def _passed(warehouse: Warehouse, job: Job, trained: TrainingResult) -> set[str]:
    """Names of the checks of practice that pass once this training is stored."""
    row = {"checkpoint": trained.checkpoint, "stage": job.stage, "profile": job.profile, "parent": trained.untrained,
           "training_seed": job.seed, "n_turns": trained.n_turns, "n_parameters": trained.n_parameters,
           "settings": json.dumps(trained.settings), "env_version": ENV_VERSION, "prompt_version": PROMPT_VERSION,
           "scenes_version": "x", "device": "cpu", "seconds": trained.seconds, "path": trained.checkpoint,
           "made_at": datetime(2026, 11, 29, tzinfo=UTC)}
    with warehouse.write("engineers") as connection:
        columns = [name for name in ENGINEERS.column_names if not name.startswith("promot")]
        _keep(connection, job, pd.DataFrame([row]).reindex(columns=columns), trained)
    keys = {next(iter(check.check_keys)): check for check in engineer_checks}
    return {key.name for key, check in keys.items()
            if key.asset_key.to_user_string() == "grpo_engineer" and check(warehouse).passed}
