"""No checkpoint is promoted before its blocking checks have passed, in its run or a later one."""
import dagster as dg
import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file

from f1_pipelines.assets.engineer_promotion import engineer_promotion_checks
from f1_pipelines.definitions import defs
from f1_pipelines.engineer.inference.checkpoints import read_checkpoint, save_engineer
from f1_pipelines.engineer.profiles import Architecture
from f1_pipelines.engineer.prompting.rendering import Rendering
from f1_pipelines.engineer.training.tiny_model import fresh_model, train_tokenizer
from f1_pipelines.serve.policies import promoted_engineers
from f1_pipelines.sim.environment.prompt import PROMPT_VERSION
from f1_pipelines.sim.scenarios import ENV_VERSION, FAMILIES
from f1_pipelines.tables.strategy import DIMENSIONS, ENGINEERS, EPISODES, LEADERBOARD, TRAINING_CURVE
from f1_pipelines.warehouse.replace import replace_slices

LOADED = ("race_calendar", "practice_results", "qualifying_results", "race_results", "ranking_features")
TRAINING = {"ops": {"pretrained_ranker": {"config": {"seasons": [2025], "temperature": 3.4}}}}
DECISIONS = "SELECT decision, reason FROM ranking.promotions ORDER BY decided_at, rowid"


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def materialized(resources, instance):
    """Materialize assets with their checks in one Dagster instance; return whether the run succeeded."""
    def run(*names: str, first: str = "2025-saudi-arabia", last: str | None = None, config: dict | None = None,
            only_checks: bool = False) -> bool:
        selection = dg.AssetSelection.checks_for_assets(*(dg.AssetKey(name) for name in names)) if only_checks else \
            dg.AssetSelection.assets(*names)
        tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last or first}
        return dg.materialize([*defs.assets, *defs.asset_checks], selection=selection, instance=instance,
                              resources=resources, tags={} if only_checks else tags, run_config=config,
                              raise_on_error=False).success

    return run


def change(resources, *statements: str) -> None:
    with resources["warehouse"].write("test") as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_ranker_waits_for_its_blocking_checks(materialized, resources, rows):
    """A link without a parent exists during one update and is removed later."""
    pretrain = {"first": "2025-australia", "last": "2025-bahrain", "config": TRAINING}
    assert materialized(*LOADED, "pretrained_ranker", **pretrain)
    assert rows("SELECT count(*) FROM ranking.checkpoints WHERE promoted") == [(0,)], "training alone promotes nothing"
    assert materialized("promoted_ranker", **pretrain | {"config": None})
    assert rows(DECISIONS) == [("promoted", "the first champion")]
    champion = rows("SELECT checkpoint FROM ranking.checkpoints WHERE promoted")

    change(resources, """
        INSERT INTO ranking.updates BY NAME
        SELECT 'lost' AS checkpoint, 'ewc' AS kind, 'nowhere' AS parent, 'champion' AS model, 'nowhere' AS pretrained,
               '2025-saudi-arabia' AS weekend, 'ewc' AS method, '{}' AS settings, 1 AS n_races,
               0.7 AS old_season_before, 0.7 AS old_season_after, 0.1 AS seconds, 'x' AS data_version,
               false AS current, now() AS created_at""")
    assert not materialized(*LOADED, "ewc_ranker", "promoted_ranker")
    assert len(rows(DECISIONS)) == 1
    assert materialized("promoted_ranker")
    decision, reason = rows(DECISIONS)[-1]
    assert decision == "candidate" and "every_link_has_its_parent of ewc_ranker failed in run" in reason
    assert rows("SELECT checkpoint FROM ranking.checkpoints WHERE promoted") == champion
    change(resources, "DELETE FROM ranking.updates WHERE checkpoint = 'lost'")
    assert materialized("ewc_ranker", "promoted_ranker")
    assert rows(DECISIONS)[-1] == ("candidate", "1 races to judge it by (needs 3)")


VERSIONS = {"env_version": ENV_VERSION, "prompt_version": PROMPT_VERSION, "scenes_version": "x"}
WHEN = pd.Timestamp("2026-11-29", tz="UTC")
SMALL = Architecture(hidden=16, layers=1, heads=1, kv_heads=1, head_dim=16, feed_forward=16, vocabulary=320)
PROMOTED = "SELECT stage, checkpoint FROM strategy.engineers WHERE promoted ORDER BY ALL"


def put(connection, table, frame) -> None:
    replace_slices(connection, table, frame.reindex(columns=table.column_names), accept_fewer_rows=True)


@pytest.fixture
def engineers(resources) -> dict[str, str]:
    """Ids by stage of three stored engineers, evaluated on twelve races each, and a former GRPO engineer."""
    tokenizer = train_tokenizer(["LAP 1 STAY_OUT PIT_NOW hard"], SMALL)
    rendering, folder = Rendering(tokenizer, system=False), resources["engineers"].folder
    stored, parent = {}, None
    for seed, stage in enumerate(("untrained", "sft", "former", "grpo")):
        checkpoint = save_engineer(fresh_model(tokenizer, SMALL, seed=seed), rendering, folder,
                                   {"profile": "tiny", "stage": stage, "parent": parent})
        stored[stage] = checkpoint.id
        parent = stored.get("sft", checkpoint.id)
    parents = {"untrained": None, "sft": stored["untrained"], "former": stored["sft"], "grpo": stored["sft"]}
    rows = [{"checkpoint": checkpoint, "stage": "grpo" if stage == "former" else stage, "profile": "tiny",
             "parent": parents[stage], "training_seed": 0, "n_turns": 1, "n_parameters": 1, "settings": "{}",
             "device": "cpu", "seconds": 1.0, "path": checkpoint, "promoted": stage == "former",
             "made_at": WHEN + pd.Timedelta(hours=number), **VERSIONS}
            for number, (stage, checkpoint) in enumerate(stored.items())]
    scores = {"untrained": 0.2, "sft": 0.6, "grpo": 0.7}
    episodes = [{"policy": stage, "variant": "plain", "family": list(FAMILIES)[race % 6], "seed": race, "split": "test",
              "circuit": "monza", "checkpoint": stored[stage], "score": score + race / 1000, "regret": 0.1,
              "laps_called": 10, "parse_failures": 10 if stage == "untrained" else 0, "fallbacks": 0, "made_at": WHEN,
              **dict.fromkeys(DIMENSIONS, 0.5), **VERSIONS} for stage, score in scores.items() for race in range(12)]
    curve = [{"run": stored["grpo"], "stage": "grpo", "profile": "tiny", "training_seed": 0, "step": step,
              "metric": metric, "value": value} for step, metric, value in (
                  (0, "selection_score", 0.6), (5, "selection_score", 0.7), (0, "kl_to_sft", 0.0), (5, "clipped", 0.0),
                  (5, "parse_failures", 0.0))]
    board = [{"policy": "sft", "variant": "plain", "family": "all", "n": 12, "mean": 0.6, "low": 0.5, "high": 0.7,
              "parse_failures": 0.0, "constant_score": False, "made_at": WHEN, **dict.fromkeys(DIMENSIONS, 0.5),
              **VERSIONS}]
    with resources["warehouse"].write("engineers") as connection:
        for table, records in ((ENGINEERS, rows), (EPISODES, episodes), (TRAINING_CURVE, curve), (LEADERBOARD, board)):
            put(connection, table, pd.DataFrame(records))
    return stored


def test_engineers_are_promoted_after_their_evaluation(materialized, engineers, rows, resources):
    assert rows(PROMOTED) == [("grpo", engineers["former"])]
    assert not engineer_promotion_checks[0](resources["warehouse"]).passed, "no decision on the newest yet"
    assert materialized("promoted_engineers")
    assert rows(PROMOTED) == sorted((stage, engineers[stage]) for stage in ("grpo", "sft", "untrained"))
    assert [offer.checkpoint for offer in promoted_engineers().values()] == [
        engineers[stage] for stage in ("grpo", "sft", "untrained")], "the former engineer is no longer served"
    assert engineer_promotion_checks[0](resources["warehouse"]).passed


EPISODE = "UPDATE strategy.episodes SET {} WHERE policy = '{}'"


@pytest.mark.parametrize(("stage", "damage", "why"), [
    ("sft", EPISODE.format("parse_failures = 1", "sft"), "10.0% of its outputs are no commands (at most 0.5%)"),
    ("grpo", EPISODE.format("parse_failures = 1", "grpo"), "10.0% of its outputs are no commands"),
    ("sft", EPISODE.format("score = 0.1", "sft"), "worse than its parent"),
    ("grpo", EPISODE.format("score = score - 0.2", "grpo"), "worse than its parent"),
    ("sft", EPISODE.format("checkpoint = 'another'", "sft"), "it has driven 0 races of the evaluation"),
    ("untrained", "DELETE FROM strategy.episodes WHERE policy = 'untrained'", "it has driven 0 races"),
    ("grpo", "UPDATE strategy.training_curve SET value = 0.6 WHERE metric = 'selection_score'",
     "no GRPO step beat the SFT engineer"),
])
def test_an_engineer_that_fails_is_not_promoted_and_the_run_succeeds(materialized, engineers, rows, resources, stage,
                                                                     damage, why):
    change(resources, damage)
    assert materialized("promoted_engineers")
    promoted = dict(rows(PROMOTED))
    assert engineers[stage] not in promoted.values()
    assert promoted.get("grpo") == engineers["former" if stage == "grpo" else "grpo"], "the former one stays promoted"
    [(reason,)] = rows(f"SELECT promotion FROM strategy.engineers WHERE checkpoint = '{engineers[stage]}'")
    assert why in reason
    check_result = engineer_promotion_checks[0](resources["warehouse"])
    assert not check_result.passed and check_result.severity is dg.AssetCheckSeverity.WARN


@pytest.mark.parametrize("damage", ["not a number", "cut off"])
def test_a_promoted_engineer_with_broken_weights_is_no_longer_served(materialized, engineers, rows, resources, damage):
    """The weights may be not finite although their digest is right."""
    assert materialized("promoted_engineers")
    folder = resources["engineers"].folder / engineers["sft"]
    file = folder / "model.safetensors"
    if damage == "cut off":
        file.write_bytes(file.read_bytes()[:-8])
    else:
        tensors = load_file(file)
        next(iter(tensors.values()))[:] = np.nan
        save_file(tensors, file, metadata={"format": "pt"})
        meta = folder / "meta.json"
        before = read_digest(folder)
        meta.write_text(meta.read_text().replace(before, digest(file)))
        assert read_checkpoint(folder).id == engineers["sft"]
    assert materialized("promoted_engineers")
    assert "sft" not in dict(rows(PROMOTED))
    [(reason,)] = rows(f"SELECT promotion FROM strategy.engineers WHERE checkpoint = '{engineers['sft']}'")
    assert ("not finite" if damage == "not a number" else "can't be loaded") in reason


def read_digest(folder) -> str:
    import json

    return json.loads((folder / "meta.json").read_text())["weights_sha256"]


def digest(file) -> str:
    from f1_pipelines.checkpoints.store import sha256_of

    return sha256_of(sorted(file.parent.glob("*.safetensors")))


def test_a_grpo_engineer_that_failed_a_blocking_check_is_not_served(materialized, engineers, rows, resources):
    """`calls_stay_calls` fails in one run and counts in a later run without it."""
    change(resources, "UPDATE strategy.training_curve SET value = 0.2 WHERE metric = 'parse_failures'")
    materialized("grpo_engineer", only_checks=True)
    assert materialized("promoted_engineers")
    assert dict(rows(PROMOTED))["grpo"] == engineers["former"]
    assert promoted_engineers()["grpo-tiny"].checkpoint == engineers["former"]
    assert promoted_engineers()["sft-tiny"].checkpoint == engineers["sft"], "the SFT engineer passed its checks"
    [(reason,)] = rows(f"SELECT promotion FROM strategy.engineers WHERE checkpoint = '{engineers['grpo']}'")
    assert "blocking checks did not pass: calls_stay_calls of grpo_engineer failed in run" in reason
    change(resources, "UPDATE strategy.training_curve SET value = 0 WHERE metric = 'parse_failures'")
    materialized("grpo_engineer", only_checks=True)
    assert materialized("promoted_engineers")
    assert dict(rows(PROMOTED))["grpo"] == engineers["grpo"]
