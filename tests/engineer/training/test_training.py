"""SFT and GRPO at toy size, with TRL's own trainers."""
import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from trl import SFTConfig

from f1_pipelines.engineer.inference.checkpoints import load_engineer, read_checkpoint
from f1_pipelines.engineer.profiles import PROFILES
from f1_pipelines.engineer.progress import Reporter, TrainingFailed
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.training import grpo, job, sft, stages
from f1_pipelines.engineer.training.completions import CompletionTrainer, left_padded
from f1_pipelines.engineer.training.grpo import train_grpo
from f1_pipelines.engineer.training.job import Job, TrainingResult
from f1_pipelines.engineer.training.kl_probes import KlProbes
from f1_pipelines.engineer.training.resuming import last_checkpoint, remove_incomplete_checkpoints
from f1_pipelines.engineer.training.sft import train_sft
from f1_pipelines.engineer.training.tiny_model import fresh_model
from tests.engineer.conftest import TOY, repeatable, steps_and_metrics


def weights_of(model) -> torch.Tensor:
    return torch.cat([weights.detach().ravel() for weights in model.parameters()])


def test_sft_learns_and_reports(toy, examples, toy_profile, tmp_path):
    lines, steps = [], []
    reporter = Reporter(lines.append, lambda step, metrics: steps.append((step, metrics)))
    history = train_sft(toy.model, toy.rendering, examples, toy_profile, 0, tmp_path, reporter=reporter)
    losses = history.values("loss")
    assert losses[-1] < 0.6 * losses[0]
    assert "s left" in lines[-1]
    assert steps[0][1]["loss"] == losses[0]


def test_a_killed_sft_resumes_with_the_same_result(toy_tokenizer, toy, examples, toy_profile, tmp_path, monkeypatch):
    monkeypatch.setattr(sft, "SAVED_EVERY", 5)
    uninterrupted = fresh_model(toy_tokenizer, TOY, 0)
    expected = train_sft(uninterrupted, toy.rendering, examples, toy_profile, 0, tmp_path / "a")

    class Killed(Exception):
        pass

    def kill(step, metrics):
        if step >= 10:
            raise Killed

    with pytest.raises(Killed):
        train_sft(toy.model, toy.rendering, examples, toy_profile, 0, tmp_path / "b", reporter=Reporter(metrics=kill))
    assert last_checkpoint(tmp_path / "b")
    resumed = fresh_model(toy_tokenizer, TOY, 0)
    history = train_sft(resumed, toy.rendering, examples, toy_profile, 0, tmp_path / "b")
    assert torch.equal(weights_of(resumed), weights_of(uninterrupted))
    assert repeatable(history.points) == repeatable(expected.points), "metrics from before the kill are included"
    assert steps_and_metrics(history.points) == steps_and_metrics(expected.points), "speeds are included"


def complete_checkpoint(folder: Path, step: int, processes: int = 1) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step, "max_steps": 40}))
    for name in ("optimizer.pt", *(f"rng_state_{k}.pth" for k in range(processes))):
        torch.save({}, path / name)
    return path


@pytest.mark.parametrize(("name", "share"), [
    ("trainer_state.json", 0.5), ("trainer_state.json", 0.0), ("optimizer.pt", 0.5), ("rng_state_1.pth", 0.0),
    ("trainer_state.json", None), ("optimizer.pt", None), ("rng_state_0.pth", None)])
def test_an_incomplete_checkpoint_is_ignored_and_removed(tmp_path, name, share):
    older, newer = complete_checkpoint(tmp_path, 10, 2), complete_checkpoint(tmp_path, 20, 2)
    assert last_checkpoint(tmp_path, 2) == str(newer)
    if share is None:
        (newer / name).unlink()
    else:
        os.truncate(newer / name, int(share * (newer / name).stat().st_size))
    assert last_checkpoint(tmp_path, 2) == str(older)
    remove_incomplete_checkpoints(tmp_path, 2)
    assert list(tmp_path.iterdir()) == [older]


def test_training_does_not_resume_at_the_last_step(tmp_path):
    complete_checkpoint(tmp_path, 40)
    assert last_checkpoint(tmp_path) is None, "the trainer would train another step"


def test_a_training_that_learns_nothing_fails(toy, examples, toy_profile, tmp_path):
    frozen = replace(toy_profile, sft=replace(toy_profile.sft, learning_rate=1e-9, epochs=8.0))
    with pytest.raises(TrainingFailed, match="nothing was learnt"):
        train_sft(toy.model, toy.rendering, examples, frozen, 0, tmp_path)


def test_a_loss_that_is_not_finite_fails_the_training(toy, examples, toy_profile, tmp_path):
    with torch.no_grad():
        next(toy.model.parameters()).fill_(float("nan"))
    with pytest.raises(TrainingFailed, match="is nan; lower the learning rate"):
        train_sft(toy.model, toy.rendering, examples, toy_profile, 0, tmp_path)


@pytest.mark.parametrize(("bf16", "dtype"), [(False, torch.float32), (True, torch.bfloat16)])
def test_the_configured_precision_is_used_on_the_cpu_too(toy, examples, toy_profile, student_folder, tmp_path,
                                                         monkeypatch, bf16, dtype):
    monkeypatch.setattr(KlProbes, "COUNT", 5)
    profile = replace(toy_profile, bf16=bf16, sft=replace(toy_profile.sft, epochs=1.0),
                      grpo=replace(toy_profile.grpo, steps=1))
    sft_dtypes, student = training_dtypes(toy.model), load_engineer(student_folder)
    train_sft(toy.model, toy.rendering, examples, profile, 0, tmp_path / "sft")
    grpo_dtypes = training_dtypes(student.model)
    train_grpo(student.model, student.rendering, ScenarioSampler(), profile, 0, tmp_path / "grpo")
    assert sft_dtypes == grpo_dtypes == {dtype}
    assert weights_of(toy.model).dtype == torch.float32


def training_dtypes(model) -> set[torch.dtype]:
    """A set that fills with the types of the model's activations that have gradients."""
    dtypes: set[torch.dtype] = set()
    model.model.layers[0].mlp.down_proj.register_forward_hook(
        lambda layer, inputs, output: dtypes.add(output.dtype) if output.requires_grad else None)
    return dtypes


def test_grpo_starts_at_the_sft_policy_and_changes_it(student_folder, toy_profile, tmp_path):
    engineer = load_engineer(student_folder)
    before = weights_of(engineer.model).clone()
    history = train_grpo(engineer.model, engineer.rendering, ScenarioSampler(), toy_profile, 0, tmp_path)
    assert history.values("kl_to_sft")[0] == 0.0
    assert len(history.values("score")) == toy_profile.grpo.steps
    assert all(0.0 <= score <= 1.0 for score in history.values("score"))
    assert not torch.equal(weights_of(engineer.model), before)


def test_a_killed_grpo_resumes_with_the_same_result(student_folder, toy_profile, tmp_path, monkeypatch):
    monkeypatch.setattr(grpo, "SAVED_EVERY", 1)
    uninterrupted, killed = (load_engineer(student_folder) for _ in range(2))
    expected = train_grpo(uninterrupted.model, uninterrupted.rendering, ScenarioSampler(), toy_profile, 3,
                          tmp_path / "a", evaluate=lambda step, engineer: 0.25)

    class Killed(Exception):
        pass

    def kill(step, engineer):
        if step == 2:
            raise Killed
        return 0.25

    with pytest.raises(Killed):
        train_grpo(killed.model, killed.rendering, ScenarioSampler(), toy_profile, 3, tmp_path / "b", evaluate=kill)
    assert last_checkpoint(tmp_path / "b").endswith("checkpoint-1")
    reported_steps = []
    reporter = Reporter(metrics=lambda step, metrics: reported_steps.append(step))
    for _ in range(2):  # the second run finds a finished training
        model = load_engineer(student_folder).model
        history = train_grpo(model, uninterrupted.rendering, ScenarioSampler(), toy_profile, 3, tmp_path / "b",
                             reporter=reporter, evaluate=lambda step, engineer: 0.25)
        assert torch.equal(weights_of(model), weights_of(uninterrupted.model))
        assert repeatable(history.points) == repeatable(expected.points), "metrics from before the kill are included"
        assert steps_and_metrics(history.points) == steps_and_metrics(expected.points), "speeds are included"
    assert expected.values("kl_to_sft")[0] == 0.0 and len(expected.values("selection_score")) == 2
    assert reported_steps == [1, 2, 2], "steps before the kill are reported again"


def test_grpo_fails_if_all_completions_are_equal(student_folder, toy_profile, tmp_path):
    greedy = replace(toy_profile, grpo=replace(toy_profile.grpo, temperature=1e-5))
    engineer = load_engineer(student_folder)
    with pytest.raises(TrainingFailed, match="all completions were equal"):
        train_grpo(engineer.model, engineer.rendering, ScenarioSampler(), greedy, 0, tmp_path)


@pytest.fixture
def toy_tiny(monkeypatch, toy_profile):
    monkeypatch.setitem(PROFILES, "tiny", toy_profile)
    monkeypatch.setattr(stages, "SELECTION_RACES", 1)


def _job(tmp_path: Path, stage: str, turns: Path, **fields: object) -> Job:
    (tmp_path / "scenes.json").write_text(ScenarioSampler().as_json())
    return Job(stage, "tiny", {}, str(turns), seed=0, sampler=str(tmp_path / "scenes.json"),
               work=str(tmp_path / stage), checkpoints=str(tmp_path / "engineers"), **{"parent": "", **fields})


def test_jobs_store_checkpoints_with_their_lineage(toy_tiny, examples, tmp_path):
    turns = tmp_path / "turns.jsonl"
    turns.write_text("\n".join(json.dumps(asdict(example)) for example in examples))
    first = job.run(replace(_job(tmp_path, "sft", turns), settings={"max_turns": 30, "rounds": 0}), Reporter())
    assert first.n_turns == 30 < len(examples)
    engineers = tmp_path / "engineers"
    assert read_checkpoint(engineers / first.checkpoint).meta["parent"] == first.untrained
    assert read_checkpoint(engineers / first.untrained).meta["stage"] == "untrained"
    assert TrainingResult.read(tmp_path / "sft").checkpoint == first.checkpoint
    second = job.run(_job(tmp_path, "grpo", turns, parent=str(engineers / first.checkpoint)), Reporter())
    assert read_checkpoint(engineers / second.checkpoint).meta["parent"] == first.checkpoint
    assert [step for step, name, _ in second.points if name == "selection_score"] == [0]


def test_the_loss_from_completion_logits_is_the_models_own(toy, examples, toy_profile, tmp_path):
    """Compares the left-padded batch with the model's own loss of each single sequence."""
    rows = [toy.rendering.example(example.prompt, example.completion) for example in examples[:6]]
    batch = left_padded(toy.rendering.tokenizer.pad_token_id, rows)
    trainer = CompletionTrainer(
        model=toy.model, args=SFTConfig(str(tmp_path), use_cpu=True, bf16=False, max_length=None, report_to="none",
                                        **sft.activation_checkpointing(False)),
        train_dataset=Dataset.from_list(rows), processing_class=toy.rendering.tokenizer)
    loss = trainer.compute_loss(toy.model, batch)
    losses = [toy.model(input_ids=torch.tensor([row["input_ids"]]), labels=torch.tensor([row["labels"]])).loss
              for row in rows]
    lengths = torch.tensor([sum(label != -100 for label in row["labels"]) for row in rows])
    expected = (torch.stack(losses) * lengths).sum() / lengths.sum()
    assert torch.isclose(loss, expected, rtol=1e-4)
    assert len(set(map(len, (row["input_ids"] for row in rows)))) > 1, "the lengths differ"
