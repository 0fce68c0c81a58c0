"""Evaluation of race engineers on held-out races: leaderboard, post-mortems."""
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import dagster as dg
import duckdb
import pandas as pd
from pydantic import Field

from f1_pipelines.assets.engineer import ENGINEER_GROUP, grpo_engineer, lineage, sampler_of, sft_engineer
from f1_pipelines.assets.features import ranking_features
from f1_pipelines.assets.metadata import described, interval_plot, preview
from f1_pipelines.assets.simulation import circuit_fits
from f1_pipelines.assets.training_launcher import versions
from f1_pipelines.resources.compute import Compute, free_memory_gib
from f1_pipelines.resources.engineers import Engineers
from f1_pipelines.resources.race_data import Clock
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import strategy as tables
from f1_pipelines.warehouse.replace import replace_slices

if TYPE_CHECKING:
    from f1_pipelines.engineer.evaluation.episodes import Candidate, EpisodeResult
    from f1_pipelines.engineer.profiles import Profile
    from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
    from f1_pipelines.engineer.seed_ranges import RaceKey

_EVERY_WEEKEND = dg.AllPartitionMapping()
_TABLES = (tables.EPISODES, tables.DECISIONS, tables.POSTMORTEMS)


class ScriptedEvalConfig(dg.Config):
    """Number of races."""

    seeds: int = Field(100, ge=1, description="Held-out races per family.")
    unseen_circuits: int = Field(20, ge=0, description="Races per trained family on circuits never trained on.")
    workers: int = Field(0, ge=0, description="Processes; 0 means one per core.")


@dg.asset(**ENGINEER_GROUP, kinds={"python", "duckdb"}, metadata=described(tables.EPISODES),
          deps=[circuit_fits, dg.AssetDep(ranking_features, partition_mapping=_EVERY_WEEKEND)])
def scripted_races(context: dg.AssetExecutionContext, config: ScriptedEvalConfig, warehouse: Warehouse,
                   clock: Clock) -> dg.MaterializeResult[None]:
    """Scripted policies on the held-out races: random to expert, and the oracle. One row per (policy, race)."""
    from f1_pipelines.engineer.evaluation.episodes import SCRIPTED, scripted_results
    from f1_pipelines.engineer.seed_ranges import held_out_races

    with warehouse.read() as connection:
        sampler = sampler_of(connection)
    keys = held_out_races(config.seeds, config.unseen_circuits)
    results: list[EpisodeResult] = []
    races = scripted_results(sampler, keys, SCRIPTED, config.workers or os.cpu_count() or 1)
    for done, race_results in enumerate(races, start=1):
        results += race_results
        if done % 60 == 0:
            context.log.info("%d of %d races", done, len(keys))
    rows = _rows(results, sampler, clock)
    with warehouse.write("scripted_races") as connection:
        for table in _TABLES:
            replace_slices(connection, table, rows[table.name], accept_fewer_rows=True)
    episodes = rows["episodes"]
    return dg.MaterializeResult(metadata={
        "dagster/row_count": len(episodes), "races": len(keys), "scenes_version": sampler.version,
        "mean_score": dg.MetadataValue.md(episodes.groupby("policy")["score"].agg(["mean", "count"]).sort_values(
            "mean").round(3).to_markdown()),
    })


class EngineerEvalConfig(dg.Config):
    """Races and variants of the evaluation."""

    seeds: int = Field(30, ge=1, description="Held-out races per family, the first of scripted_races.")
    unseen_circuits: int = Field(20, ge=0, description="Races per trained family on circuits never trained on.")
    renamed: bool = Field(True, description="Repeat the races with other names and car numbers.")
    hint_races: int = Field(24, ge=0,
                            description="Training races per family that the SFT engineer drives; their post-mortems "
                            "become hints in the briefing of one more round of races. 0 for none.")
    workers: int = Field(0, ge=0, description="Processes; 0 means one per core.")


@dg.asset(**ENGINEER_GROUP, kinds={"python", "pytorch", "duckdb"}, deps=[scripted_races, sft_engineer, grpo_engineer],
          pool="gpu", metadata=described(tables.LEADERBOARD))
def strategy_evaluation(context: dg.AssetExecutionContext, config: EngineerEvalConfig, warehouse: Warehouse,
                        engineers: Engineers, compute: Compute, clock: Clock) -> dg.MaterializeResult[None]:
    """All policies on the same held-out races. One row per (policy, variant, family).

    Engineers generate in batches, greedily, without a fallback; `strategy.decisions` has each raw output. Columns:
    means with 95 % intervals, paired differences, closed share of the gap to the expert, regret to the oracle.
    """
    from f1_pipelines.engineer.evaluation.episodes import engineer_results
    from f1_pipelines.engineer.evaluation.leaderboard import leaderboard
    from f1_pipelines.engineer.seed_ranges import held_out_races

    device, profile = compute.resolve(), engineers.chosen
    compute.require(profile.min_free_gib, f"profile {profile.name}", device)
    keys = held_out_races(config.seeds, config.unseen_circuits)
    with warehouse.read() as connection:
        sampler = sampler_of(connection)
        oracle = _oracle(connection, keys, sampler)
        stored = lineage(connection, engineers.profile)
    evaluate = partial(engineer_results, sampler, workers=_workers(config, device, profile), device=device,
                       bf16=compute.precision_on(device, profile.bf16) == "bfloat16")
    candidates = _candidates(config, stored, engineers)
    hints = _hints(context, config, keys, sampler, candidates, evaluate, warehouse, clock) if config.hint_races else {}
    candidates = [candidate for candidate in candidates if candidate.variant != "hints" or hints]
    results = []
    for done, race_results in enumerate(evaluate(candidates, keys, oracle=oracle, hints=hints), start=1):
        results += race_results
        if done % 60 == 0:
            context.log.info("%d engineers in %d of %d races", len(candidates), done, len(keys))
    rows = _rows(results, sampler, clock)
    with warehouse.write("strategy_evaluation") as connection:
        for table in _TABLES:
            # Remove engineers of earlier runs and other profiles.
            connection.execute(f"DELETE FROM {table.qualified} WHERE variant <> 'training' AND policy IN "
                               "('untrained', 'sft', 'grpo')")
            replace_slices(connection, table, rows[table.name], accept_fewer_rows=True)
        board = leaderboard(connection.execute("SELECT * FROM strategy.episodes WHERE variant <> 'training' AND "
                                               "scenes_version = ? AND env_version = ?",
                                               [sampler.version, versions(sampler)["env_version"]]).df())
        connection.execute("DELETE FROM strategy.leaderboard")
        replace_slices(connection, tables.LEADERBOARD, board, accept_fewer_rows=True)
    _write_cards(stored, board, rows["episodes"], engineers)
    overall = board[board["family"] == "all"]
    plain = overall[overall["variant"] == "plain"].sort_values("mean")
    return dg.MaterializeResult(metadata={
        "dagster/row_count": len(board), "episodes": len(rows["episodes"]),
        **{f"score_{row.policy}": float(row.mean) for row in plain.itertuples()},
        "leaderboard": preview(overall[["policy", "variant", "n", "mean", "low", "high", "gap_closed", "over_sft",
                                        "over_sft_low", "over_sft_high", "regret", "parse_failures"]], 30),
        "scores": interval_plot(plain.set_index("policy")[["mean", "low", "high"]], "Score on held-out races"),
    })


def _oracle(connection: duckdb.DuckDBPyConnection, keys: Sequence["RaceKey"],
            sampler: "ScenarioSampler") -> dict["RaceKey", list[str]]:
    """Read the oracle's commands in each race from the rows of `scripted_races`.

    Raises:
        dg.Failure: A race is missing.
    """
    calls = connection.execute("""
        SELECT d.family, d.seed, list(d.raw_output ORDER BY d.lap) AS calls
        FROM strategy.decisions d JOIN strategy.episodes e USING (policy, variant, family, seed)
        WHERE d.policy = 'oracle' AND e.scenes_version = ? AND e.env_version = ? GROUP BY ALL""",
                               [sampler.version, versions(sampler)["env_version"]]).fetchall()
    by_race = {(family, seed): commands for family, seed, commands in calls}
    missing = [key for key in keys if key not in by_race]
    if missing:
        raise dg.Failure(f"{len(missing)} of {len(keys)} races of the oracle are missing, first {missing[0]}; "
                         "materialize scripted_races with at least as many seeds and unseen_circuits")
    return by_race


def _workers(config: EngineerEvalConfig, device: str, profile: "Profile") -> int:
    """Number of processes: one on a GPU; on a CPU, limited by free memory."""
    if device != "cpu":
        return 1
    return max(min(config.workers or os.cpu_count() or 1, int(free_memory_gib(device) / profile.min_free_gib)), 1)


def _candidates(config: EngineerEvalConfig, stored: pd.DataFrame, engineers: Engineers) -> list["Candidate"]:
    """All stored engineers in the plain variant; the GRPO engineer, else the SFT engineer, in all variants."""
    from f1_pipelines.engineer.evaluation.episodes import Candidate

    best = "grpo" if (stored["stage"] == "grpo").any() else "sft"
    variants = ["plain"] + ["renamed"] * config.renamed + ["hints"] * bool(config.hint_races)
    return [Candidate(row.stage, row.checkpoint, engineers.folder / row.path, variant) for row in stored.itertuples()
            for variant in (variants if row.stage == best else ["plain"])]


def _hints(context: dg.AssetExecutionContext, config: EngineerEvalConfig, keys: Sequence["RaceKey"],
           sampler: "ScenarioSampler", candidates: Sequence["Candidate"],
           evaluate: Callable[..., Iterator[list["EpisodeResult"]]], warehouse: Warehouse,
           clock: Clock) -> dict["RaceKey", str]:
    """Build a memory hint for each race from post-mortems of the SFT engineer's training races of its family."""
    from f1_pipelines.engineer.evaluation.memory_hints import MemoryHints
    from f1_pipelines.engineer.seed_ranges import hint_races

    student = next(replace(candidate, variant="training") for candidate in candidates if candidate.policy == "sft")
    races = evaluate([student], hint_races(config.hint_races), oracle={})
    results = [result for race_results in races for result in race_results]
    rows = _rows(results, sampler, clock)
    with warehouse.write("strategy_evaluation training") as connection:
        for table in _TABLES:
            replace_slices(connection, table, rows[table.name], accept_fewer_rows=True)
    memory = MemoryHints.from_postmortems(rows["postmortems"], sampler.scenario)
    context.log.info("%d lines of memory from %d training races", len(memory.lines), len(results))
    return {key: hint for key in keys if (hint := memory.hint(sampler.scenario(*key)))}


def _rows(results: Sequence["EpisodeResult"], sampler: "ScenarioSampler", clock: Clock) -> dict[str, pd.DataFrame]:
    """Build the rows of the three tables."""
    common = {**versions(sampler), "made_at": clock.now()}
    episodes = pd.DataFrame([result.episode for result in results]).assign(**common)
    decisions = pd.DataFrame([row for result in results for row in result.decisions])
    postmortems = pd.DataFrame([result.postmortem for result in results if result.postmortem]).assign(
        made_at=clock.now())
    return {"episodes": episodes, "decisions": decisions, "postmortems": postmortems}


def _write_cards(stored: pd.DataFrame, board: pd.DataFrame, episodes: pd.DataFrame, engineers: Engineers) -> None:
    """Write a model card into the folder of each evaluated checkpoint."""
    from f1_pipelines.engineer.model_card import model_card

    for row in stored.to_dict("records"):
        (engineers.folder / row["path"] / "README.md").write_text(model_card(row, board, episodes))
