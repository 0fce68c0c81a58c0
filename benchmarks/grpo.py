"""Does practice (GRPO) lift an imitator (SFT)? Several training seeds, reported on races that nothing else ever uses.

    python -m benchmarks.grpo --seeds 3 --set temperature=1.0 --set learning_rate=3e-4

The hypothesis: values of calls under the current policy with common random numbers are a signal good enough to lift the
greedy score of an imitator on races it has not practised on. Settings and steps are chosen on the validation split;
the report is on test and unseen-family seeds after the first `SKIP`, 95 % bootstrap intervals of the paired difference.
"""
from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from f1_pipelines.engineer.inference.checkpoints import load_engineer
from f1_pipelines.engineer.progress import Reporter
from f1_pipelines.engineer.rollout import batched_rollout
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler, stored_sampler
from f1_pipelines.engineer.seed_ranges import HELD_OUT_SKIPPED_BY_BENCHMARKS as SKIP
from f1_pipelines.engineer.seed_ranges import held_out_races
from f1_pipelines.engineer.training.job import Job, run
from f1_pipelines.evaluation.bootstrap import mean_interval
from f1_pipelines.settings import settings
from f1_pipelines.warehouse.database import WarehouseFile


def practise(sft: Path, sampler: ScenarioSampler, profile: str, seeds: list[int], changes: dict[str, float],
             races: int) -> list[dict[str, object]]:
    """Train with each seed and report each on the same races, and all together."""
    keys = held_out_races(races, skip=SKIP)
    scenarios = [sampler.scenario(*key) for key in keys]
    before = _scores(sft, scenarios)
    rows, differences = [{"policy": "sft", "seed": "", "step": "", "score": before.mean()}], []
    for seed in seeds:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            (work / "scenes.json").write_text(sampler.as_json())
            trained = run(Job("grpo", profile, changes, "", str(sft), str(work / "scenes.json"), seed,
                              str(work / "work"), str(work / "engineers")), Reporter(print, warn=print))
            after = _scores(work / "engineers" / trained.checkpoint, scenarios)
            meta = json.loads((work / "engineers" / trained.checkpoint / "meta.json").read_text())
        chosen = {step: value for step, name, value in trained.points if name == "selection_score"}
        difference = after - before
        differences.append(difference)
        low, high = mean_interval(difference)
        rows.append({"policy": "grpo", "seed": seed, "step": meta["chosen_step"], "score": after.mean(),
                     "over_sft": difference.mean(), "low": low, "high": high,
                     "validation": f"{chosen[0]:.3f} -> {chosen[meta['chosen_step']]:.3f}",
                     "seconds": time.monotonic() - started})
        print(json.dumps(rows[-1], default=str), flush=True)
    pooled = np.mean(differences, axis=0)
    low, high = mean_interval(pooled)
    rows.append({"policy": "grpo, all seeds", "seed": len(seeds), "score": before.mean() + pooled.mean(),
                 "over_sft": pooled.mean(), "low": low, "high": high})
    return rows


def _scores(folder: Path, scenarios: list) -> np.ndarray:
    races = batched_rollout(scenarios, load_engineer(folder).commands)
    return np.array([race.info["score"] for race in races])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first training seed")
    parser.add_argument("--races", type=int, default=120, help="of each of the six families, to report on")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a GRPO setting to change")
    given = parser.parse_args()
    changes = {name: json.loads(value) for name, value in (one.split("=", 1) for one in given.set)}
    told = settings()
    with WarehouseFile(told.f1_warehouse).read() as connection:
        sampler = stored_sampler(connection)
        [(path,)] = connection.execute("SELECT path FROM strategy.engineers WHERE stage = 'sft' AND promoted "
                                       "AND profile = ?", [told.f1_profile]).fetchall()
    rows = practise(told.checkpoints_path / "engineers" / path, sampler, told.f1_profile,
                    list(range(given.first, given.first + given.seeds)), changes, given.races)
    print(json.dumps({"settings": changes, "defaults": asdict(_defaults(told.f1_profile))}))
    print(pd.DataFrame(rows).round(3).to_markdown(index=False))


def _defaults(profile: str) -> object:
    from f1_pipelines.engineer.profiles import profile_of

    return profile_of(profile).grpo


if __name__ == "__main__":
    main()
