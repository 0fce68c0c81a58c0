"""The races that engineers are trained and evaluated on: sprints with circuits and fields of the warehouse.

A model that sees the same forty car numbers and twenty circuits in all its races memorizes them and fails on others
(docs/lab-notes/race-engineer.md). So a share of the training races has invented car numbers and circuit names.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import duckdb
import numpy as np

from f1_pipelines.sim.engine.hashing import stable_hash, stable_uniform
from f1_pipelines.sim.engine.parameters import CircuitParameters
from f1_pipelines.sim.scenarios import BadScenario, GridSpec, Scenario, make_scenario, split_of
from f1_pipelines.weekend_scenarios import GRID_GAP_PCT, RACE_SHARE, fitted_circuits

RIVALS = 5
LAP_S = 85.0  # turns a gap in % of a lap into seconds; fields are drawn independently of the circuit
UNFAMILIAR = 0.5  # share of the training races with invented names
NUMBERS = 100  # above all car numbers; `renamed` races use NUMBERS - number
INVENTED_CIRCUIT = "valdemora"  # of `renamed` races
_CONSONANTS, _VOWELS = "bcdfghjklmnprstvz", "aeiou"


@dataclass(frozen=True)
class ScenarioSampler:
    """Makes sprints from fitted circuit parameters and from fields with the gaps of stored weekends.

    Without either, makes the sprints of `make_scenario`.
    """

    circuits: Mapping[str, CircuitParameters] = field(default_factory=dict)  # by circuit name
    fields: tuple[GridSpec, ...] = ()

    def scenario(self, family: str, seed: int, renamed: bool = False) -> Scenario:
        """Make the sprint of a family and seed. The seed also draws the field.

        Args:
            family: One of `FAMILIES`.
            seed: Seed of the race.
            renamed: Keep grid, plans and events, but change the car numbers and the circuit's name. Lap noise is keyed
                by car number, so it differs: compare means, not single races.
        """
        grid_spec = self.fields[stable_hash("field", family, seed) % len(self.fields)] if self.fields else GridSpec()
        if renamed:
            numbers, name = tuple(NUMBERS - number for number in grid_spec.numbers), INVENTED_CIRCUIT
        elif split_of(family, seed) == "train" and stable_uniform("unfamiliar", family, seed) < UNFAMILIAR:
            numbers, name = _invented_names(family, seed, len(grid_spec.numbers))
        else:
            return make_scenario(family, seed, circuits=self.circuits, grid_spec=grid_spec)
        scenario = make_scenario(family, seed, circuits=self.circuits, grid_spec=replace(grid_spec, numbers=numbers))
        return replace(scenario, circuit=replace(scenario.circuit, circuit=name))

    @cached_property
    def version(self) -> str:
        """Digest of circuits and fields: equal exactly if the races are."""
        return f"{stable_hash(self.as_json()):016x}"

    def as_json(self) -> str:
        """Return circuits and fields as JSON, for another process and for `version`."""
        return json.dumps({"circuits": {name: asdict(self.circuits[name]) for name in sorted(self.circuits)},
                           "fields": [asdict(spec) for spec in self.fields]}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ScenarioSampler:
        """Read the sampler that `as_json` wrote."""
        stored = json.loads(text)
        return cls({name: CircuitParameters(**_tuples(values)) for name, values in stored["circuits"].items()},
                   tuple(GridSpec(**_tuples(values)) for values in stored["fields"]))


def stored_sampler(connection: duckdb.DuckDBPyConnection) -> ScenarioSampler:
    """Load a sampler with the circuits of `sim.circuits` and the fields of weekends in `features.ranking`."""
    rows = connection.sql("""
        SELECT f.weekend, f.qualifying_gap_pct AS gap, r.car_number AS number
        FROM features.ranking f JOIN race.current_results r USING (weekend, driver)
        WHERE f.entered AND f.qualifying_gap_pct IS NOT NULL
        ORDER BY f.race_start, f.qualifying_gap_pct, f.driver""").df()
    fields = [_field(group["gap"].to_numpy(float), group["number"].dropna().astype(int).tolist())
              for _, group in rows.groupby("weekend", sort=False)]
    return ScenarioSampler(fitted_circuits(connection), tuple(spec for spec in fields if spec is not None))


def _invented_names(family: str, seed: int, count: int) -> tuple[tuple[int, ...], str]:
    """Invent `count` car numbers and a circuit name for this race."""
    rng = np.random.default_rng(stable_hash("names", family, seed))
    numbers = rng.permutation(np.arange(1, NUMBERS))[:count].tolist()
    syllables = [_CONSONANTS[rng.integers(len(_CONSONANTS))] + _VOWELS[rng.integers(len(_VOWELS))]
                 for _ in range(rng.integers(2, 5))]
    return tuple(numbers), "".join(syllables)


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert lists to tuples, which JSON does not have."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _field(gap_pct: np.ndarray, numbers: list[int]) -> GridSpec | None:
    """Return the five cars around the middle of a qualifying, relative to the middle one; None in too small a field.

    Places are at least `GRID_GAP_PCT` apart: cars with equal times would run side by side for a whole race.

    Args:
        gap_pct: (cars,) gaps to pole in qualifying order [% of a lap].
        numbers: Car numbers of the weekend.
    """
    middle, half = len(gap_pct) // 2, (RIVALS + 1) // 2
    neighbours = [k for k in range(middle - half, middle + half) if k != middle]
    if neighbours[0] < 0 or neighbours[-1] >= len(gap_pct):
        return None
    own_gap, min_gap = gap_pct[middle], GRID_GAP_PCT / 2
    gaps = [RACE_SHARE * (gap_pct[k] - own_gap) + min_gap * np.sign(k - middle) for k in neighbours]
    try:
        return GridSpec(tuple(round(float(gap) / 100.0 * LAP_S, 2) for gap in gaps),
                        tuple(n for n in dict.fromkeys(numbers) if 1 <= n <= 99))
    except BadScenario:
        return None
