"""The work folder of a training: files to resume from, the best checkpoint, usage; and running out of memory."""
import json
from dataclasses import replace

import pytest
import torch

from f1_pipelines.engineer.profiles import PROFILES
from f1_pipelines.engineer.progress import OutOfMemory, Reporter, explain_out_of_memory
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.training import job as training
from f1_pipelines.engineer.training import stages
from f1_pipelines.engineer.training.checkpoint_selection import BestCheckpoint
from f1_pipelines.engineer.training.job import Job, TrainingResult
from f1_pipelines.engineer.training.resuming import Usage

INPUTS = {"turns.jsonl": "a\n", "scenes.json": "{}"}


@pytest.fixture
def job(tmp_path):
    return Job("sft", "tiny", {}, str(tmp_path / "work" / "turns.jsonl"), "", str(tmp_path / "work" / "scenes.json"), 0,
               str(tmp_path / "work"), str(tmp_path / "engineers"))


@pytest.fixture
def work(job, tmp_path):
    """The work folder of a killed run."""
    job.begin(INPUTS)
    (tmp_path / "work" / "steps").mkdir()
    (tmp_path / "work" / "round-1.jsonl").write_text("")
    return tmp_path / "work"


def test_the_same_job_keeps_its_work_folder(job, work):
    file = job.begin(INPUTS)
    assert Job(**json.loads(file.read_text())) == job
    assert (work / "steps").is_dir() and (work / "round-1.jsonl").is_file()


@pytest.mark.parametrize("changes", [{"settings": {"epochs": 3.0}}, {"precision": "bfloat16"}, {"seed": 1}])
def test_a_changed_job_empties_its_work_folder(job, work, changes):
    replace(job, **changes).begin(INPUTS)
    assert not (work / "steps").exists() and not (work / "round-1.jsonl").exists()


@pytest.mark.parametrize("name", INPUTS)
def test_changed_inputs_empty_the_work_folder_and_are_all_written(job, work, name):
    job.begin(INPUTS | {name: "other"})
    assert not (work / "steps").exists()
    assert {file: (work / file).read_text() for file in INPUTS} == INPUTS | {name: "other"}


def test_changed_defaults_of_the_profile_empty_the_work_folder(job, work, monkeypatch):
    changed = replace(PROFILES["tiny"].sft, learning_rate=1e-9)
    monkeypatch.setitem(PROFILES, "tiny", replace(PROFILES["tiny"], sft=changed))
    job.begin(INPUTS)
    assert not (work / "steps").exists()


def test_a_job_whose_result_is_stored_starts_over(job, work):
    job.end()
    job.begin(INPUTS)
    assert not (work / "steps").exists()


def test_running_out_of_memory_is_explained_in_one_sentence():
    with (pytest.raises(OutOfMemory, match=r"sft of profile tiny ran out of memory on cpu \(.*DefaultCPUAllocator.*"
                        r"\); set a smaller batch, stop other processes there, or use a smaller profile"),
          explain_out_of_memory("sft of profile tiny", "cpu", "set a smaller batch")):
        torch.empty(2**56, dtype=torch.uint8)
    with (pytest.raises(OutOfMemory, match="on cuda .CUDA out of memory. Tried to allocate 2 GiB."),
          explain_out_of_memory("x", "cuda", "y")):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore")
    with pytest.raises(OutOfMemory, match="MemoryError"), explain_out_of_memory("x", "cpu", "y"):
        raise MemoryError
    with pytest.raises(RuntimeError, match="^mat1 and mat2"), explain_out_of_memory("x", "cpu", "y"):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_a_job_that_runs_out_of_memory_names_a_remedy(job, monkeypatch, toy_profile, examples):
    def exhaust_memory(*_, **__):
        torch.empty(2**56, dtype=torch.uint8)

    monkeypatch.setitem(PROFILES, "tiny", toy_profile)
    monkeypatch.setattr(stages, "train_sft", exhaust_memory)
    job.begin({"turns.jsonl": "\n".join(json.dumps({"prompt": example.prompt, "completion": example.completion})
                                        for example in examples), "scenes.json": ScenarioSampler().as_json()})
    with pytest.raises(OutOfMemory, match="sft of profile tiny ran out of memory on cpu .*smaller batch in its set"):
        training.run(job, Reporter())


def test_a_round_adds_its_turns_and_a_rerun_changes_nothing(job, monkeypatch, toy_profile, examples, tmp_path):
    monkeypatch.setitem(PROFILES, "tiny", toy_profile)
    inputs = {"turns.jsonl": "\n".join(json.dumps({"prompt": example.prompt, "completion": example.completion})
                                       for example in examples), "scenes.json": ScenarioSampler().as_json()}
    job.begin(inputs)
    first = training.run(job, Reporter())
    laps = (tmp_path / "work" / "round-1.jsonl").read_text().splitlines()
    assert first.n_turns == len(examples) + len(laps)
    assert first.tokens_per_s > 0
    job.begin(inputs)
    assert TrainingResult.read(tmp_path / "work").checkpoint == first.checkpoint
    rerun = training.run(job, Reporter())
    assert rerun.checkpoint == first.checkpoint
    assert [point for point in rerun.points if point[1] == "loss"] == [
        point for point in first.points if point[1] == "loss"]


def test_the_best_step_is_stored_and_restored(toy, tmp_path, monkeypatch):
    scores = iter([0.9, 0.4, 0.6, 0.5])
    monkeypatch.setattr("f1_pipelines.engineer.training.checkpoint_selection.batched_rollout", lambda *_: [])
    monkeypatch.setattr("f1_pipelines.engineer.training.checkpoint_selection.np.mean", lambda _: next(scores))
    best = BestCheckpoint(toy.model, ScenarioSampler(), 1, tmp_path / "best.safetensors", Reporter())
    weights = next(toy.model.parameters())
    for step in (0, 10, 20, 30):
        with torch.no_grad():
            weights.fill_(float(step))
        best.evaluate(step, toy)
    assert [path.name for path in tmp_path.iterdir()] == ["best.safetensors"]
    resumed = BestCheckpoint(toy.model, ScenarioSampler(), 1, tmp_path / "best.safetensors", Reporter())
    assert resumed.step == best.step == 20, "step 0 is never stored"
    resumed.restore()
    assert float(weights.detach().mean()) == 20.0


@pytest.mark.parametrize(("resumed_at", "best"), [(20, 20), (10, 10), (5, 0)])
def test_a_best_step_that_is_trained_again_is_deleted(toy, tmp_path, monkeypatch, resumed_at, best):
    """Killed between the evaluation and the trainer's checkpoint of step 20, which a GPU would not repeat exactly."""
    scores = iter([0.4, 0.6])
    monkeypatch.setattr("f1_pipelines.engineer.training.checkpoint_selection.batched_rollout", lambda *_: [])
    monkeypatch.setattr("f1_pipelines.engineer.training.checkpoint_selection.np.mean", lambda _: next(scores))
    killed, weights = BestCheckpoint(toy.model, ScenarioSampler(), 1, tmp_path / "best.safetensors", Reporter()), next(
        toy.model.parameters())
    for step in (10, 20):
        with torch.no_grad():
            weights.fill_(float(step))
        killed.evaluate(step, toy)
    resumed = BestCheckpoint(toy.model, ScenarioSampler(), 1, tmp_path / "best.safetensors", Reporter(), resumed_at)
    assert resumed.step == best
    resumed.restore()
    assert float(weights.detach().mean()) == (best or 20.0), "without a best step the weights do not change"


def test_usage_counts_all_attempts(tmp_path):
    (tmp_path / "usage.json").write_text(json.dumps({"seconds": 100.0, "peak_bytes": 2**60}))
    reports = []
    reporter = Usage(tmp_path, "cpu").recorded_by(Reporter(reports.append, lambda step, metrics: reports.append(step)))
    reporter.info("a")
    reporter.metrics(5, {})
    resumed = Usage(tmp_path, "cpu")
    assert reports == ["a", 5]
    assert 100.0 < resumed.seconds < 160.0 and resumed.peak_bytes == 2**60
