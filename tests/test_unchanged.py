"""Recorded races, predictions, ids, prompts and interfaces, which refactoring must not change.

`F1_RECORD=1 pytest tests/test_unchanged.py` updates `unchanged.json`. Do this only with a new version
(`ENV_VERSION`, `PROMPT_VERSION`, `FEATURE_VERSION`, `SCHEMA_VERSION`) or an intended change of an interface.

Text, orders and ids are compared exactly. Floats may differ by 1e-9, since processors round differently;
`F1_SAME_BITS=1` compares them exactly, for use on one machine.
"""
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import click
import duckdb
import numpy as np
import pandas as pd
import pytest
import torch

RECORDED = Path(__file__).with_name("unchanged.json")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def races() -> dict[str, Any]:
    """Sprints of each family, driven by two policies, and one by the expert."""
    from f1_pipelines.sim.policies.play import play
    from f1_pipelines.sim.scenarios import FAMILIES, split_of

    played = {}
    for family in FAMILIES:
        for seed in (3, 1_000_003):
            for policy in ("random", "checklist"):
                race = play(family, seed, policy)
                played[f"{family}/{seed}/{policy}"] = [
                    digest("\n".join(lap["observation"] for lap in race.decisions)),
                    digest("\n".join(f"{lap['command']} {lap['answer']} {lap['error']}" for lap in race.decisions)),
                    race.split, race.circuit, len(race.decisions), race.info["position"], list(race.grid),
                    [lap["reward"] for lap in race.decisions], list(race.score.values()), race.info["regret_s"]]
    expert = play("weather_roulette", 5, "expert")
    splits = {family: [split_of(family, seed) for seed in range(50)] for family in FAMILIES}
    return {"played": played, "splits": splits,
            "expert": [[lap["command"] for lap in expert.decisions], list(expert.score.values())]}


def grand_prix_and_batch() -> dict[str, Any]:
    """A Grand Prix of ten hand-made cars, the oracle in a sprint, and a batch of one sprint per family."""
    from f1_pipelines.sim.engine.priors import circuit_prior
    from f1_pipelines.sim.environment.actions import TEXT_FREE
    from f1_pipelines.sim.environment.vector import VectorEnvironment
    from f1_pipelines.sim.policies.play import play, played, policy_for
    from f1_pipelines.sim.scenarios import FAMILIES, Entry, GrandPrix, make_grand_prix, make_scenario

    weekend = GrandPrix("2026-monaco", circuit_prior("monaco"), 20, tuple(
        Entry(f"driver-{n}", n, f"team-{n // 2}", n, (n - 5) / 8.0) for n in range(1, 11)), 0.5)
    races = {}
    for seed in (3, 4):
        for policy in ("random", "checklist"):
            scenario = make_grand_prix(weekend, "driver-4", seed)
            race = played(scenario, policy_for(policy, scenario), policy)
            flag = [row["car"] for row in race.laps if row["lap"] == scenario.laps and row["position"]]
            races[f"{seed}/{policy}"] = [
                digest("\n".join(lap["observation"] for lap in race.decisions)),
                digest("\n".join(lap["command"] for lap in race.decisions)), race.info["position"], flag,
                list(race.grid), [lap["reward"] for lap in race.decisions], list(race.score.values())]
    oracle = play("weather_roulette", 5, "oracle")
    batch, steps, over = VectorEnvironment([make_scenario(family, 7) for family in FAMILIES]), [], np.zeros(1, bool)
    while not over.all():
        actions = (np.arange(len(FAMILIES)) * 5 + len(steps) * 3) % TEXT_FREE
        features, rewards, over = batch.step(actions)
        steps.append([float(features.sum()), rewards.tolist()])
    return {"races": races, "oracle": [[lap["command"] for lap in oracle.decisions], list(oracle.score.values())],
            "steps": steps, "scores": [list(score.values()) for score in batch.scores()]}


def sample() -> dict[str, Any]:
    """A weekend of the sample source, table by table."""
    from f1_pipelines.identity.weekends import weekend
    from f1_pipelines.sources.sample.source import SampleSource

    source = SampleSource(lambda: datetime(2026, 12, 1, tzinfo=UTC))
    tables = {}
    for fetched in (source.results([weekend("2024-monaco")]), source.qualifying([weekend("2024-monaco")]),
                    source.practice([weekend("2024-monaco")]), source.laps([weekend("2024-monaco")])):
        for name, frame in fetched.tables.items():
            frame = frame.drop(columns=["fetched_at"], errors="ignore")
            numbers = frame.select_dtypes("Float64")
            tables[name] = [len(frame), digest(frame.drop(columns=numbers.columns).to_csv(index=False)),
                            [float(numbers[column].sum()) for column in numbers]]
    return tables


def _race() -> Any:
    """A race of ten cars with features that are multiples of 1/8."""
    from f1_pipelines.features.ranking import CORE_FEATURES, REFERENCE_FEATURES

    rows = pd.DataFrame({name: (np.arange(10) * (at + 3) % 7) / 8.0
                         for at, name in enumerate(dict.fromkeys((*CORE_FEATURES, *REFERENCE_FEATURES)))})
    return rows.astype("Float64").assign(
        weekend="2024-monaco", season=2024, driver=[f"driver-{n}" for n in range(10)],
        constructor=[f"team-{n // 2}" for n in range(10)], race_start=pd.Timestamp("2024-05-26 13:00", tz="UTC"),
        source="sample", stage="grid", entered=True, grid_position=pd.array(range(1, 11), "Int32"),
        official_order=pd.array([2, 1, 3, 5, 4, 6, 8, 7, 10, 9], "Int32"), started=True, classified=True)


def _ranker() -> Any:
    """A ranker whose weights are multiples of 1/64, the same on every processor."""
    from f1_pipelines.models.config import RANKER
    from f1_pipelines.models.trained import TrainedRanker, fresh_model
    from f1_pipelines.models.vocabulary import Vocabulary

    drivers = Vocabulary(tuple(f"driver-{n}" for n in range(10)))
    constructors = Vocabulary(tuple(f"team-{n}" for n in range(5)))
    model = fresh_model(RANKER, drivers, constructors)
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_((torch.arange(weights.numel()) * 37 % 41 - 20).reshape(weights.shape) / 64.0)
    return TrainedRanker(model, RANKER, drivers, constructors, (2023,), "2023-bahrain", "2023-abu-dhabi", 22)


def predictions() -> dict[str, Any]:
    """Scores and places of fixed weights, probabilities, and simulated races of a grid."""
    from f1_pipelines.evaluation.probabilities import position_probabilities, rng_for
    from f1_pipelines.forecast.monte_carlo import FieldPace, RaceField, circuit_for, simulate
    from f1_pipelines.identity.weekends import weekend
    from f1_pipelines.lineage.seen import prediction_id
    from f1_pipelines.models.plackett_luce import sample_places

    race, trained = _race(), _ranker()
    italy = weekend("2025-italy")
    circuit = replace(circuit_for(italy, {}), race_laps=12, cliff_laps=(60.0,) * 5)
    places = simulate(RaceField("a", np.linspace(2.0, -2.0, 10), np.arange(1.0, 11.0), tuple(race["constructor"]),
                            tuple(race["driver"])), italy, circuit, FieldPace(0.35), races=40)
    probabilities = position_probabilities(places, race["constructor"])
    strengths, stops = np.arange(40).reshape(10, 4) * 7 % 11 / 8.0, np.arange(10) / 32.0
    return {"scores": trained.scores(race).tolist(), "places": places.tolist(),
            "draw": rng_for("2024-monaco", "grid", "abc").random(3).tolist(),
            "chances": probabilities.astype(float).fillna(-1.0).to_dict("list"),
            "sampled": sample_places(strengths, stops, 20, np.random.default_rng(0)).tolist(),
            "id": [prediction_id("2024-monaco", "grid", "abc"), prediction_id("2024-monaco", "grid", "a", "simulated")]}


def checkpoints() -> dict[str, Any]:
    """Ids of checkpoints with fixed weights, and the settings that the ids depend on."""
    from f1_pipelines.backtest.report import versions
    from f1_pipelines.features.history import data_version
    from f1_pipelines.models.checkpoints import save_checkpoint
    from f1_pipelines.models.config import F1NET, RANKER
    from f1_pipelines.models.continual.settings import DEFAULT, DOCUMENTED
    from f1_pipelines.models.temperature import _digest

    race = _race()
    kinds = race.groupby("weekend").agg(wet=("started", "first"))
    with TemporaryDirectory() as folder:
        ids = [save_checkpoint(_ranker(), Path(folder), kind="pretrained", data_version="abc").id,
               save_checkpoint(_ranker(), Path(folder), kind="ewc", data_version="abc", parent="def",
                               learning={"settings": DEFAULT.stored(), "weekend": "2024-monaco"}).id]
    return {"ids": ids, "settings": [repr(RANKER), repr(F1NET), DEFAULT.stored(), DOCUMENTED.stored()],
            "versions": list(versions(race, kinds, "forward")), "data": data_version(race),
            "search": _digest(race, F1NET)}


def engineer() -> dict[str, Any]:
    """Demonstrations, prompts, seeds, values of commands, and the id of an engineer with fixed weights."""
    from f1_pipelines.engineer.data.demonstrations import (
        expert_demonstrations,
        relabel_with_expert,
        with_fewer_stay_outs,
        without_needless_call,
    )
    from f1_pipelines.engineer.inference.checkpoints import save_engineer
    from f1_pipelines.engineer.profiles import PROFILES, Architecture
    from f1_pipelines.engineer.prompting.rendering import Rendering
    from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
    from f1_pipelines.engineer.seed_ranges import held_out_races, race_keys
    from f1_pipelines.engineer.training.counterfactual_returns import counterfactual_returns, decision_states
    from f1_pipelines.engineer.training.tiny_model import fresh_model, train_tokenizer

    sampler, keys = ScenarioSampler(), race_keys("train", 2)[:3]
    turns = [turn for race in expert_demonstrations(sampler, keys[:2]) for turn in race]
    student_calls = {keys[2]: ["STAY_OUT", "PIT_NOW hard"]}
    relabelled = [turn for race in relabel_with_expert(sampler, student_calls) for turn in race]
    toy = Architecture(hidden=32, layers=1, heads=2, kv_heads=1, head_dim=16, feed_forward=64, vocabulary=512)
    tokenizer = train_tokenizer((f"{turn.prompt}\n{turn.completion}" for turn in turns), toy)
    rendering, model = Rendering(tokenizer, False), fresh_model(tokenizer, toy, 0)
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_((torch.arange(weights.numel()) * 37 % 41 - 20).reshape(weights.shape) / 64.0)
    [states] = decision_states([sampler.scenario(*keys[0])], lambda texts: ["STAY_OUT"] * len(texts))
    [values] = counterfactual_returns(states[2:3], [["STAY_OUT", "PIT_NOW hard", "SET_MODE push"]],
                                      lambda texts: ["STAY_OUT"] * len(texts))
    with TemporaryDirectory() as folder:
        stored = save_engineer(model, rendering, Path(folder), {
            "stage": "sft", "profile": "tiny", "parent": None, "training_seed": 0, "settings": {}, "n_turns": 1,
            "scenes_version": sampler.version, "n_parameters": 1})
        meta = {name: stored.meta[name] for name in ("weights_sha256", "env_version", "prompt_version")}
    return {
        "keys": [*map(list, race_keys("train", 3)), *map(list, held_out_races(2, 1, 1))], "scenes": sampler.version,
        "renamed": digest(repr(sampler.scenario(*keys[0], renamed=True).numbers)),
        "turns": [[turn.lap, turn.completion, digest(turn.prompt), turn.expert_value, list(turn.values_s.values())]
                  for turn in turns],
        "beside": [[turn.lap, turn.completion] for turn in relabelled],
        "calmed": [without_needless_call(turn).completion for turn in turns],
        "balanced": len(with_fewer_stay_outs(turns)),
        "prompt": digest(repr(rendering.prompt_ids(turns[0].prompt))), "meta": meta,
        "values": [end["score"] for end in values], "profiles": sorted(PROFILES)}


def grpo() -> dict[str, Any]:
    """Races and states of two GRPO steps, for a policy that stays out."""
    from f1_pipelines.engineer.profiles import GrpoSettings
    from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
    from f1_pipelines.engineer.training.rollout_sampler import RolloutSampler

    class Recording(ScenarioSampler):
        def scenario(self, family, seed, *args, **kwargs):
            drawn.append([family, seed])
            return super().scenario(family, seed, *args, **kwargs)

    policy = SimpleNamespace(commands=lambda texts: ["STAY_OUT"] * len(texts),
                             sample_ids=lambda texts, n, temperature: [[[k % 2] for k in range(n)] for _ in texts])
    rendering, steps = SimpleNamespace(command=lambda ids: ["STAY_OUT", "SET_MODE push"][ids[0]]), []
    for step in (0, 7):
        drawn: list[list[Any]] = []
        sampler = RolloutSampler(rendering, Recording(), GrpoSettings(races=3, num_generations=4), 1, 24, 64)
        groups, _ = sampler.sample_groups(policy, step, 5)
        steps.append([drawn, [[digest(group.state.observation.text), group.completions, group.counts.tolist()]
                              for group in groups]])
    return {"steps": steps}


def interfaces() -> dict[str, Any]:
    """Tables, views, commands, environment variables, paths of the web, policies."""
    from f1_pipelines.cli.main import cli
    from f1_pipelines.serve.app import create_app
    from f1_pipelines.serve.settings import ServeSettings
    from f1_pipelines.settings import Settings
    from f1_pipelines.sim.policies.play import POLICIES
    from f1_pipelines.tables.catalog import SCHEMA_VERSION, SCHEMAS, TABLES, VIEWS
    from f1_pipelines.tables.strategy import POLICIES as STORED

    context, views = click.Context(cli), {}
    with duckdb.connect() as connection:
        for schema in SCHEMAS:
            connection.execute(f"CREATE SCHEMA {schema}")
        for table in TABLES:
            connection.execute(table.ddl())
        for view in VIEWS:
            connection.execute(f"CREATE VIEW {view.qualified} AS {view.sql}")
            columns = connection.execute(f"DESCRIBE {view.qualified}").fetchall()
            views[view.qualified] = [digest(repr([column[:2] for column in columns])),
                                     digest(" ".join(view.sql.split()))]
    variables = [str(field.validation_alias or f"{model.model_config['env_prefix']}{name}").upper()
                 for model in (Settings, ServeSettings) for name, field in model.model_fields.items()]
    return {
        "schema": SCHEMA_VERSION, "views": views,
        "tables": {table.qualified: digest(repr([(column.name, column.type) for column in table.columns]
                                                + [table.key])) for table in TABLES},
        "commands": {name: sorted(flag for option in cli.get_command(context, name).params
                                  if isinstance(option, click.Option) for flag in option.opts)
                     for name in cli.list_commands(context)},
        "settings": sorted([*Settings.model_fields, *ServeSettings.model_fields]), "variables": sorted(variables),
        "web": {path: sorted(methods) for path, methods in
                create_app(ServeSettings(), pages=False).openapi()["paths"].items()},
        "policies": [*POLICIES], "stored_policies": sorted(STORED)}


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "races": races, "grand_prix_and_batch": grand_prix_and_batch, "sample": sample, "predictions": predictions,
    "checkpoints": checkpoints, "engineer": engineer, "grpo": grpo, "interfaces": interfaces}


def differences(now: Any, recorded: Any, path: str = "") -> list[str]:
    """Differences of two values, as paths with both values."""
    if isinstance(now, dict) and isinstance(recorded, dict):
        return [line for name in {**recorded, **now}
                for line in differences(now.get(name), recorded.get(name), f"{path}/{name}")]
    if isinstance(now, list) and isinstance(recorded, list) and len(now) == len(recorded):
        return [line for at, pair in enumerate(zip(now, recorded, strict=True))
                for line in differences(*pair, f"{path}/{at}")]
    if isinstance(now, float) and isinstance(recorded, float) and not os.environ.get("F1_SAME_BITS"):
        return [] if now == pytest.approx(recorded, rel=1e-9, abs=1e-9) else [f"{path}: {now}, recorded {recorded}"]
    return [] if now == recorded else [f"{path}: {now}, recorded {recorded}"]


@pytest.mark.parametrize("section", SECTIONS)
def test_nothing_changed(section):
    now = json.loads(json.dumps(SECTIONS[section]()))
    if os.environ.get("F1_RECORD"):
        recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        RECORDED.write_text(json.dumps({**recorded, section: now}, sort_keys=True) + "\n")
    assert differences(now, json.loads(RECORDED.read_text())[section]) == []

