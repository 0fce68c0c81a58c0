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
from f1_pipelines.engineer.training.resuming import remove_torn_checkpoints
from f1_pipelines.engineer.training.sft import last_checkpoint, train_sft
from f1_pipelines.engineer.training.tiny_model import fresh_model
from tests.engineer.conftest import TOY, repeatable, steps_and_metrics


def weights_of(model) -> torch.Tensor:
    return torch.cat([weights.detach().ravel() for weights in model.parameters()])


def test_sft_learns_and_reports(toy, examples, toy_profile, tmp_path):
    lines, steps = [], []
    reporter = Reporter(lines.append, lambda step, numbers: steps.append((step, numbers)))
    curve = train_sft(toy.model, toy.rendering, examples, toy_profile, 0, tmp_path, reporter=reporter)
    losses = curve.values("loss")
    assert losses[-1] < 0.6 * losses[0]
    assert "s left" in lines[-1]
    assert steps[0][1]["loss"] == losses[0]


def test_a_killed_sft_resumes_with_the_same_result(toy_tokenizer, toy, examples, toy_profile, tmp_path,
                                                               monkeypatch):
    monkeypatch.setattr(sft, "SAVED_EVERY", 5)
    straight = fresh_model(toy_tokenizer, TOY, 0)
    whole = train_sft(straight, toy.rendering, examples, toy_profile, 0, tmp_path / "a")

    class Killed(Exception):
        pass

    def kill(step, numbers):
        if step >= 10:
            raise Killed

    with pytest.raises(Killed):
        train_sft(toy.model, toy.rendering, examples, toy_profile, 0, tmp_path / "b", reporter=Reporter(metrics=kill))
    assert last_checkpoint(tmp_path / "b")
    again = fresh_model(toy_tokenizer, TOY, 0)
    rest = train_sft(again, toy.rendering, examples, toy_profile, 0, tmp_path / "b")
    assert torch.equal(weights_of(again), weights_of(straight))
    assert repeatable(rest.points) == repeatable(whole.points), "what was logged before is not lost"
    assert steps_and_metrics(rest.points) == steps_and_metrics(whole.points), "speeds included"


def whole_checkpoint(folder: Path, step: int, processes: int = 1) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step, "max_steps": 40}))
    for name in ("optimizer.pt", *(f"rng_state_{k}.pth" for k in range(processes))):
        torch.save({}, path / name)
    return path


@pytest.mark.parametrize(("name", "share"), [
    ("trainer_state.json", 0.5), ("trainer_state.json", 0.0), ("optimizer.pt", 0.5), ("rng_state_1.pth", 0.0),
    ("trainer_state.json", None), ("optimizer.pt", None), ("rng_state_0.pth", None)])
def test_a_checkpoint_that_was_half_written_is_passed_over_and_removed(tmp_path, name, share):
    older, newer = whole_checkpoint(tmp_path, 10, 2), whole_checkpoint(tmp_path, 20, 2)
    assert last_checkpoint(tmp_path, 2) == str(newer)
    if share is None:
        (newer / name).unlink()
    else:
        os.truncate(newer / name, int(share * (newer / name).stat().st_size))
    assert last_checkpoint(tmp_path, 2) == str(older)
    remove_torn_checkpoints(tmp_path, 2)
    assert list(tmp_path.iterdir()) == [older]


def test_the_last_step_is_none_to_resume(tmp_path):
    whole_checkpoint(tmp_path, 40)
    assert last_checkpoint(tmp_path) is None, "the trainer would make another one after it"


def test_a_training_that_learns_nothing_fails(toy, examples, toy_profile, tmp_path):
    lazy = replace(toy_profile, sft=replace(toy_profile.sft, learning_rate=1e-9, epochs=8.0))
    with pytest.raises(TrainingFailed, match="nothing was learnt"):
        train_sft(toy.model, toy.rendering, examples, lazy, 0, tmp_path)


def test_numbers_that_are_not_finite_stop_it(toy, examples, toy_profile, tmp_path):
    with torch.no_grad():
        next(toy.model.parameters()).fill_(float("nan"))
    with pytest.raises(TrainingFailed, match="is nan; lower the learning rate"):
        train_sft(toy.model, toy.rendering, examples, toy_profile, 0, tmp_path)


@pytest.mark.parametrize(("bf16", "computed"), [(False, torch.float32), (True, torch.bfloat16)])
def test_the_configured_precision_is_used_on_the_cpu_too(toy, examples, toy_profile, student_folder, tmp_path,
                                                         monkeypatch, bf16, computed):
    monkeypatch.setattr(KlProbes, "COUNT", 5)
    profile = replace(toy_profile, bf16=bf16, sft=replace(toy_profile.sft, epochs=1.0),
                      grpo=replace(toy_profile.grpo, steps=1))
    sft_types, student = learning_in(toy.model), load_engineer(student_folder)
    train_sft(toy.model, toy.rendering, examples, profile, 0, tmp_path / "sft")
    grpo_types = learning_in(student.model)
    train_grpo(student.model, student.rendering, ScenarioSampler(), profile, 0, tmp_path / "grpo")
    assert sft_types == grpo_types == {computed}
    assert weights_of(toy.model).dtype == torch.float32


def learning_in(model) -> set[torch.dtype]:
    """Filled with the types in which the model computes what it learns from."""
    seen: set[torch.dtype] = set()
    model.model.layers[0].mlp.down_proj.register_forward_hook(
        lambda layer, taken, given: seen.add(given.dtype) if given.requires_grad else None)
    return seen


def test_grpo_starts_at_the_sft_policy_and_moves(student_folder, toy_profile, tmp_path):
    engineer = load_engineer(student_folder)
    before = weights_of(engineer.model).clone()
    curve = train_grpo(engineer.model, engineer.rendering, ScenarioSampler(), toy_profile, 0, tmp_path)
    assert curve.values("kl_to_sft")[0] == 0.0
    assert len(curve.values("score")) == toy_profile.grpo.steps
    assert all(0.0 <= score <= 1.0 for score in curve.values("score"))
    assert not torch.equal(weights_of(engineer.model), before)


def test_a_killed_grpo_resumes_with_the_same_result(student_folder, toy_profile, tmp_path, monkeypatch):
    monkeypatch.setattr(grpo, "SAVED_EVERY", 1)
    straight, stopped = (load_engineer(student_folder) for _ in range(2))
    whole = train_grpo(straight.model, straight.rendering, ScenarioSampler(), toy_profile, 3, tmp_path / "a",
                       evaluate=lambda step, engineer: 0.25)

    class Killed(Exception):
        pass

    def kill(step, engineer):
        if step == 2:
            raise Killed
        return 0.25

    with pytest.raises(Killed):
        train_grpo(stopped.model, stopped.rendering, ScenarioSampler(), toy_profile, 3, tmp_path / "b", evaluate=kill)
    assert last_checkpoint(tmp_path / "b").endswith("checkpoint-1")
    heard_steps, curves = [], []
    for _ in range(2):  # the second finds it over
        model = load_engineer(student_folder).model
        curves.append(train_grpo(model, straight.rendering, ScenarioSampler(), toy_profile, 3, tmp_path / "b",
                                 reporter=Reporter(
            metrics=lambda step, metrics: heard_steps.append(step)), evaluate=lambda step, engineer: 0.25))
        assert torch.equal(weights_of(model), weights_of(straight.model))
        assert repeatable(curves[-1].points) == repeatable(whole.points), "what was logged before is not lost"
        assert steps_and_metrics(curves[-1].points) == steps_and_metrics(whole.points), "speeds included"
    assert whole.values("kl_to_sft")[0] == 0.0 and len(whole.values("selection_score")) == 2
    assert heard_steps == [1, 2, 2], "who listens hears of the steps before the kill, too"


def test_grpo_without_different_completions_fails(student_folder, toy_profile, tmp_path):
    frozen = replace(toy_profile, grpo=replace(toy_profile.grpo, temperature=1e-5))
    engineer = load_engineer(student_folder)
    with pytest.raises(TrainingFailed, match="all completions were equal"):
        train_grpo(engineer.model, engineer.rendering, ScenarioSampler(), frozen, 0, tmp_path)


@pytest.fixture
def toy_tiny(monkeypatch, toy_profile):
    monkeypatch.setitem(PROFILES, "tiny", toy_profile)
    monkeypatch.setattr(stages, "SELECTION_RACES", 1)


def _job(tmp_path: Path, stage: str, turns: Path, **more: object) -> Job:
    (tmp_path / "scenes.json").write_text(ScenarioSampler().as_json())
    return Job(stage, "tiny", {}, str(turns), seed=0, sampler=str(tmp_path / "scenes.json"),
               work=str(tmp_path / stage), checkpoints=str(tmp_path / "engineers"), **{"parent": "", **more})


def test_jobs_end_in_checkpoints_with_their_lineage(toy_tiny, examples, tmp_path):
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


def test_logits_of_completions_alone_give_the_same_loss(toy, examples, toy_profile, tmp_path):
    """Left-padded and cut short against the model's own loss over whole, right-padded sequences."""
    rows = [toy.rendering.example(example.prompt, example.completion) for example in examples[:6]]
    batch = left_padded(toy.rendering.tokenizer.pad_token_id, rows)
    trainer = CompletionTrainer(
        model=toy.model, args=SFTConfig(str(tmp_path), use_cpu=True, bf16=False, max_length=None, report_to="none",
                                        **sft.activation_checkpointing(False)),
        train_dataset=Dataset.from_list(rows), processing_class=toy.rendering.tokenizer)
    ours = trainer.compute_loss(toy.model, batch)
    single = [toy.model(input_ids=torch.tensor([row["input_ids"]]), labels=torch.tensor([row["labels"]])).loss
              for row in rows]
    lengths = torch.tensor([sum(label != -100 for label in row["labels"]) for row in rows])
    theirs = (torch.stack(single) * lengths).sum() / lengths.sum()
    assert torch.isclose(ours, theirs, rtol=1e-4)
    assert len(set(map(len, (row["input_ids"] for row in rows)))) > 1, "of different lengths"
