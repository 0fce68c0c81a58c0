"""Launch a language model training, track it and store its result."""
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pandas as pd
from dagster._core.errors import DagsterPipesExecutionError

from f1_pipelines.assets.metadata import line_plot
from f1_pipelines.resources.compute import Compute
from f1_pipelines.resources.engineers import Engineers
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.tracking import Tracking, linked
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import strategy as tables
from f1_pipelines.warehouse.replace import replace_slices

if TYPE_CHECKING:
    import duckdb

    from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
    from f1_pipelines.engineer.training.job import Job, TrainingResult
    from f1_pipelines.tracking.runs import TrackedRun

TRAINING = "f1_pipelines.engineer.training.job"
_PLOTTED = ("loss", "selection_score", "score", "entropy", "kl_to_sft", "frac_reward_zero_std")  # metrics of the curve


def versions(sampler: "ScenarioSampler") -> dict[str, Any]:
    """Columns with the versions of environment, prompt and scenarios that a row is valid for."""
    from f1_pipelines.sim.environment.prompt import PROMPT_VERSION
    from f1_pipelines.sim.scenarios import ENV_VERSION

    return {"env_version": ENV_VERSION, "prompt_version": PROMPT_VERSION, "scenes_version": sampler.version}


def train_and_keep(context: dg.AssetExecutionContext, job: "Job", inputs: Mapping[str, str], sampler: "ScenarioSampler",
                   warehouse: Warehouse, engineers: Engineers, compute: Compute, clock: Clock,
                   tracking: Tracking) -> dg.MaterializeResult[None]:
    """Run a job on the device of `compute`, and store the rows of its checkpoints and its training curve.

    The caller calls `job.end()` after storing its own rows. If killed before, the next run of the step reads the result
    from the job's folder.

    Args:
        job: Job without device, precision and processes, which are set here.
        inputs: Text of the job's input files, by name.
        sampler: Source of the job's races.
    """
    profile, device = engineers.chosen, compute.resolve()
    processes = compute.processes_on(device)
    compute.require(profile.min_free_gib, f"profile {profile.name}", device, processes)
    job = replace(job, device=device, precision=compute.precision_on(device, profile.bf16), processes=processes)
    with tracking.run(context, f"{job.stage}_engineer {job.profile}", {"profile": job.profile, "seed": job.seed,
                                                                     "launcher": compute.launcher}) as run:
        trained = _launched(context, job, job.begin(inputs), compute, run)
        run.params(trained.settings)
        rows = _rows(context, job, trained, sampler, run, device, clock)
        with warehouse.write(f"{job.stage}_engineer") as connection:
            _keep(connection, job, rows, trained)
    last = {name: values[-1] for name in _PLOTTED if (values := [v for _, n, v in trained.points if n == name])}
    return dg.MaterializeResult(metadata={
        "checkpoint": trained.checkpoint, "parent": trained.untrained, "profile": job.profile, "device": device,
        "launcher": compute.launcher, "processes": processes, "seconds": trained.seconds,
        "n_parameters": trained.n_parameters, "n_turns": trained.n_turns,
        "peak_memory_gib": trained.peak_memory_gib, "mlflow": linked(run),
        "path": dg.MetadataValue.path(str(engineers.folder / trained.checkpoint)),
        **({"tokens_per_s": trained.tokens_per_s} if trained.tokens_per_s else {}),
        **{f"last_{name}": value for name, value in last.items()},
        **{name: line_plot({name: values}, f"{job.stage} {name}", "point") for name in _PLOTTED
           if len(values := [v for _, n, v in trained.points if n == name]) > 1},
    })


def _launched(context: dg.AssetExecutionContext, job: "Job", file: Path, compute: Compute,
              run: "TrackedRun") -> "TrainingResult":
    from f1_pipelines.engineer.training.job import FAILED, RESULT, TrainingResult
    from f1_pipelines.engineer.training.job import run as train
    from f1_pipelines.engineer.training.parent_process import parent_of

    if (file.parent / RESULT).is_file():
        context.log.info("this training had finished when its run was killed; using its result")
        return _tracked(TrainingResult.read(file.parent), run)
    if compute.launcher == "in_process":
        from f1_pipelines.engineer.progress import Reporter

        return train(job, Reporter(context.log.info, lambda step, numbers: run.metrics(
            {name: value for name, value in numbers.items() if isinstance(value, int | float)}, step),
            context.log.warning))
    try:
        # With the asset's context, the client uses a deprecated attribute.
        dg.PipesSubprocessClient().run(context=context.op_execution_context, env=parent_of(),
                                       command=compute.command(TRAINING, [str(file)], job.processes))
    except DagsterPipesExecutionError as problem:
        report = file.with_name(FAILED)
        raise dg.Failure(report.read_text() if report.is_file() else
                         f"{problem}; the process exited without an error report. Exit code -9 means that it was "
                         "killed, usually for lack of memory; its output is above or in the run's stderr") from problem
    return _tracked(TrainingResult.read(file.parent), run)


def _tracked(trained: "TrainingResult", run: "TrackedRun") -> "TrainingResult":
    for step, name, value in trained.points:
        run.metrics({name: value}, step)
    return trained


def _rows(context: dg.AssetExecutionContext, job: "Job", trained: "TrainingResult", sampler: "ScenarioSampler",
          run: "TrackedRun", device: str, clock: Clock) -> pd.DataFrame:
    """Build rows of `strategy.engineers`: the trained model and, for SFT, its untrained start."""
    common = {"profile": job.profile, "training_seed": job.seed, "n_parameters": trained.n_parameters,
              **versions(sampler), "device": device, "dagster_run": context.run.run_id, "mlflow_run": run.id,
              "made_at": clock.now()}
    rows = [{"checkpoint": trained.checkpoint, "stage": job.stage, "parent": trained.untrained,
             "n_turns": trained.n_turns, "settings": json.dumps(trained.settings), "seconds": trained.seconds,
             "tokens_per_s": trained.tokens_per_s, "peak_memory_gib": trained.peak_memory_gib,
             "path": trained.checkpoint, **common}]
    if job.stage == "sft":
        rows.insert(0, {"checkpoint": trained.untrained, "stage": "untrained", "parent": None, "n_turns": 0,
                        "settings": "{}", "seconds": 0.0, "tokens_per_s": None, "peak_memory_gib": None,
                        "path": trained.untrained, **common})
    return pd.DataFrame(rows)


def _keep(connection: "duckdb.DuckDBPyConnection", job: "Job", rows: pd.DataFrame, trained: "TrainingResult") -> None:
    # A checkpoint trained again with the same result keeps its promotion.
    known = connection.execute("SELECT checkpoint, promoted, promotion FROM strategy.engineers").df()
    rows = rows.merge(known, on="checkpoint", how="left")
    replace_slices(connection, tables.ENGINEERS, rows.assign(promoted=rows["promoted"].eq(True)))
    curve = pd.DataFrame(trained.points, columns=["step", "metric", "value"]).drop_duplicates(
        ["step", "metric"], keep="last")
    replace_slices(connection, tables.TRAINING_CURVE, curve.assign(
        run=trained.checkpoint, stage=job.stage, profile=job.profile, training_seed=job.seed), accept_fewer_rows=True)
