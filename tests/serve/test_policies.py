"""Language models as served policies: a real checkpoint drives; no other policy replaces an unavailable one."""
from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest
import requests

from f1_pipelines.serve.policies import ENGINEERS_FOLDER, _load_engineer
from f1_pipelines.settings import settings
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.prompt import PROMPT_VERSION
from f1_pipelines.sim.scenarios import ENV_VERSION
from f1_pipelines.warehouse.database import WarehouseFile
from f1_pipelines.warehouse.replace import replace_slices

RACE = {"policy": "untrained-tiny", "seed": 3}


@pytest.fixture(scope="module")
def checkpoint(url):
    """A small untrained model, stored like an engineer."""
    from f1_pipelines.engineer.inference.checkpoints import save_engineer
    from f1_pipelines.engineer.profiles import Architecture
    from f1_pipelines.engineer.prompting.rendering import Rendering
    from f1_pipelines.engineer.training.tiny_model import fresh_model, train_tokenizer

    architecture = Architecture(hidden=16, layers=1, heads=1, kv_heads=1, head_dim=16, feed_forward=16, vocabulary=320)
    tokenizer = train_tokenizer([RaceEnvironment().reset(1, "dry_strategy_sprint").text, "STAY_OUT"], architecture)
    return save_engineer(fresh_model(tokenizer, architecture, seed=1), Rendering(tokenizer, system=False),
                         settings().checkpoints_path / ENGINEERS_FOLDER, {"profile": "tiny", "stage": "untrained"})


@pytest.fixture
def promoted(checkpoint):
    """Promote the model in the published warehouse during a test."""
    from f1_pipelines.tables.strategy import ENGINEERS

    row = {"checkpoint": checkpoint.id, "stage": "untrained", "profile": "tiny", "path": checkpoint.path.name,
           "promoted": True, "training_seed": 1, "n_turns": 0, "n_parameters": 1, "settings": "{}", "device": "cpu",
           "seconds": 0.0, "env_version": ENV_VERSION, "prompt_version": PROMPT_VERSION, "scenes_version": "1",
           "made_at": datetime.now(UTC)}
    file = WarehouseFile(settings().f1_warehouse)
    for changes in ({}, {"promoted": False}):
        frame = pd.DataFrame([row | changes]).reindex(columns=ENGINEERS.column_names)
        with file.write("test") as connection:
            replace_slices(connection, ENGINEERS, ENGINEERS.conform(frame))
        if not changes:
            yield checkpoint
        _load_engineer.cache_clear()


def test_a_promoted_model_is_listed_and_its_outputs_are_the_commands(url, promoted):
    policies = requests.get(f"{url}/policies", timeout=60).json()["policies"]
    assert {"name": "untrained-tiny", "kind": "language model", "checkpoint": promoted.id} in policies
    race = requests.post(f"{url}/simulate", json=RACE, timeout=120).json()
    calls = [lap["call"] for lap in race["laps"][1:]]
    assert all(promoted.id in call["reason"] for call in calls)
    assert race["end"]["details"]["illegal"] == sum(call["error"] is not None for call in calls) > 0
    assert race == requests.post(f"{url}/simulate", json=RACE, timeout=120).json()


def test_a_model_with_damaged_files_is_unavailable(url, promoted):
    weights = promoted.path / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1])
    try:
        reply = requests.post(f"{url}/simulate", json=RACE, timeout=60)
    finally:
        weights.write_bytes(content)
    assert reply.status_code == 503 and "can't be loaded" in reply.json()["detail"]
    assert str(promoted.path) not in reply.text


def test_a_model_that_is_not_promoted_is_unknown(url, checkpoint):
    reply = requests.post(f"{url}/simulate", json=RACE, timeout=60)
    assert reply.status_code == 422 and "unknown policy 'untrained-tiny'. Valid: random," in reply.json()["detail"]
