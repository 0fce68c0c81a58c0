"""Tables of a race that depend only on its parameters."""
from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from f1_pipelines.sim.engine.parameters import EngineParameters
from f1_pipelines.sim.engine.seeded_tables import Circuit


@lru_cache(maxsize=16)
def as_arrays(engine: EngineParameters) -> EngineParameters:
    """The same numbers as 0-d arrays: beside a small array, numpy is twice as fast with them as with floats."""
    arrays: dict[str, Any] = {f.name: np.array(getattr(engine, f.name)) for f in fields(engine)}
    return replace(engine, **arrays)


def slow_ratio(engine: EngineParameters, circuit: Circuit) -> np.ndarray:
    """Neutralised lap times over green ones, as `Race.slow_ratio`."""
    vsc = [circuit("vsc_lap_ratio"), circuit("vsc_last_lap_ratio")]
    leader = [circuit("sc_first_leader_ratio")] + [circuit("sc_leader_ratio")] * len(engine.sc_catch_fade)
    catching = [circuit("sc_catch_ratio") * fade for fade in engine.sc_catch_fade]
    return np.array([*vsc, *leader, *vsc, circuit("sc_first_catch_ratio"), *catching])


@lru_cache(maxsize=16)
def by_status(engine: EngineParameters) -> np.ndarray:
    """Effects of a closed track on a lap, as `Race.by_status`."""
    slow_c = engine.temp_slow_c
    return np.array([[1.0, engine.wear_vsc, engine.wear_sc, engine.wear_sc],
                     [1.0, engine.fuel_vsc, engine.fuel_sc, engine.fuel_sc],
                     [0.0, slow_c * engine.temp_vsc, slow_c, slow_c],
                     [1.0, engine.slow_hazard, engine.slow_hazard, engine.slow_hazard]])


@lru_cache(maxsize=64)
def pass_cost_s(engine: EngineParameters, cars: int) -> np.ndarray:
    """Time that passing and being passed cost, as `Race.pass_cost_s`."""
    return np.repeat([0.0, engine.passed_loss_s, engine.passer_loss_s], [1, cars - 1, cars - 1])


def openness(engine: EngineParameters, pass_circuit: np.ndarray) -> np.ndarray:
    """How far lap noise opens passes at a circuit, (E, 1): 1 at usual circuits, 0 where no car can pass."""
    return np.minimum(np.maximum(1.0 - pass_circuit / engine.pass_shut_logit, 0.0), 1.0)


def mates(team: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Flat index of each car's team mate, (E, N); its own where it has none."""
    same = (team[:, :, None] == team[:, None, :]) & ~np.eye(team.shape[1], dtype=bool)
    return np.where(same.any(axis=2), same.argmax(axis=2), np.arange(team.shape[1])) + rows
