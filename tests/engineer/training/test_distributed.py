"""Training with several processes, each part alone; tests/assets/test_training_launcher.py trains with two."""
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from trl import SFTConfig

from f1_pipelines.engineer.inference.checkpoints import load_engineer
from f1_pipelines.engineer.profiles import PROFILES
from f1_pipelines.engineer.progress import SILENT
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.training import job
from f1_pipelines.engineer.training.distributed import WorldSizeError, accelerator_on, on_one_device, own_device
from f1_pipelines.engineer.training.grpo import RolloutSampler, _settings_of_process
from f1_pipelines.engineer.training.job import Job
from f1_pipelines.engineer.training.resuming import last_checkpoint
from f1_pipelines.engineer.training.sft import activation_checkpointing


def test_processes_share_the_races_and_states_of_a_step(toy_profile, student_folder):
    engineer, keys = load_engineer(student_folder), []

    class RecordingSampler(ScenarioSampler):
        def scenario(self, family, seed):
            keys.append((family, seed))
            return super().scenario(family, seed)

    def sample(process_slice: slice, processes: int) -> tuple[list, int]:
        keys.clear()
        settings = _settings_of_process(replace(toy_profile.grpo, races=3), processes)
        trainer = SimpleNamespace(model=engineer.model, state=SimpleNamespace(global_step=0),
                                  accelerator=SimpleNamespace(unwrap_model=lambda model: model))
        batch = RolloutSampler(engineer.rendering, RecordingSampler(), settings, 0, 12, 8, process_slice)([], trainer)
        return list(keys), len(batch["advantage"])

    races, n_samples = sample(slice(None), 1)
    first, second = sample(slice(0, None, 2), 2), sample(slice(1, None, 2), 2)
    assert sorted(first[0] + second[0]) == sorted(races) and len(set(races)) == 3
    assert first[1] + second[1] == n_samples == toy_profile.grpo.states * toy_profile.grpo.num_generations


@pytest.mark.parametrize("processes", [3, 4])
def test_a_step_that_cannot_be_shared_is_refused(toy_profile, processes):
    with pytest.raises(WorldSizeError,
                       match=f"4 states and 2 races a step can't be shared by {processes} processes; set"):
        _settings_of_process(toy_profile.grpo, processes)
    _settings_of_process(toy_profile.grpo, 2)


def test_each_process_has_its_own_gpu():
    third, single = (SimpleNamespace(local_process_index=k) for k in (2, 0))
    assert (own_device(third, "cuda"), own_device(third, "cpu")) == ("cuda:2", "cpu")
    assert [own_device(single, device) for device in ("cuda", "cuda:1", "cpu")] == ["cuda:0", "cuda:1", "cpu"]


def test_a_single_process_trains_on_its_gpu(tmp_path, monkeypatch):
    """`on_one_device` sets private fields of transformers: fails if they are renamed or no longer have this effect."""
    devices_set = []
    monkeypatch.setattr(torch.cuda, "set_device", devices_set.append)
    settings = SFTConfig(str(tmp_path), use_cpu=True, bf16=False, report_to="none", **activation_checkpointing(False))
    on_one_device(settings, "cpu")
    assert settings.device == torch.device("cpu") and not devices_set
    for device, expected in (("cuda:1", torch.device("cuda:1")), ("cuda", torch.device("cuda:0"))):
        settings._n_gpu = 4  # as transformers counts on a machine with four GPUs
        on_one_device(settings, device)
        assert (settings.device, settings.n_gpu, devices_set[-1]) == (expected, 1, expected)


def test_a_job_for_two_processes_is_refused_by_one(toy_profile, tmp_path, monkeypatch):
    monkeypatch.setitem(PROFILES, "tiny", toy_profile)
    assert accelerator_on("cpu").num_processes == 1
    with pytest.raises(WorldSizeError, match="the job needs 2 processes, but 1 were started"):
        job.run(Job("sft", "tiny", {}, "", "", "", 0, str(tmp_path), "", processes=2), SILENT)


def test_a_checkpoint_is_complete_with_the_random_states_of_all_processes(tmp_path):
    step = tmp_path / "checkpoint-10"
    step.mkdir()
    (step / "trainer_state.json").write_text('{"global_step": 10, "max_steps": 20}')
    for name in ("optimizer.pt", "rng_state_0.pth"):
        torch.save({}, step / name)
    assert last_checkpoint(tmp_path, 2) is None
    torch.save({}, step / "rng_state_1.pth")
    assert last_checkpoint(tmp_path, 2) == str(step)


def test_the_first_failure_is_stored(tmp_path):
    for error in (ValueError("the cause"), RuntimeError("Connection closed by peer")):
        job._store_failure(tmp_path / "failed.txt", error)
    assert (tmp_path / "failed.txt").read_text() == "ValueError: the cause"


def test_a_lost_process_is_explained(tmp_path):
    job._store_failure(tmp_path / "failed.txt", RuntimeError("pair.cc:537 Read error: Connection reset by peer"))
    assert (tmp_path / "failed.txt").read_text().startswith("another process of the training ended unexpectedly")
