"""Plots of the engineers' training: metrics, scores, one race before and after."""
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import duckdb
import pandas as pd

from f1_pipelines.assets.engineer import ENGINEER_GROUP, newest_engineer, sampler_of
from f1_pipelines.assets.metadata import described
from f1_pipelines.assets.strategy_evaluation import strategy_evaluation
from f1_pipelines.resources.engineers import Engineers
from f1_pipelines.resources.warehouse import Warehouse
from f1_pipelines.tables import strategy as tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
    from f1_pipelines.sim.policies.play import Played

_STAGES = ("untrained", "sft", "grpo", "expert")


@dg.asset(**ENGINEER_GROUP, kinds={"python", "matplotlib"}, deps=[strategy_evaluation],
          metadata=described(tables.DECISIONS))
def race_story(warehouse: Warehouse, engineers: Engineers) -> dg.MaterializeResult[None]:
    """Plot of one held-out race before and after training. One row per command.

    Chooses the race with the median gain from training.
    """
    from f1_pipelines.plots.engineer_races import story_figure

    with warehouse.read() as connection:
        sampler = sampler_of(connection)
        gains = connection.execute("""
            SELECT before.family, before.seed, after.policy, after.score - before.score AS gain
            FROM strategy.episodes before JOIN strategy.episodes after USING (family, seed, variant, scenes_version)
            WHERE before.policy = 'untrained' AND variant = 'plain' AND scenes_version = ? AND after.policy = (
                SELECT policy FROM strategy.leaderboard WHERE policy IN ('sft', 'grpo') AND family = 'all'
                AND variant = 'plain' ORDER BY mean DESC LIMIT 1)
            ORDER BY gain, family, seed""", [sampler.version]).df()
        if gains.empty:
            raise dg.Failure("no race has episodes of both an untrained and a trained engineer; materialize "
                             "strategy_evaluation first")
        row = gains.iloc[len(gains) // 2]
        key = (str(row["family"]), int(row["seed"]))
        before, after = (_played(connection, sampler, policy, key) for policy in ("untrained", str(row["policy"])))
    pictures = _saved({"race-story": story_figure(before, after)}, Path(engineers.pictures))
    return dg.MaterializeResult(metadata={
        "family": key[0], "seed": key[1], "policy": row["policy"], "gain": float(row["gain"]), **pictures})


@dg.asset(**ENGINEER_GROUP, kinds={"python", "matplotlib"}, deps=[strategy_evaluation],
          metadata=described(tables.TRAINING_CURVE))
def training_evidence(warehouse: Warehouse, engineers: Engineers) -> dg.MaterializeResult[None]:
    """Plots of training curves, scores by family, scores by stage and the expert on each circuit. One row per step.

    Uses the logs of the newest SFT engineer, of the GRPO engineers that started from it, and the leaderboard.
    """
    from f1_pipelines.plots.engineer_races import circuit_grid
    from f1_pipelines.plots.engineers import journey_figure, scores_figure, training_figure

    with warehouse.read() as connection:
        sampler = sampler_of(connection)
        sft = newest_engineer(connection, "sft", engineers.profile)["checkpoint"]
        curve = connection.execute("""
            SELECT c.* FROM strategy.training_curve c JOIN strategy.engineers e ON c.run = e.checkpoint
            WHERE ? IN (e.checkpoint, e.parent) ORDER BY c.run, c.step""", [sft]).df()
        board = connection.sql("SELECT * FROM strategy.leaderboard WHERE variant = 'plain'").df()
        races = connection.execute("""
            SELECT family, seed FROM strategy.episodes WHERE policy = 'expert' AND scenes_version = ?
            QUALIFY row_number() OVER (PARTITION BY circuit ORDER BY family, seed) = 1""", [sampler.version]).fetchall()
        expert = [_played(connection, sampler, "expert", key) for key in races]
    figures = {"training": training_figure(curve, board), "scores": scores_figure(board),
               "journey": journey_figure(_journey(board, curve)), "circuits": circuit_grid(expert)}
    return dg.MaterializeResult(metadata={"dagster/row_count": len(curve), "races_drawn": len(expert),
                                          **_saved(figures, Path(engineers.pictures))})


def _journey(board: pd.DataFrame, curve: pd.DataFrame) -> pd.DataFrame:
    """Scores of the stages on held-out races, with the student before each round on that round's races in between."""
    overall = board[board["family"] == "all"].set_index("policy")
    stages = [stage for stage in _STAGES if stage in overall.index]
    held_out = overall.loc[stages, ["mean", "low", "high"]].reset_index().assign(label=lambda rows: rows["policy"])
    rounds = curve.pivot_table(index="step", columns="metric", values="value").filter(regex="^student_").dropna()
    if rounds.empty:
        return held_out
    rounds = rounds.rename(columns={"student_score": "mean", "student_low": "low",
                                    "student_high": "high"}).reset_index()
    rounds = rounds.assign(policy="sft", label=[f"before\nround {k}*" for k in range(1, len(rounds) + 1)])
    position = stages.index("sft")
    return pd.concat([held_out[:position], rounds[held_out.columns], held_out[position:]], ignore_index=True)


def _played(connection: duckdb.DuckDBPyConnection, sampler: "ScenarioSampler", policy: str,
            key: tuple[str, int]) -> "Played":
    """Replay a race of the evaluation with its stored commands."""
    from f1_pipelines.engineer.evaluation.episodes import replay_calls

    calls = connection.execute("SELECT raw_output FROM strategy.decisions WHERE policy = ? AND variant = 'plain' AND "
                               "family = ? AND seed = ? ORDER BY lap", [policy, *key]).fetchall()
    return replay_calls(sampler.scenario(*key), policy, [output for (output,) in calls])


def _saved(figures: dict[str, "Figure"], folder: Path) -> dict[str, dg.MetadataValue]:
    """Save each figure as PNG and SVG; return metadata with the pictures and their paths."""
    from f1_pipelines.assets.metadata import picture
    from f1_pipelines.plots.style import png_of, svg_of

    folder.mkdir(parents=True, exist_ok=True)
    metadata: dict[str, dg.MetadataValue] = {}
    for name, figure in figures.items():
        png = png_of(figure)
        for suffix, content in (("png", png), ("svg", svg_of(figure))):
            temporary = folder / f".{name}.{suffix}"
            temporary.write_bytes(content)
            temporary.replace(folder / f"{name}.{suffix}")
        metadata |= {name: picture(png, name), f"{name}_file": dg.MetadataValue.path(str(folder / f"{name}.png"))}
    return metadata
