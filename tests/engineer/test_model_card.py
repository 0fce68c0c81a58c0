"""A model card reports the rows of the warehouse."""
from __future__ import annotations

import re
from datetime import UTC, datetime

import pandas as pd
import pytest

from f1_pipelines.engineer.evaluation.leaderboard import leaderboard
from f1_pipelines.engineer.model_card import model_card
from f1_pipelines.sim.scenarios import FAMILIES
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS

NOW = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
VERSIONS = {"env_version": 2, "prompt_version": 2, "scenes_version": "00ff", "made_at": NOW}
ENGINEER = {
    "checkpoint": "c0ffee", "stage": "sft", "profile": "tiny", "parent": "d00d", "training_seed": 3, "n_turns": 7654,
    "n_parameters": 987_654, "settings": '{"epochs": 4.0, "lr": 0.002}', **VERSIONS, "device": "cpu", "seconds": 125.4,
    "tokens_per_s": 4321.0, "peak_memory_gib": pd.NA, "path": "engineers/c0ffee", "promoted": True}
LEVELS = {"untrained": 0.2, "sft": 0.7, "expert": 0.9}


@pytest.fixture(scope="module")
def episodes() -> pd.DataFrame:
    """Six races of each family and policy, and four on unseen circuits. The engineer is bad at one family."""
    rows = []
    for policy, level in LEVELS.items():
        for family in FAMILIES:
            for k in range(10):
                loss = 0.4 if policy == "sft" and family == "late_safety_car" else 0.0
                rows.append({
                    "policy": policy, "variant": "plain", "family": family, "seed": 100 + k,
                    "split": "unseen_circuit" if k > 5 else "test", "circuit": "monza",
                    "checkpoint": "c0ffee" if policy == "sft" else None, "score": level - loss + 0.01 * (k % 3),
                    **dict.fromkeys(DIMENSIONS, 0.5), "regret": 0.1, "laps_called": 10,
                    "parse_failures": int(policy == "sft" and k == 0), **VERSIONS})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def card(episodes) -> str:
    return model_card(ENGINEER, leaderboard(episodes), episodes)


@pytest.mark.parametrize("text", [
    "# Race engineer `c0ffee`", "`tiny`", "987,654 parameters", "3 layers", "checkpoint `d00d`",
    "| Prompt version | 2 |", "`00ff`", "| Training seed | 3 |", "7,654", "epochs 4.0, lr 0.002", "125 s",
    "4321 tokens/s", "2026-11-29 12:30 UTC", "| Peak memory | - |", 'load_engineer(Path("engineers/c0ffee"))'])
def test_it_describes_the_engineer(card, text):
    assert text in card


def test_its_scores_equal_the_leaderboard(card, episodes):
    board = leaderboard(episodes)
    for row in board[board["policy"] == "sft"].itertuples():
        line = next(line for line in card.splitlines() if line.startswith(f"| {row.family} | plain"))
        assert f"| {row.n} | {row.mean:.3f} ({row.low:.3f} to {row.high:.3f}) | {row.gap_closed:.0%} (" in line
        assert line.endswith(f"{row.parse_failures:.2%} |")
    assert "untrained 0.2" in card and "expert 0.9" in card


def test_its_limits_come_from_the_data(card):
    limits = card.split("## Limits")[1].split("##")[0]
    assert re.search(r"- 0\.6\d\d behind the expert in late_safety_car", limits)
    assert "never trained on" in limits and "virtual_safety_car_window" in limits and "1.67% of its outputs" in limits
    assert "same in every race" not in limits


def test_it_lists_the_seeds_of_its_races(card):
    assert "| test | late_safety_car | 6 | 6 from 100 to 105 |" in card
    assert "| unseen_circuit | late_safety_car | 4 | 4 from 106 to 109 |" in card


def test_the_card_of_a_checkpoint_without_races_has_no_scores(episodes):
    other = {**ENGINEER, "checkpoint": "beef", "parent": None, "stage": "untrained", "settings": "{}", "n_turns": 0}
    card = model_card(other, leaderboard(episodes), episodes)
    assert "Not evaluated yet" in card and "0.7" not in card and "weights drawn from the training seed" in card


def test_a_constant_score_is_a_limit(episodes):
    flat = episodes.assign(score=episodes["score"].where(episodes["policy"] != "sft", 0.5))
    assert "same in every race" in model_card(ENGINEER, leaderboard(flat), flat)
