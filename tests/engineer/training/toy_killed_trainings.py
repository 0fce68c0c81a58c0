"""Toy-size trainings killed with SIGKILL at chosen moments.

Run as `python -m tests.engineer.training.toy_killed_trainings PLAN.json`.

The plan lists attempts, [job file, moment or null]. Each runs in its own process, forked after the imports, which take
longer than the toys. Prints the exit code of each as JSON; a negative one is the number of a signal.
"""
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

SFT = {"epochs": 3.0, "batch_size": 8, "learning_rate": 1e-2, "muon_learning_rate": 2e-2, "warmup_steps": 2,
       "dagger_rounds": 1, "dagger_races": 1, "dagger_epochs": 1.25}
GRPO = {"steps": 3, "races": 2, "states": 4, "oversampling": 2, "num_generations": 4, "learning_rate": 1e-3,
        "batch_size": 8}


def die(*_: Any, **__: Any) -> None:
    """Kill this process; no handler runs."""
    os.kill(os.getpid(), signal.SIGKILL)


def arm(moment: str) -> None:
    """Make this process die at a moment: a name below, then a step or number."""
    import safetensors.torch
    from transformers.trainer_callback import TrainerState

    from f1_pipelines.engineer.data import dagger
    from f1_pipelines.engineer.training import job as training
    from f1_pipelines.engineer.training.callbacks import MetricsCallback
    from f1_pipelines.engineer.training.checkpoint_selection import BestCheckpoint

    name, _, at = moment.partition(" ")

    def die_after(owner: Any, method: str, reached: Callable[..., bool]) -> None:
        original = getattr(owner, method)

        def wrapped(*args: Any, **options: Any) -> Any:
            result = original(*args, **options)
            if reached(*args):
                die()
            return result

        setattr(owner, method, wrapped)

    def save_half(state: TrainerState, path: str) -> None:
        if state.global_step == int(at):
            Path(path).write_text(json.dumps(vars(state), default=str)[:400])
            die()
        save_state(state, path)

    if name == "evaluated":  # the best weights are written, the trainer's checkpoint of that step is not
        die_after(BestCheckpoint, "evaluate", lambda best, step, engineer: step == int(at))
    elif name == "logged":
        die_after(MetricsCallback, "on_log", lambda watch, args, state,
                  *_: f"{Path(args.output_dir).name}-{state.global_step}" == at)
    elif name == "torn":
        save_state, TrainerState.save_to_json = TrainerState.save_to_json, save_half
    elif name == "saved":
        die_after(MetricsCallback, "on_save", lambda watch, args, state, *_: state.global_step == int(at))
    elif name == "driven":  # the scores of the round are written, its turns are not
        dagger.asdict = die
    elif name == "weights":
        save = safetensors.torch.save_file

        def save_half_weights(weights: dict[str, Any], path: Path, metadata: dict[str, str] | None = None) -> None:
            save(weights, path, metadata)
            if "finished" in str(path):
                os.truncate(path, os.path.getsize(path) // 2)
                die()

        safetensors.torch.save_file = save_half_weights
    elif name == "stored":  # the checkpoint is stored, its result is not written
        training._store_result = die
    else:
        raise ValueError(moment)


def attempt(job: str, moment: str | None) -> int:
    """Train in a new process and return its exit code."""
    pid = os.fork()
    if pid == 0:
        from f1_pipelines.engineer.training import job as training

        status = 1
        try:
            if moment:
                arm(moment)
            sys.argv = ["training", job]
            training.main()
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    from transformers import TrainerCallback  # noqa: F401
    from trl import GRPOTrainer, SFTTrainer  # noqa: F401

    from f1_pipelines.engineer.profiles import PROFILES
    from f1_pipelines.engineer.training import grpo, sft, stages
    from f1_pipelines.engineer.training.kl_probes import KlProbes
    from tests.engineer.conftest import TOY

    os.cpu_count = lambda: 1  # drive the expert's races in this process
    PROFILES["tiny"] = replace(PROFILES["tiny"], architecture=TOY, max_new_tokens=12)
    stages.SELECTION_RACES, grpo.SAVED_EVERY, KlProbes.COUNT, sft.SAVED_EVERY = 1, 1, 5, 5
    plan, output = json.loads(Path(sys.argv[1]).read_text()), os.dup(1)
    os.dup2(2, 1)  # keeps the output of trainings out of the result
    os.write(output, json.dumps([attempt(job, moment) for job, moment in plan]).encode())
