"""Model card of an engineer from rows of the warehouse: description, scores, limits."""
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from f1_pipelines.engineer.profiles import PROFILES, Profile
from f1_pipelines.sim.scenarios import UNSEEN_FAMILY

ALL, UNSEEN_CIRCUIT = "all", "unseen_circuit"
WORST = 2  # number of families named as limits
STAGES = {"untrained": "before any training", "sft": "imitation of the expert (SFT)",
          "grpo": "trained in the simulator (GRPO), starting from the SFT engineer"}
ORIGINS = {"fresh": "weights drawn from the training seed", "package": "weights of the package `{}`",
           "hub": "weights of `{}` from the hub"}


def model_card(engineer: Mapping[str, Any], leaderboard: pd.DataFrame, episodes: pd.DataFrame) -> str:
    """Write the card of a checkpoint in Markdown.

    Args:
        engineer: Row of `strategy.engineers`.
        leaderboard: Rows of `strategy.leaderboard`, of all policies.
        episodes: Rows of `strategy.episodes`; those of other checkpoints are ignored.
    """
    board = leaderboard[leaderboard["checkpoint"] == engineer["checkpoint"]]
    races = episodes[episodes["checkpoint"] == engineer["checkpoint"]]
    parts = [_head(engineer), _training(engineer)]
    if board.empty:
        parts.append("## Scores\n\nNot evaluated yet: materialize `strategy_evaluation`.")
    else:
        parts += [_scores(board, leaderboard), _limits(board, leaderboard), _seeds(races)]
    return "\n\n".join([*parts, _loading(engineer)]) + "\n"


def _head(engineer: Mapping[str, Any]) -> str:
    profile = PROFILES.get(engineer["profile"])
    architecture = profile.architecture if profile else None
    size = "" if architecture is None else (
        f" Qwen3 architecture, {architecture.layers} layers, width {architecture.hidden}, {architecture.heads} heads, "
        f"vocabulary of {architecture.vocabulary} at most.")
    return (f"# Race engineer `{engineer['checkpoint']}`\n\n"
            f"A causal language model that calls a simulated race lap by lap: it reads the text of an observation and "
            f"answers with one command, without thinking. Profile `{engineer['profile']}`, "
            f"{STAGES[engineer['stage']]}; {int(engineer['n_parameters']):,} parameters.{size} "
            f"Starts from {_origin(engineer, profile)}.")


def _origin(engineer: Mapping[str, Any], profile: Profile | None) -> str:
    if not pd.isna(engineer["parent"]):
        return f"checkpoint `{engineer['parent']}`"
    return ORIGINS[profile.weights].format(profile.source) if profile else "unknown weights"


def _training(engineer: Mapping[str, Any]) -> str:
    settings = json.loads(engineer["settings"])
    fields = {
        "Environment version": engineer["env_version"], "Prompt version": engineer["prompt_version"],
        "Data version (circuits and fields, `scenes_version`)": f"`{engineer['scenes_version']}`",
        "Training seed": engineer["training_seed"],
        "Turns (SFT) or sampled completions (GRPO)": f"{engineer['n_turns']:,}",
        "Device": engineer["device"], "Time": f"{engineer['seconds']:.0f} s",
        "Speed": _dashed(engineer["tokens_per_s"], "{:.0f} tokens/s"),
        "Peak memory": _dashed(engineer["peak_memory_gib"], "{:.2f} GiB"),
        "Created at": f"{pd.Timestamp(engineer['made_at']):%Y-%m-%d %H:%M} UTC",
        "Settings": ", ".join(f"{name} {value}" for name, value in settings.items()) or "none",
    }
    rows = [f"| {name} | {value} |" for name, value in fields.items()]
    return "## Training\n\n| | |\n| --- | --- |\n" + "\n".join(rows)


def _scores(board: pd.DataFrame, leaderboard: pd.DataFrame) -> str:
    rows = [f"| {row.family} | {row.variant} | {row.n} | {row.mean:.3f} ({row.low:.3f} to {row.high:.3f}) | "
            f"{_gap(row)} | {_dashed(row.regret, '{:.3f}')} | {row.parse_failures:.2%} |" for row in board.itertuples()]
    overall = leaderboard[(leaderboard["family"] == ALL) & (leaderboard["variant"] == "plain")].sort_values("mean")
    others = ", ".join(f"{row.policy} {row.mean:.3f}" for row in overall.itertuples())
    return ("## Scores\n\nMean score of held-out races in [0, 1] with its 95 % bootstrap interval. Gap closed: (this - "
            "untrained) / (expert - untrained) on the same races. Greedy decoding, no fallback policy.\n\n"
            "| family | variant | races | score | gap closed | regret to the oracle | parse failures |\n"
            "| --- | --- | --: | --- | --- | --: | --: |\n" + "\n".join(rows)
            + f"\n\nAll families, all policies: {others}.")


def _limits(board: pd.DataFrame, leaderboard: pd.DataFrame) -> str:
    """Limits that the data shows."""
    plain = board[board["variant"] == "plain"].set_index("family")
    limits = ["Knows sprints of 10 to 15 laps with six cars in this project's simulator, nothing about real races."]
    expert = leaderboard[(leaderboard["policy"] == "expert") & (leaderboard["variant"] == "plain")].set_index("family")
    gaps = (expert["mean"] - plain["mean"]).drop([ALL, UNSEEN_CIRCUIT], errors="ignore").dropna().sort_values()
    for family, gap in gaps[::-1].head(WORST).items():
        limits.append(f"{gap:.3f} behind the expert in {family} ({plain.loc[family, 'mean']:.3f}).")
    if UNSEEN_FAMILY in plain.index:
        limits.append(f"{UNSEEN_FAMILY} was never trained on: {_mean(plain.loc[UNSEEN_FAMILY])}.")
    if UNSEEN_CIRCUIT in plain.index:
        limits.append(f"Circuits never trained on: {_mean(plain.loc[UNSEEN_CIRCUIT])}.")
    overall = board[board["family"] == ALL].set_index("variant")
    if "renamed" in overall.index and "plain" in overall.index:
        limits.append(f"With other car numbers and an unknown circuit name: {_mean(overall.loc['renamed'])}, "
                      f"otherwise {overall.loc['plain', 'mean']:.3f}.")
    parse_failures = float(board["parse_failures"].max())
    limits.append(f"Up to {parse_failures:.2%} of its outputs did not parse; each costs at least as much as STAY_OUT."
                  if parse_failures else "All its outputs parsed.")
    if (board["constant_score"].astype(bool)).any():
        limits.append("Its score is the same in every race of a family, which points to a defect.")
    return "## Limits\n\n" + "\n".join(f"- {line}" for line in limits)


def _seeds(episodes: pd.DataFrame) -> str:
    rows = [f"| {split} | {family} | {len(races)} | {_ranges(races)} |"
            for (split, family), races in episodes.drop_duplicates(["family", "seed"]).groupby(["split", "family"])]
    return ("## Held-out races\n\nNever trained on and not used to choose a checkpoint.\n\n"
            "| split | family | races | seeds |\n| --- | --- | --: | --- |\n" + "\n".join(rows))


def _loading(engineer: Mapping[str, Any]) -> str:
    return ("## How to load it\n\n```python\nfrom pathlib import Path\n\n"
            "from f1_pipelines.engineer.inference.checkpoints import load_engineer\n"
            "from f1_pipelines.sim.environment.environment import RaceEnvironment\n\n"
            f"engineer = load_engineer(Path(\"{engineer['path']}\"))  # in the folder of checkpoints\n"
            "environment = RaceEnvironment()\nobservation = environment.reset(7, \"late_safety_car\")\n"
            "print(engineer.commands([observation.text]))\n```\n\n`transformers` can "
            "read the folder, too; the chat template is the tokenizer's. `meta.json` holds versions and digests; "
            "`load_engineer` refuses other versions.")


def _ranges(races: pd.DataFrame) -> str:
    seeds = sorted(races["seed"].astype(int))
    return f"{len(seeds)} from {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def _mean(row: pd.Series) -> str:
    return f"{row['mean']:.3f} ({row['low']:.3f} to {row['high']:.3f}, {row['n']} races)"


def _gap(row: Any) -> str:
    return "-" if pd.isna(row.gap_closed) else f"{row.gap_closed:.0%} ({row.gap_low:.0%} to {row.gap_high:.0%})"


def _dashed(value: object, template: str) -> str:
    return "-" if pd.isna(value) else template.format(value)
