"""What engineers cost: races in lockstep against one at a time, the simulator's share of practice, tokens a second and
memory of each profile that fits here.

    python -m benchmarks.engineer_bench [--profiles tiny,smollm2] [--engineer CHECKPOINT_FOLDER]

Speeds are laps called a second of wall time, each race driven by what is called; all in one run, on an idle machine.
"""
from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import measure
from f1_pipelines.engineer.data.demonstrations import expert_demonstrations
from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.progress import Reporter
from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import RaceKey, race_keys
from f1_pipelines.engineer.training.job import Job, TrainingResult, run
from f1_pipelines.engineer.workers import map_races
from f1_pipelines.sim.scoring.reference import reference_of

PROCESSES = 2
READY_S = 75  # after which several processes begin at once
# Of a profile: settings of imitation, of practice (none: not measured), and races one at a time and in lockstep.
PROFILES = {"tiny": ({"epochs": 12.0, "rounds": 0, "warmup_steps": 5}, {"steps": 5}, 40, 480),
            "smollm2": ({"max_turns": 48}, {}, 1, 16)}


def trained(profile: str, folder: str) -> dict[str, float | str]:
    """Imitation and some steps of practice of a profile on a few turns: speed and memory, not skill."""
    place, (settings, practice, *_) = Path(folder), PROFILES[profile]
    turns = [turn for few in expert_demonstrations(ScenarioSampler(), race_keys("train", 4)) for turn in few]
    (place / "scenes.json").write_text(ScenarioSampler().as_json())
    (place / "turns.jsonl").write_text("\n".join(json.dumps(
        {"prompt": turn.prompt, "completion": turn.completion}) for turn in turns))
    job = Job("sft", profile, settings, str(place / "turns.jsonl"), "", str(place / "scenes.json"), 0,
              str(place / "sft"), str(place / "engineers"))
    imitator = run(job, Reporter())
    found = {"checkpoint": imitator.checkpoint, "parameters": imitator.n_parameters,
             "sft_tokens_per_s": imitator.tokens_per_s or 0.0}
    return found | (_practice(job, place, imitator, practice) if practice else {})


def _practice(job: Job, place: Path, imitator: TrainingResult, practice: dict[str, object]) -> dict[str, float]:
    grpo = run(replace(job, stage="grpo", settings=practice, parent=str(place / "engineers" / imitator.checkpoint),
                       work=str(place / "grpo")), Reporter())
    by = {name: [value for _, metric, value in grpo.points if metric == name] for name in ("simulator_s", "step_time")}
    return {"grpo_step_s": float(np.median(by["step_time"])),
            "simulator_share_of_step": float(np.median(by["simulator_s"]) / np.median(by["step_time"]))}


def called(keys: Sequence[RaceKey], path: Path, way: str, bf16: bool, start: float) -> tuple[float, float, int]:
    """Play the races with an engineer; when it began, when it ended and how many laps it called.

    Args:
        keys: The races.
        path: Folder of its checkpoint.
        way: `generate` asks transformers' own `generate` race by race, `alone` ours, `lockstep` all races at once.
        bf16: It computes in bfloat16.
        start: Not before this time.
    """
    import torch

    from f1_pipelines.engineer.inference.checkpoints import load_engineer

    torch.set_num_threads(1)
    engineer = load_engineer(path, bf16=bf16)
    scenarios = [ScenarioSampler().scenario(*key) for key in keys]
    for scenario in scenarios:
        reference_of(scenario)  # kept: to score a race for the first time is not what is compared here
    if way == "generate":
        engineer.model.set_attn_implementation("sdpa")  # transformers' own choice
    call = partial(_generated, engineer) if way == "generate" else engineer.commands
    groups = [scenarios] if way == "lockstep" else [[one] for one in scenarios]
    batched_rollout(scenarios[:1], call)
    time.sleep(max(start - time.time(), 0.0))
    began = time.time()
    laps = sum(len(race.outputs) for group in groups for race in batched_rollout(group, call))
    return began, time.time(), laps


def _generated(engineer: Engineer, observations: Sequence[str]) -> list[str]:
    """What transformers alone makes of one observation."""
    import torch

    tokenizer, [observation] = engineer.rendering.tokenizer, observations
    prompt = torch.tensor([engineer.rendering.prompt_ids(observation)])
    whole = engineer.model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=40,
                                    pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    return [engineer.rendering.command(whole[0, prompt.shape[1]:].tolist())]


def speeds(path: Path, few: int, many: int) -> pd.DataFrame:
    """Laps called a second in each way, and how many times that of the first."""
    rows = []
    for bf16 in (False, True):
        for way, races, processes in (("generate", few, 1), ("alone", few, 1), ("lockstep", many, 1),
                                      ("lockstep", many, PROCESSES)):
            keys = race_keys("test", -(-races // 5))[:races]
            shares = [keys[k::processes] for k in range(processes)]
            start = time.time() + (READY_S if processes > 1 else 0)
            told = list(map_races(partial(called, path=path, way=way, bf16=bf16, start=start), shares, PROCESSES, 1))
            seconds = max(end for _, end, _ in told) - min(began for began, _, _ in told)
            rows.append({"way": way, "precision": "bfloat16" if bf16 else "float32", "processes": processes,
                         "laps_per_s": sum(laps for *_, laps in told) / seconds})
    table = pd.DataFrame(rows)
    return table.assign(times=table["laps_per_s"] / table["laps_per_s"][0])


def main(profiles: str = "tiny", engineer: str = "") -> None:
    """Print the tables."""
    rows, tables = [], []
    for profile in profiles.split(","):
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(trained, profile, folder)
            own = Path(folder) / "engineers" / measured.told.pop("checkpoint")
            path = Path(engineer) if engineer else own
            rows.append({"profile": profile, **measured.told, "cpu_s": measured.cpu_s, "peak_mib": measured.peak_mib})
            tables.append((profile, speeds(path, *PROFILES[profile][2:])))
    print(pd.DataFrame(rows).round(2).T.to_markdown())
    for profile, table in tables:
        print(f"\n{profile}, laps called\n{table.round(2).to_markdown(index=False)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profiles", default="tiny", help=f"comma-separated: {', '.join(PROFILES)}")
    parser.add_argument("--engineer", default="", help="folder of a checkpoint to call the races, instead of the one "
                                                       "that is trained here for seconds")
    main(**vars(parser.parse_args()))
