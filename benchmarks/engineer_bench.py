"""What engineers cost: batched examination against one race at a time, the simulator's share of practice, tokens a
second and memory of each profile that fits here.

    python -m benchmarks.engineer_bench [--profiles tiny,smollm2]
"""
from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import measure
from f1_pipelines.engineer.engineer import Engineer
from f1_pipelines.engineer.lockstep import play_together
from f1_pipelines.engineer.progress import Listener
from f1_pipelines.engineer.scenes import Scenes
from f1_pipelines.engineer.training import Job, Trained, run
from f1_pipelines.engineer.turns import expert_turns, race_keys
from f1_pipelines.sim.scoring.reference import reference_of

RACES, ALONE = 60, 6  # in lockstep; one at a time


def trained(profile: str, settings: dict[str, object], practice: dict[str, object]) -> dict[str, float]:
    """Imitation and one step of practice of a profile on a few turns: speed and memory, not skill."""
    from f1_pipelines.engineer.checkpoints import load_engineer

    turns = [turn for few in expert_turns(Scenes(), race_keys("train", 4)) for turn in few]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "scenes.json").write_text(Scenes().as_json())
        (place / "turns.jsonl").write_text("\n".join(json.dumps(
            {"prompt": turn.prompt, "completion": turn.completion}) for turn in turns))
        job = Job("sft", profile, settings, str(place / "turns.jsonl"), "", str(place / "scenes.json"), 0,
                  str(place / "sft"), str(place / "engineers"))
        imitator = run(job, Listener())
        engineer = load_engineer(place / "engineers" / imitator.checkpoint)
        found = {"parameters": imitator.n_parameters, "sft_tokens_per_s": imitator.tokens_per_s or 0.0}
        if practice:
            found |= _practice(job, place, imitator, practice)
            found["lockstep_over_one_at_a_time"] = _speed_up(engineer)
    return found


def _practice(job: Job, place: Path, imitator: Trained, practice: dict[str, object]) -> dict[str, float]:
    from dataclasses import replace

    grpo = run(replace(job, stage="grpo", settings=practice, parent=str(place / "engineers" / imitator.checkpoint),
                       work=str(place / "grpo")), Listener())
    by = {name: [value for _, metric, value in grpo.points if metric == name] for name in ("simulator_s", "step_time")}
    return {"grpo_step_s": float(np.median(by["step_time"])),
            "simulator_share_of_step": float(np.median(by["simulator_s"]) / np.median(by["step_time"]))}


def _speed_up(engineer: Engineer) -> float:
    """Turns a second in lockstep over turns a second one race at a time."""
    scenarios = [Scenes().scenario(*key) for key in race_keys("test", RACES // 5)]
    for scenario in scenarios:
        reference_of(scenario)  # kept: to score a race for the first time is not what is compared here

    def turns_per_s(play: Callable[[], list]) -> float:
        started = time.process_time()
        races = play()
        return sum(len(race.outputs) for race in races) / (time.process_time() - started)

    together = turns_per_s(lambda: play_together(scenarios, engineer.commands))
    alone = turns_per_s(lambda: [play_together([one], engineer.commands)[0] for one in scenarios[:ALONE]])
    return together / alone


PROFILES = {"tiny": ({"epochs": 12.0, "rounds": 0, "warmup_steps": 5}, {"steps": 5}),
            "smollm2": ({"max_turns": 48}, {})}


def main(profiles: str = "tiny") -> None:
    """Print the table."""
    rows = []
    for profile in profiles.split(","):
        settings, practice = PROFILES[profile]
        measured = measure(trained, profile, settings, practice)
        rows.append({"profile": profile, **measured.told, "cpu_s": measured.cpu_s, "peak_mib": measured.peak_mib})
    print(pd.DataFrame(rows).round(2).T.to_markdown())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profiles", default="tiny", help=f"comma-separated: {', '.join(PROFILES)}")
    main(parser.parse_args().profiles)
