"""Cost of engineers: batched races against one at a time, the simulator's share of a GRPO step, tokens per second and
memory of each profile that fits here.

    python -m benchmarks.engineer_bench [--profiles tiny,smollm2] [--engineer CHECKPOINT_FOLDER]

Speeds are laps called per second of wall time; the races are driven by these calls. Run it on an idle machine.
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
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import measure
from f1_pipelines.engineer.data.demonstrations import expert_demonstrations
from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.progress import Reporter
from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import RaceKey, demonstration_races, held_out_races
from f1_pipelines.engineer.training.job import Job, TrainingResult, run
from f1_pipelines.sim.scoring.reference import reference_of
from f1_pipelines.sim.workers import map_races

PROCESSES = 2
READY_S = 75  # time for several processes to load, before they start at once
# By profile: settings of SFT and of GRPO (empty: not measured), races one at a time, and races in a batch.
PROFILES: dict[str, tuple[dict[str, Any], dict[str, Any], int, int]] = {
    "tiny": ({"epochs": 12.0, "dagger_rounds": 0, "warmup_steps": 5}, {"steps": 5}, 40, 480),
    "smollm2": ({"max_turns": 48}, {}, 1, 16)}


def trained(profile: str, folder: str) -> dict[str, float | str]:
    """Train a profile with SFT and some GRPO steps on few turns: for speed and memory, not skill."""
    place, (settings, grpo_settings, *_) = Path(folder), PROFILES[profile]
    laps = [lap for race in expert_demonstrations(ScenarioSampler(), demonstration_races("train", 4)) for lap in race]
    (place / "scenes.json").write_text(ScenarioSampler().as_json())
    (place / "turns.jsonl").write_text("\n".join(json.dumps(
        {"prompt": lap.prompt, "completion": lap.completion}) for lap in laps))
    job = Job("sft", profile, settings, str(place / "turns.jsonl"), "", str(place / "scenes.json"), 0,
              str(place / "sft"), str(place / "engineers"))
    sft = run(job, Reporter())
    results = {"checkpoint": sft.checkpoint, "parameters": sft.n_parameters,
               "sft_tokens_per_s": sft.tokens_per_s or 0.0}
    return results | (_grpo(job, place, sft, grpo_settings) if grpo_settings else {})


def _grpo(job: Job, place: Path, sft: TrainingResult, settings: dict[str, Any]) -> dict[str, float]:
    grpo = run(replace(job, stage="grpo", settings=settings, parent=str(place / "engineers" / sft.checkpoint),
                       work=str(place / "grpo")), Reporter())
    by = {name: [value for _, metric, value in grpo.points if metric == name] for name in ("simulator_s", "step_time")}
    return {"grpo_step_s": float(np.median(by["step_time"])),
            "simulator_share_of_step": float(np.median(by["simulator_s"]) / np.median(by["step_time"]))}


def called(keys: Sequence[RaceKey], path: Path, way: str, bf16: bool, start: float) -> tuple[float, float, int]:
    """Drive races with an engineer.

    Args:
        keys: The races.
        path: Folder of the engineer's checkpoint.
        way: `generate` uses transformers' own `generate` race by race, `alone` ours, `batched` ours for all races.
        bf16: Compute in bfloat16.
        start: Earliest start [s since the epoch].

    Returns:
        Start and end [s since the epoch], and the number of laps called.
    """
    import torch

    from f1_pipelines.engineer.inference.checkpoints import load_engineer

    torch.set_num_threads(1)
    engineer = load_engineer(path, bf16=bf16)
    scenarios = [ScenarioSampler().scenario(*key) for key in keys]
    for scenario in scenarios:
        reference_of(scenario)  # is cached: the first scoring of a race is not part of the comparison
    if way == "generate":
        engineer.model.set_attn_implementation("sdpa")  # transformers' own choice
    call = partial(_generated, engineer) if way == "generate" else engineer.commands
    groups = [scenarios] if way == "batched" else [[scenario] for scenario in scenarios]
    batched_rollout(scenarios[:1], call)
    time.sleep(max(start - time.time(), 0.0))
    began = time.time()
    laps = sum(len(race.outputs) for group in groups for race in batched_rollout(group, call))
    return began, time.time(), laps


def _generated(engineer: Engineer, observations: Sequence[str]) -> list[str]:
    """The output of transformers' own `generate` for one observation."""
    import torch

    tokenizer, [observation] = engineer.rendering.tokenizer, observations
    prompt = torch.tensor([engineer.rendering.prompt_ids(observation)])
    whole = engineer.model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=40,
                                    pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    return [engineer.rendering.command(whole[0, prompt.shape[1]:].tolist())]


def speeds(path: Path, n_alone: int, n_batched: int) -> pd.DataFrame:
    """Laps called per second in each way, also relative to the first way.

    Args:
        path: Folder of the engineer's checkpoint.
        n_alone: Races one at a time.
        n_batched: Races in a batch.
    """
    rows = []
    for bf16 in (False, True):
        for way, races, processes in (("generate", n_alone, 1), ("alone", n_alone, 1), ("batched", n_batched, 1),
                                      ("batched", n_batched, PROCESSES)):
            keys = held_out_races(-(-races // 5))[:races]
            shares = [keys[k::processes] for k in range(processes)]
            start = time.time() + (READY_S if processes > 1 else 0)
            timed = list(map_races(partial(called, path=path, way=way, bf16=bf16, start=start), shares, PROCESSES, 1))
            seconds = max(end for _, end, _ in timed) - min(began for began, _, _ in timed)
            rows.append({"way": way, "precision": "bfloat16" if bf16 else "float32", "processes": processes,
                         "laps_per_s": sum(laps for *_, laps in timed) / seconds})
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
    parser.add_argument("--engineer", default="", help="folder of the checkpoint that drives the races, instead of "
                                                       "one that is trained here for seconds")
    main(**vars(parser.parse_args()))
