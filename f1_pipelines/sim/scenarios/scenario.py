"""One sprint from (family, seed): `make_scenario("dry_strategy_sprint", 7)`.

Car columns are fixed: 0 is ours, 1 to 5 the opponents in the order of `CHARACTERS`. Numbers, grid and pace are drawn,
so that nothing observable reveals a character. A seed belongs to one split, by hash; naming another split
is an error.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.engine.hashing import stable_hash, stable_uniform
from f1_pipelines.sim.engine.parameters import HARD, MEDIUM, SOFT, CircuitParameters
from f1_pipelines.sim.engine.priors import circuit_prior, prior_rows
from f1_pipelines.sim.scenarios.families import SPLITS, UNSEEN_FAMILY, Family, family_of
from f1_pipelines.sim.scenarios.rng import ScenarioRng
from f1_pipelines.sim.scenarios.track_events import (
    Closure,
    Forecast,
    Shower,
    closures_of,
    draw_status,
    draw_weather,
    rain_trace,
)

ENV_VERSION = 2  # raised by every change that could move a result; every result records it
MAX_SEED = 2**31 - 1
CARS, EGO = 6, 0  # cars in a sprint; column of our car
HAZARD_SCALE = 0.3  # x the hazards of a Grand Prix: a sprint decided by a failure teaches nothing
MAX_LAPS = 15
FIRST_CORNER, BAD_LUCK = 0.05, 6e-4  # careful driving survives hazard draws above these in lap 1 and in later laps
PACE_ERROR_S = 0.10  # sd of the error of the practice pace, which all pit walls know


@dataclass(frozen=True)
class GridSpec:
    """The field of a sprint: pace of the opponents relative to ours [s/lap], fastest first, and numbers to draw from.

    The default serves unless a sprint gets another one, for example from a stored weekend.
    """

    gaps_s: tuple[float, ...] = (-0.40, -0.18, 0.02, 0.20, 0.42)
    numbers: tuple[int, ...] = (1, 4, 10, 11, 14, 16, 18, 22, 23, 44, 55, 63, 81)

    def __post_init__(self) -> None:
        if len(self.gaps_s) != CARS - 1 or len(set(self.numbers)) < CARS:
            raise BadScenario(f"a grid needs {CARS - 1} gaps and at least {CARS} numbers; got {len(self.gaps_s)} and "
                              f"{len(set(self.numbers))}.")


class BadScenario(ValueError):
    """A scenario that cannot be made; the message says what came and what is valid."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """A race with all of its events. Arrays of N are by car column."""

    family: str
    seed: int
    split: str
    circuit: CircuitParameters
    laps: int
    race_seed: int
    numbers: tuple[int, ...]
    pace_s: np.ndarray  # s/lap, + is slower: true pace
    practice_s: np.ndarray  # pace as practice showed it
    grid: np.ndarray
    compound: np.ndarray  # start tyre
    age_laps: np.ndarray
    fuel_laps: np.ndarray  # fuel beyond the distance, in laps at race pace
    plan_lap: np.ndarray  # (S, N) the opponents stop at the end of this lap, 0: no such stop
    plan_compound: np.ndarray  # (S, N)
    gamble_lap: int  # the gambler takes intermediates at the end of this lap, 0: never
    wear_scale: float
    heat_c: float
    rule: bool  # two-compound rule: two dry compounds unless the race is wet
    forecast: Forecast | None
    shower: Shower | None
    rain: np.ndarray  # (laps,)
    status: np.ndarray  # (laps,)
    rival: int  # number of the car to beat, 0: none
    closures: tuple[Closure, ...]  # what may close the track, known before the start
    rain_chance: float  # chance of a shower, known before the start
    weekend: str = ""  # key of the weekend of a Grand Prix
    drivers: tuple[str, ...] = ()  # driver ids of a Grand Prix by column
    team: np.ndarray | None = None  # (N,) team index in a Grand Prix

    @property
    def cars(self) -> int:
        """Number of cars."""
        return len(self.numbers)

    @property
    def length(self) -> float:
        """Length in sprints, at least 1: a loss of a second in a sprint weighs as much as this many here."""
        return max(self.laps / MAX_LAPS, 1.0)

    @property
    def name(self) -> str:
        """Name in results."""
        return f"{self.family}/{self.seed}" + (f"/{self.weekend}/{self.numbers[EGO]}" if self.weekend else "")

    @cached_property
    def key(self) -> int:
        """Digest of all fields: scenarios with the same key are the same race and share cached results."""
        parts = (getattr(self, f.name) for f in fields(self))
        return stable_hash(*(part.tobytes().hex() if isinstance(part, np.ndarray) else part for part in parts))

    def __hash__(self) -> int:
        return self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.key == other.key

    def column(self, number: int) -> int:
        """Column of a car number, -1 if it does not race."""
        return self.numbers.index(number) if number in self.numbers else -1


def split_of(family: str, seed: int) -> str:
    """The split of a seed: 70 % train, 10 % each validation, test and unseen circuits."""
    family_of(family)
    if family == UNSEEN_FAMILY:
        return "unseen_family"
    u = stable_uniform("split", family, seed)
    return "train" if u < 0.7 else "validation" if u < 0.8 else "test" if u < 0.9 else "unseen_circuit"


def seeds_of(family: str, split: str, count: int, start: int = 0) -> list[int]:
    """The first `count` seeds of a split, from `start` on.

    Raises:
        BadScenario: The family has no such split, or `start` is out of range.
    """
    check_seed(start)
    if split not in SPLITS or (split == "unseen_family") != (family == UNSEEN_FAMILY):
        valid = "unseen_family" if family == UNSEEN_FAMILY else ", ".join(SPLITS[:4])
        raise BadScenario(f"{family} has no split {str(split)[:40]!r}. Valid: {valid}.")
    seeds: list[int] = []
    seed = start
    while len(seeds) < count:
        if split_of(family, seed) == split:
            seeds.append(seed)
        seed += 1
    return seeds


def check_seed(seed: object) -> int:
    """Check a seed and return it as an int.

    Raises:
        BadScenario: It is not a whole number from 0 to MAX_SEED.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= MAX_SEED:
        raise BadScenario(f"seed must be a whole number from 0 to {MAX_SEED}; got {str(seed)[:40]!r}.")
    return int(seed)


def make_scenario(family: str, seed: int, split: str | None = None, circuit: str | None = None,
                  circuits: Mapping[str, CircuitParameters] | None = None,
                  grid_spec: GridSpec | None = None) -> Scenario:
    """Make the sprint of a family and seed.

    Args:
        family: One of `FAMILIES`.
        seed: 0 to MAX_SEED.
        split: If given, the split that the seed must belong to.
        circuit: Circuit to race at instead of the seed's; the scenario is then in no split (`chosen_circuit`).
        circuits: Parameters by circuit, for example fitted ones; circuits not in it use their embedded prior.
        grid_spec: The opponents' pace and the car numbers; None for the default.

    Raises:
        UnknownFamily: No family has this name.
        BadScenario: Seed, split or circuit is not valid.
    """
    kind, seed = family_of(family), check_seed(seed)
    seed_split = split_of(family, seed)
    if split is not None and split != seed_split:
        examples = seeds_of(family, split, 3, min(seed, MAX_SEED - 1000))
        raise BadScenario(f"seed {seed} of {family} belongs to split {seed_split}, not {split}; "
                          f"seeds of {split}: {', '.join(map(str, examples))}, ... (seeds_of lists them).")
    valid = {*prior_rows(), *(circuits or ())}
    if circuit is not None and (not isinstance(circuit, str) or circuit not in valid):
        raise BadScenario(f"unknown circuit {str(circuit)[:40]!r}. Valid: {', '.join(sorted(valid))}.")
    rng = ScenarioRng(stable_hash("scenario", ENV_VERSION, family, seed))
    unseen = rng.chance(0.2) if family == UNSEEN_FAMILY else seed_split == "unseen_circuit"
    circuit_id = rng.choice(kind.unseen_circuits if unseen else kind.circuits)
    circuit_id = circuit or circuit_id
    scenario = _draw(kind, seed, seed_split, (circuits or {}).get(circuit_id) or circuit_prior(circuit_id), rng,
                     grid_spec or GridSpec())
    return scenario if circuit is None else replace(scenario, split="chosen_circuit")


def _draw(kind: Family, seed: int, split: str, base: CircuitParameters, rng: ScenarioRng,
          grid_spec: GridSpec) -> Scenario:
    laps = rng.integer(*kind.laps)
    # docs/physics.md#lap-time: race sd .3 s, around smaller offsets than these.
    soft, hard = min(-0.35 + rng.normal(0.22), 0.0), 0.22 + rng.normal(0.15)
    base = replace(base, compound_offset_s=(round(soft, 2), 0.0, round(hard, 2), 0.0, 0.0))
    wear = round(base.cliff_laps[MEDIUM] / (rng.uniform(*kind.medium_lasts) * laps), 1)
    wear = max(wear, 1.0)
    rule = rng.chance(kind.rule)
    heat_draw = rng.uniform()
    heat = round(rng.uniform(17, 24)) if heat_draw < kind.hot else \
        -round(rng.uniform(17, 24)) if heat_draw > 1 - kind.hot else round(rng.uniform(-4, 4))
    forecast, shower = draw_weather(rng, kind.rain, laps, laps)
    status = draw_status(rng, kind, laps)
    pace, grid = _pace_and_grid(rng, grid_spec.gaps_s)
    numbers = tuple(rng.shuffled(grid_spec.numbers)[:CARS])
    compound = np.array([rng.choice((SOFT, MEDIUM, MEDIUM, HARD)) for _ in range(CARS)])
    age = np.array([rng.integer(0, 2) for _ in range(CARS)])
    fuel = np.array([rng.uniform(*kind.fuel_laps)] + [0.45] * (CARS - 1))
    plans = [_plan(rng, base, laps, wear, rule, int(compound[car]), int(age[car])) for car in range(1, CARS)]
    gamble = 0
    if forecast is not None and forecast.chance > 0.5:
        gamble = forecast.onset_lap - rng.integer(0, 1)
    rivals = [car for car in range(1, CARS) if abs(grid[car] - grid[EGO]) == 1]
    return Scenario(
        family=kind.name, seed=seed, split=split, circuit=base, laps=laps,
        race_seed=survivable_race_seed(numbers[EGO], MAX_LAPS, kind.name, seed), numbers=numbers, pace_s=pace,
        practice_s=np.round(pace + np.array([rng.normal(PACE_ERROR_S) for _ in range(CARS)]), 1), grid=grid,
        compound=compound, age_laps=age, fuel_laps=fuel, plan_lap=np.array([[0] + [lap for lap, _ in plans]]),
        plan_compound=np.array([[0] + [tyre for _, tyre in plans]]), gamble_lap=gamble, wear_scale=wear,
        heat_c=float(heat), rule=rule, forecast=forecast, shower=shower, rain=rain_trace(shower, laps), status=status,
        rival=numbers[rng.choice(rivals)] if kind.rival else 0, closures=closures_of(kind, laps), rain_chance=kind.rain)


def survivable_race_seed(number: int, laps: int, *parts: object) -> int:
    """Key of a race's noise that lets careful driving reach the flag; risky driving stays risky.

    Args:
        number: Number of our car.
        laps: Laps whose hazards are checked.
        parts: What the key depends on.
    """
    for attempt in range(100):
        key = stable_hash("race", ENV_VERSION, *parts, attempt)
        u = noise.uniforms(np.array([key]), np.arange(1, laps + 1), np.array([[number]]), (noise.HAZARD,)).ravel()
        if u[0] > FIRST_CORNER and u[1:].min() > BAD_LUCK:
            break
    return key


def _pace_and_grid(rng: ScenarioRng, gaps_s: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Pace [s/lap] and grid slots of a sprint; our car has middling pace and starts neither first nor last."""
    pace = np.array([rng.normal(0.12)] + rng.shuffled(gaps_s))
    pace[1:] += [rng.normal(0.08) for _ in range(CARS - 1)]
    order = (pace + np.array([rng.normal(0.15) for _ in range(CARS)])).argsort(kind="stable").tolist()
    slot = min(max(order.index(EGO) + 1, 2), CARS - 1)
    order.remove(EGO)
    order.insert(slot - 1, EGO)
    grid = np.empty(CARS, dtype=int)
    grid[order] = np.arange(1, CARS + 1)
    return pace, grid


def _plan(rng: ScenarioRng, circuit: CircuitParameters, laps: int, wear: float, rule: bool, compound: int,
          age: int) -> tuple[int, int]:
    """Planned stop of an opponent as (lap, compound), lap 0 for none, from tyre life and the two-compound rule."""
    when, which, need = rng.uniform(0.35, 0.75), rng.uniform(), rng.uniform()
    life = circuit.cliff_laps[compound] / wear - age
    others = [c for c in (SOFT, MEDIUM, HARD) if c != compound]
    if laps > life + 2.0:  # worn out before the flag
        lap = round(min(life * (0.75 + 0.3 * when), when * laps + 1.0))
    elif rule or need < 0.25:
        lap = round(when * laps)
    else:
        return 0, compound
    rest = [c for c in others if circuit.cliff_laps[c] / wear > laps - lap - 1] or [others[-1]]
    return min(max(lap, 2), laps - 2), rest[int(which * len(rest))]
