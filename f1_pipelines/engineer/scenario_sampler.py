"""The races that an engineer is trained and evaluated on: sprints on circuits and in fields of the warehouse.

A model that reads the same forty numbers and twenty circuits in all its races learns them by heart, and is lost among
others (docs/lab-notes/race-engineer.md). A share of the training races therefore has numbers and a name that no season
knows.
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import duckdb
import numpy as np

from f1_pipelines.sim.engine.parameters import CircuitParameters
from f1_pipelines.sim.scenarios import BadScenario, GridSpec, Scenario, make_scenario, split_of
from f1_pipelines.sim.scenarios.rng import digest, share
from f1_pipelines.weekend_scenarios import GRID_GAP_PCT, RACE_SHARE, fitted_circuits

RIVALS = 5
LAP_S = 85.0  # to turn a gap in % of a lap into seconds; fields are not drawn by circuit
UNFAMILIAR = 0.5  # share of the training races under other names
NUMBERS = 100  # car numbers; of `renamed` races they are mirrored
INVENTED_CIRCUIT = "valdemora"  # no circuit
_CONSONANTS, _VOWELS = "bcdfghjklmnprstvz", "aeiou"


@dataclass(frozen=True)
class ScenarioSampler:
    """Sprints with what was measured: parameters of circuits, and fields as close as those of stored weekends.

    Without either they are those of `make_scenario`.
    """

    circuits: Mapping[str, CircuitParameters] = field(default_factory=dict)
    fields: tuple[GridSpec, ...] = ()

    def scenario(self, family: str, seed: int, renamed: bool = False) -> Scenario:
        """The sprint of that family and seed. The seed draws its field, too.

        Args:
            family: One of `FAMILIES`.
            seed: Of the race.
            renamed: The same grid, plans and events with other car numbers and a circuit nobody has heard of. Luck is
                keyed by car number, so the scatter of laps differs: means compare, single races do not.
        """
        drawn = self.fields[digest("field", family, seed) % len(self.fields)] if self.fields else GridSpec()
        if renamed:
            numbers, name = tuple(NUMBERS - number for number in drawn.numbers), INVENTED_CIRCUIT
        elif split_of(family, seed) == "train" and share("unfamiliar", family, seed) < UNFAMILIAR:
            numbers, name = _unfamiliar(family, seed, len(drawn.numbers))
        else:
            return make_scenario(family, seed, circuits=self.circuits, field=drawn)
        made = make_scenario(family, seed, circuits=self.circuits, field=replace(drawn, numbers=numbers))
        return replace(made, circuit=replace(made.circuit, circuit=name))

    @cached_property
    def version(self) -> str:
        """Digest of what was measured: the same for the same races."""
        return f"{digest(self.as_json()):016x}"

    def as_json(self) -> str:
        """All of it, for another process."""
        return json.dumps({"circuits": {name: asdict(self.circuits[name]) for name in sorted(self.circuits)},
                           "fields": [asdict(one) for one in self.fields]}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ScenarioSampler:
        """The scenes of `as_json`."""
        fields = json.loads(text)
        return cls({name: CircuitParameters(**_tuples(values)) for name, values in fields["circuits"].items()},
                   tuple(GridSpec(**_tuples(values)) for values in fields["fields"]))


def stored_sampler(connection: duckdb.DuckDBPyConnection) -> ScenarioSampler:
    """Scenes from `sim.circuits`, `features.ranking` and the car numbers of the weekends."""
    rows = connection.sql("""
        SELECT f.weekend, f.qualifying_gap_pct AS gap, r.car_number AS number
        FROM features.ranking f JOIN race.current_results r USING (weekend, driver)
        WHERE f.entered AND f.qualifying_gap_pct IS NOT NULL
        ORDER BY f.race_start, f.qualifying_gap_pct, f.driver""").df()
    fields = [_field(group["gap"].to_numpy(float), group["number"].dropna().astype(int).tolist())
              for _, group in rows.groupby("weekend", sort=False)]
    return ScenarioSampler(fitted_circuits(connection), tuple(one for one in fields if one is not None))


def _unfamiliar(family: str, seed: int, count: int) -> tuple[tuple[int, ...], str]:
    """Car numbers and the name of a circuit, made up for that race."""
    rng = np.random.default_rng(digest("names", family, seed))
    numbers = rng.permutation(np.arange(1, NUMBERS))[:count].tolist()
    syllables = [_CONSONANTS[rng.integers(len(_CONSONANTS))] + _VOWELS[rng.integers(len(_VOWELS))]
                 for _ in range(rng.integers(2, 5))]
    return tuple(numbers), "".join(syllables)


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows lists only."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _field(gap_pct: np.ndarray, numbers: list[int]) -> GridSpec | None:
    """The five cars around the middle of a qualifying, against the car between them; None for too small a field.

    Equal times would put cars side by side for a whole race, so a place is worth at least `GRID_GAP_PCT`.
    """
    middle, half = len(gap_pct) // 2, (RIVALS + 1) // 2
    near = [k for k in range(middle - half, middle + half) if k != middle]
    if near[0] < 0 or near[-1] >= len(gap_pct):
        return None
    ours, least = gap_pct[middle], GRID_GAP_PCT / 2
    gaps = [RACE_SHARE * (gap_pct[k] - ours) + least * np.sign(k - middle) for k in near]
    try:
        return GridSpec(tuple(round(float(gap) / 100.0 * LAP_S, 2) for gap in gaps),
                        tuple(n for n in dict.fromkeys(numbers) if 1 <= n <= 99))
    except BadScenario:
        return None
