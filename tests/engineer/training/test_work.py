"""The work folder of a training: what a run resumes from, and memory that runs out."""
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
def left(job, tmp_path):
    """What a run that was killed leaves."""
    job.begin(INPUTS)
    (tmp_path / "work" / "steps").mkdir()
    (tmp_path / "work" / "round-1.jsonl").write_text("")
    return tmp_path / "work"


def test_the_same_job_finds_what_it_left(job, left):
    file = job.begin(INPUTS)
    assert Job(**json.loads(file.read_text())) == job
    assert (left / "steps").is_dir() and (left / "round-1.jsonl").is_file()


@pytest.mark.parametrize("changes", [{"settings": {"epochs": 3.0}}, {"precision": "bfloat16"}, {"seed": 1}])
def test_another_job_does_not(job, left, changes):
    replace(job, **changes).begin(INPUTS)
    assert not (left / "steps").exists() and not (left / "round-1.jsonl").exists()


@pytest.mark.parametrize("name", INPUTS)
def test_nor_one_with_other_inputs_and_all_of_them_are_there(job, left, name):
    job.begin(INPUTS | {name: "other"})
    assert not (left / "steps").exists()
    assert {one: (left / one).read_text() for one in INPUTS} == INPUTS | {name: "other"}


def test_nor_one_whose_profile_has_other_defaults(job, left, monkeypatch):
    changed = replace(PROFILES["tiny"].sft, learning_rate=1e-9)
    monkeypatch.setitem(PROFILES, "tiny", replace(PROFILES["tiny"], sft=changed))
    job.begin(INPUTS)
    assert not (left / "steps").exists()


def test_a_training_whose_result_was_kept_begins_anew(job, left):
    job.end()
    job.begin(INPUTS)
    assert not (left / "steps").exists()


def test_memory_that_runs_out_is_one_sentence():
    with (pytest.raises(OutOfMemory, match=r"sft of profile tiny ran out of memory on cpu \(.*DefaultCPUAllocator.*"
                        r"\); set a smaller batch, stop what else runs there, or take a smaller profile"),
          explain_out_of_memory("sft of profile tiny", "cpu", "set a smaller batch")):
        torch.empty(2**56, dtype=torch.uint8)
    with (pytest.raises(OutOfMemory, match="on cuda .CUDA out of memory. Tried to allocate 2 GiB."),
          explain_out_of_memory("x", "cuda", "y")):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore")
    with pytest.raises(OutOfMemory, match="MemoryError"), explain_out_of_memory("x", "cpu", "y"):
        raise MemoryError
    with pytest.raises(RuntimeError, match="^mat1 and mat2"), explain_out_of_memory("x", "cpu", "y"):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_a_job_that_runs_out_of_memory_says_what_to_do(job, monkeypatch, toy_profile, examples):
    def greedy(*_, **__):
        torch.empty(2**56, dtype=torch.uint8)

    monkeypatch.setitem(PROFILES, "tiny", toy_profile)
    monkeypatch.setattr(stages, "train_sft", greedy)
    job.begin({"turns.jsonl": "\n".join(json.dumps({"prompt": one.prompt, "completion": one.completion})
                                        for one in examples), "scenes.json": ScenarioSampler().as_json()})
    with pytest.raises(OutOfMemory, match="sft of profile tiny ran out of memory on cpu .*smaller batch in its set"):
        training.run(job, Reporter())


def test_a_round_joins_what_was_learnt_and_a_rerun_after_the_end_changes_nothing(job, monkeypatch, toy_profile,
                                                                                examples, tmp_path):
    monkeypatch.setitem(PROFILES, "tiny", toy_profile)
    inputs = {"turns.jsonl": "\n".join(json.dumps({"prompt": one.prompt, "completion": one.completion})
                                       for one in examples), "scenes.json": ScenarioSampler().as_json()}
    job.begin(inputs)
    first = training.run(job, Reporter())
    laps = (tmp_path / "work" / "round-1.jsonl").read_text().splitlines()
    assert first.n_turns == len(examples) + len(laps)
    assert first.tokens_per_s > 0
    job.begin(inputs)
    assert TrainingResult.read(tmp_path / "work").checkpoint == first.checkpoint
    again = training.run(job, Reporter())
    assert again.checkpoint == first.checkpoint
    assert [point for point in again.points if point[1] == "loss"] == [
        point for point in first.points if point[1] == "loss"]


def test_the_best_step_is_kept_whole_and_found_again(toy, tmp_path, monkeypatch):
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
    assert resumed.step == best.step == 20, "the start, step 0, is never what is kept"
    resumed.restore()
    assert float(weights.detach().mean()) == 20.0


@pytest.mark.parametrize(("resumed_at", "best"), [(20, 20), (10, 10), (5, 0)])
def test_the_best_of_steps_that_are_made_again_is_dropped(toy, tmp_path, monkeypatch, resumed_at, best):
    """Killed between the examination of step 20 and the trainer's checkpoint of it: on a GPU it comes out otherwise."""
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
    assert float(weights.detach().mean()) == (best or 20.0), "without a best one the weights stay as they are"


def test_usage_counts_all_attempts(tmp_path):
    (tmp_path / "usage.json").write_text(json.dumps({"seconds": 100.0, "peak_bytes": 2**60}))
    heard = []
    reporter = Usage(tmp_path, "cpu").written_by(Reporter(heard.append, lambda step, numbers: heard.append(step)))
    reporter.info("a")
    reporter.metrics(5, {})
    again = Usage(tmp_path, "cpu")
    assert heard == ["a", 5]
    assert 100.0 < again.seconds < 160.0 and again.peak_bytes == 2**60
