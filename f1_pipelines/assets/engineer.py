"""The race engineer: demonstrations, SFT, GRPO."""
import json
import os
from typing import TYPE_CHECKING, Any

import dagster as dg
import pandas as pd
from pydantic import Field

from f1_pipelines.assets.features import ranking_features
from f1_pipelines.assets.metadata import described, preview
from f1_pipelines.assets.simulation import circuit_fits
from f1_pipelines.assets.training_launcher import train_and_keep, versions
from f1_pipelines.resources.compute import Compute
from f1_pipelines.resources.engineers import Engineers
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.tracking import Tracking
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import strategy as tables
from f1_pipelines.warehouse.replace import replace_slices

if TYPE_CHECKING:
    import duckdb

    from f1_pipelines.engineer.scenario_sampler import ScenarioSampler

ENGINEER_GROUP: dict[str, Any] = {"group_name": "engineer", "owners": ["team:engineer"], "code_version": "3"}
TURNS, SCENES = "turns.jsonl", "scenes.json"  # inputs of a training, in its work folder
NEAR_TIE_S = 0.3
_EVERY_WEEKEND = dg.AllPartitionMapping()


class DatasetConfig(dg.Config):
    """Size and filters of the expert demonstrations."""

    races: int = Field(130, ge=1, description="Training races per trained family; 130 give 8,700 turns.")
    validation_races: int = Field(8, ge=1, description="Validation races per family.")
    odd: float = Field(0.12, ge=0, le=1, description="Share of laps with a command that is not the expert's.")
    calm_s: float = Field(1.5, ge=0, description="A change of driving mode that gains less becomes STAY_OUT [s].")
    futures: int = Field(32, ge=8, description="Futures that the expert samples per lap.")
    stay_share: float = Field(0.5, gt=0, lt=1, description="Largest share of STAY_OUT in the training turns.")
    workers: int = Field(0, ge=0, description="Processes; 0 means one per core.")


@dg.asset(**ENGINEER_GROUP, kinds={"python", "duckdb"}, metadata=described(tables.SFT_TURNS),
          deps=[circuit_fits, dg.AssetDep(ranking_features, partition_mapping=_EVERY_WEEKEND)])
def sft_dataset(context: dg.AssetExecutionContext, config: DatasetConfig,
                warehouse: Warehouse) -> dg.MaterializeResult[None]:
    """The expert's commands, lap by lap. One row per turn.

    Races use the training seeds of five families, the fitted circuits, and fields as close as those of the stored
    weekends. Each row has the values of all commands that the expert considered.
    """
    from f1_pipelines.engineer.data.demonstrations import (
        expert_demonstrations,
        turn_rows,
        with_fewer_stay_outs,
        without_needless_call,
    )
    from f1_pipelines.engineer.seed_ranges import demonstration_races

    with warehouse.read() as connection:
        sampler = sampler_of(connection)
    workers, frames = config.workers or os.cpu_count() or 1, []
    for split, races, odd in (("train", config.races, config.odd), ("validation", config.validation_races, 0.0)):
        keys, turns = demonstration_races(split, races), []
        for done, race_turns in enumerate(expert_demonstrations(sampler, keys, workers, odd, config.futures), start=1):
            turns += [without_needless_call(turn, config.calm_s) for turn in race_turns]
            if done % 100 == 0:
                context.log.info("%s: %d of %d races, %d turns", split, done, len(keys), len(turns))
        turn_table = turn_rows(with_fewer_stay_outs(turns, stay_share=config.stay_share) if split == "train" else turns)
        frames.append(_turn_rows(turn_table, "expert", sampler))
    rows = pd.concat(frames, ignore_index=True)
    with warehouse.write("sft_dataset") as connection:
        replace_slices(connection, tables.SFT_TURNS, rows, accept_fewer_rows=True)
    train = frames[0]
    verbs = train["completion"].str.split().str[0].value_counts()
    return dg.MaterializeResult(metadata={
        "dagster/row_count": len(rows), "training_turns": len(train), "races": int(train.groupby("family").seed.nunique(
        ).sum()), "circuit_names": int(train["circuit"].nunique()), "near_ties": float(train["near_tie"].mean()),
        "circuits_fitted": len(sampler.circuits), "fields_of_weekends": len(sampler.fields),
        "scenes_version": sampler.version,
        "commands": dg.MetadataValue.md(verbs.rename("turns").to_frame().to_markdown()),
        "preview": preview(rows[["family", "seed", "lap", "completion", "expert_value", "reason"]]),
    })


class SftConfig(dg.Config):
    """Settings of the SFT training."""

    seed: int = Field(0, ge=0, description="Seed of weights, order and dropout.")
    settings: dict[str, Any] = Field({}, description="Overrides of the profile's SFT settings, by field name.")


@dg.asset(**ENGINEER_GROUP, kinds={"python", "pytorch", "huggingface"}, deps=[sft_dataset], pool="gpu",
          metadata=described(tables.ENGINEERS))
def sft_engineer(context: dg.AssetExecutionContext, config: SftConfig, warehouse: Warehouse, engineers: Engineers,
                 compute: Compute, clock: Clock, tracking: Tracking) -> dg.MaterializeResult[None]:
    """A language model that imitates the expert, and the same model untrained. One row per checkpoint.

    Uses TRL's SFT trainer with the loss on the command only: first on the expert's races, then on races that the
    student drives and the expert relabels (added to `strategy.sft_turns`). A killed run resumes from its latest
    checkpoint.
    """
    from f1_pipelines.engineer.data.dagger import read_demonstrations
    from f1_pipelines.engineer.data.demonstrations import turn_rows
    from f1_pipelines.engineer.training.job import Job

    with warehouse.read() as connection:
        turns = connection.sql("SELECT prompt, completion FROM strategy.sft_turns WHERE split = 'train' "
                               "AND collected_by = 'expert' ORDER BY family, seed, lap").df()
        sampler = sampler_of(connection)
    work = engineers.work("sft", config.seed)
    job = Job("sft", engineers.profile, config.settings, str(work / TURNS), "", str(work / SCENES), config.seed,
              str(work), str(engineers.folder), engineers.weights)
    inputs = {TURNS: turns.to_json(orient="records", lines=True), SCENES: sampler.as_json()}
    result = train_and_keep(context, job, inputs, sampler, warehouse, engineers, compute, clock, tracking)
    rounds = [turn for path in sorted(work.glob("round-*.jsonl")) for turn in read_demonstrations(path)]
    with warehouse.write("sft_engineer rounds") as connection:
        connection.execute("DELETE FROM strategy.sft_turns WHERE collected_by = 'student'")
        if rounds:
            replace_slices(connection, tables.SFT_TURNS, _turn_rows(turn_rows(rounds), "student", sampler),
                           accept_fewer_rows=True)
    job.end()
    return result


class GrpoConfig(dg.Config):
    """Settings of the GRPO training."""

    seed: int = Field(0, ge=0, description="Seed of races, samples and order.")
    settings: dict[str, Any] = Field({}, description="Overrides of the profile's GRPO settings, by field name.")


@dg.asset(**ENGINEER_GROUP, kinds={"python", "pytorch", "huggingface"}, deps=[sft_engineer], pool="gpu",
          metadata=described(tables.ENGINEERS))
def grpo_engineer(context: dg.AssetExecutionContext, config: GrpoConfig, warehouse: Warehouse, engineers: Engineers,
                  compute: Compute, clock: Clock, tracking: Tracking) -> dg.MaterializeResult[None]:
    """The SFT engineer after GRPO in the simulator. One row per checkpoint.

    Uses TRL's GRPO trainer. A command's reward is the score of the race when the policy itself continues after it.
    Keeps the step with the best validation score; `strategy_evaluation` compares it with the SFT engineer on other
    races.
    """
    from f1_pipelines.engineer.training.job import Job

    with warehouse.read() as connection:
        parent = newest_engineer(connection, "sft", engineers.profile)
        sampler = sampler_of(connection)
    work = engineers.work(f"grpo-{parent['checkpoint']}", config.seed)
    job = Job("grpo", engineers.profile, config.settings, "", str(engineers.folder / parent["path"]),
              str(work / SCENES), config.seed, str(work), str(engineers.folder), engineers.weights)
    result = train_and_keep(context, job, {SCENES: sampler.as_json()}, sampler, warehouse, engineers, compute, clock,
                            tracking)
    job.end()
    return result


def sampler_of(connection: "duckdb.DuckDBPyConnection") -> "ScenarioSampler":
    """Build the scenario sampler of the engineers from the warehouse."""
    from f1_pipelines.engineer.scenario_sampler import stored_sampler

    return stored_sampler(connection)


def newest_engineer(connection: "duckdb.DuckDBPyConnection", stage: str, profile: str) -> dict[str, Any]:
    """Get the row of a stage's newest engineer.

    Raises:
        dg.Failure: No such engineer is stored.
    """
    rows = connection.execute("SELECT * FROM strategy.engineers WHERE stage = ? AND profile = ? "
                              "ORDER BY made_at DESC LIMIT 1", [stage, profile]).df()
    if rows.empty:
        raise dg.Failure(f"no {stage} engineer of profile {profile} is stored; materialize {stage}_engineer first")
    return rows.iloc[0].to_dict()


def lineage(connection: "duckdb.DuckDBPyConnection", profile: str) -> pd.DataFrame:
    """Get the rows of the newest SFT engineer, its untrained start and its newest GRPO engineer, if any.

    Raises:
        dg.Failure: No SFT engineer is stored.
    """
    sft = newest_engineer(connection, "sft", profile)
    return connection.execute("""
        SELECT * FROM strategy.engineers WHERE checkpoint IN (?, ?) OR (stage = 'grpo' AND parent = ?)
        QUALIFY row_number() OVER (PARTITION BY stage ORDER BY made_at DESC) = 1
        ORDER BY stage <> 'untrained', stage <> 'sft'""", [sft["checkpoint"], sft["parent"], sft["checkpoint"]]).df()


def _turn_rows(turns: pd.DataFrame, collected_by: str, sampler: "ScenarioSampler") -> pd.DataFrame:
    """Build rows of `strategy.sft_turns`."""
    return turns.assign(collected_by=collected_by, near_tie=[_near_tie(values) for values in turns["values_s"]],
                        **versions(sampler))


def _near_tie(values: str) -> bool:
    ordered = sorted(json.loads(values).values(), reverse=True)
    return len(ordered) > 1 and ordered[0] - ordered[1] < NEAR_TIE_S
