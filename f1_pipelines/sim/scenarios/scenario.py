"""One sprint from (family, seed): `make_scenario("dry_strategy_sprint", 7)`.

Car columns are fixed: 0 is ours, 1 to 5 the opponents in the order of `CHARACTERS`. Numbers, grid and pace are drawn,
so that nothing shown gives a character away. A seed belongs to one split, by hash; whoever names a split gets that
split or an error, never another seed.
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

ENV_VERSION = 2  # raised by every change that could move a result; every result carries it
MAX_SEED = 2**31 - 1
CARS, EGO = 6, 0  # cars of a race; index of ours
HAZARD_SCALE = 0.3  # x the hazards of a Grand Prix: a sprint decided by a broken engine teaches nothing
MAX_LAPS = 15
FIRST_CORNER, BAD_LUCK = 0.05, 6e-4  # chances of an accident (or of debris) in a lap that careful driving never reaches
PACE_ERROR_S = 0.10  # sd of the practice pace that everybody knows


@dataclass(frozen=True)
class GridSpec:
    """Who else may be on the grid: pace of five opponents against ours [s/lap], quickest first; numbers to draw from.

    A sprint has the one below unless it is given another, of a stored weekend for example.
    """

    gaps_s: tuple[float, ...] = (-0.40, -0.18, 0.02, 0.20, 0.42)
    numbers: tuple[int, ...] = (1, 4, 10, 11, 14, 16, 18, 22, 23, 44, 55, 63, 81)

    def __post_init__(self) -> None:
        if len(self.gaps_s) != CARS - 1 or len(set(self.numbers)) < CARS:
            raise BadScenario(f"a field has {CARS - 1} gaps and at least {CARS} numbers; got {len(self.gaps_s)} and "
                              f"{len(set(self.numbers))}.")


class BadScenario(ValueError):
    """A scenario that does not exist."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """A race, with its future. Arrays of N are by car column."""

    family: str
    seed: int
    split: str
    circuit: CircuitParameters
    laps: int
    race_seed: int
    numbers: tuple[int, ...]
    pace_s: np.ndarray  # s/lap, + is slower: the truth
    practice_s: np.ndarray  # what practice said of it
    grid: np.ndarray
    compound: np.ndarray  # on the grid
    age_laps: np.ndarray
    fuel_laps: np.ndarray  # beyond the distance at race pace
    plan_lap: np.ndarray  # (S, N) lap whose end the opponent means to stop at, stop by stop, 0: no such stop
    plan_compound: np.ndarray  # (S, N)
    gamble_lap: int  # at whose end the gambler takes intermediates, 0: never
    wear_scale: float
    heat_c: float
    rule: bool  # two dry compounds unless the race is wet
    forecast: Forecast | None
    shower: Shower | None
    rain: np.ndarray  # (laps,)
    status: np.ndarray  # (laps,)
    rival: int  # number of the car to beat, 0: none
    closures: tuple[Closure, ...]  # what may close the track, as everybody knows
    rain_chance: float  # of a shower, as everybody knows
    weekend: str = ""  # of a Grand Prix
    drivers: tuple[str, ...] = ()  # of a Grand Prix, their ids by column
    team: np.ndarray | None = None  # of a Grand Prix, (N,)

    @property
    def cars(self) -> int:
        """How many start."""
        return len(self.numbers)

    @property
    def length(self) -> float:
        """In sprints: what a second is worth in a sprint takes so many in a race of this length."""
        return max(self.laps / MAX_LAPS, 1.0)

    @property
    def name(self) -> str:
        """How results refer to it."""
        return f"{self.family}/{self.seed}" + (f"/{self.weekend}/{self.numbers[EGO]}" if self.weekend else "")

    @cached_property
    def key(self) -> int:
        """A digest of all of it: two scenarios with the same key are the same race, and share what was found out."""
        parts = (getattr(self, f.name) for f in fields(self))
        return stable_hash(*(part.tobytes().hex() if isinstance(part, np.ndarray) else part for part in parts))

    def __hash__(self) -> int:
        return self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.key == other.key

    def column(self, number: int) -> int:
        """Column of a car number, -1 for none of this race."""
        return self.numbers.index(number) if number in self.numbers else -1


def split_of(family: str, seed: int) -> str:
    """Which split a seed belongs to: 70 % train, 10 % each validation, test and unseen circuits."""
    family_of(family)
    if family == UNSEEN_FAMILY:
        return "unseen_family"
    u = stable_uniform("split", family, seed)
    return "train" if u < 0.7 else "validation" if u < 0.8 else "test" if u < 0.9 else "unseen_circuit"


def seeds_of(family: str, split: str, count: int, start: int = 0) -> list[int]:
    """The first `count` seeds of a split from `start` on."""
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
    """The seed as an int.

    Raises:
        BadScenario: Not a whole number from 0 to MAX_SEED.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= MAX_SEED:
        raise BadScenario(f"seed must be a whole number from 0 to {MAX_SEED}; got {str(seed)[:40]!r}.")
    return int(seed)


def make_scenario(family: str, seed: int, split: str | None = None, circuit: str | None = None,
                  circuits: Mapping[str, CircuitParameters] | None = None, field: GridSpec | None = None) -> Scenario:
    """The sprint of that family and seed.

    Args:
        family: One of `FAMILIES`.
        seed: 0 to MAX_SEED.
        split: Checked, if given: the seed must belong to it.
        circuit: Another circuit than the seed's; the scenario is then of no split (`chosen_circuit`).
        circuits: Parameters of circuits, fitted ones for example; where a circuit is not in it, its embedded prior.
        field: Who else is on the grid.

    Raises:
        UnknownFamily, BadScenario: What came and what is valid.
    """
    kind, seed = family_of(family), check_seed(seed)
    belongs = split_of(family, seed)
    if split is not None and split != belongs:
        near = seeds_of(family, split, 3, min(seed, MAX_SEED - 1000))
        raise BadScenario(f"seed {seed} of {family} belongs to split {belongs}, not {split}; "
                          f"seeds of {split}: {', '.join(map(str, near))}, ... (seeds_of lists them).")
    known = {*prior_rows(), *(circuits or ())}
    if circuit is not None and (not isinstance(circuit, str) or circuit not in known):
        raise BadScenario(f"unknown circuit {str(circuit)[:40]!r}. Valid: {', '.join(sorted(known))}.")
    dice = ScenarioRng(stable_hash("scenario", ENV_VERSION, family, seed))
    unseen = dice.chance(0.2) if family == UNSEEN_FAMILY else belongs == "unseen_circuit"
    place = dice.pick(kind.unseen_circuits if unseen else kind.circuits)
    place = circuit or place
    scenario = _draw(kind, seed, belongs, (circuits or {}).get(place) or circuit_prior(place), dice, field
                     or GridSpec())
    return scenario if circuit is None else replace(scenario, split="chosen_circuit")


def _draw(kind: Family, seed: int, split: str, base: CircuitParameters, dice: ScenarioRng,
          field: GridSpec) -> Scenario:
    laps = dice.whole(*kind.laps)
    # docs/physics.md#lap-time: race sd .3 s, around smaller offsets than these.
    soft, hard = min(-0.35 + dice.bell(0.22), 0.0), 0.22 + dice.bell(0.15)
    base = replace(base, compound_offset_s=(round(soft, 2), 0.0, round(hard, 2), 0.0, 0.0))
    wear = round(base.cliff_laps[MEDIUM] / (dice.uniform(*kind.medium_lasts) * laps), 1)
    wear = max(wear, 1.0)
    rule = dice.chance(kind.rule)
    sky = dice.uniform()
    heat = round(dice.uniform(17, 24)) if sky < kind.hot else -round(dice.uniform(17, 24)) if sky > 1 - kind.hot \
        else round(dice.uniform(-4, 4))
    forecast, shower = draw_weather(dice, kind.rain, laps, laps)
    status = draw_status(dice, kind, laps)
    pace, grid = _pace_and_grid(dice, field.gaps_s)
    numbers = tuple(dice.shuffled(field.numbers)[:CARS])
    compound = np.array([dice.pick((SOFT, MEDIUM, MEDIUM, HARD)) for _ in range(CARS)])
    age = np.array([dice.whole(0, 2) for _ in range(CARS)])
    fuel = np.array([dice.uniform(*kind.fuel_laps)] + [0.45] * (CARS - 1))
    plans = [_plan(dice, base, laps, wear, rule, int(compound[car]), int(age[car])) for car in range(1, CARS)]
    gamble = 0
    if forecast is not None and forecast.chance > 0.5:
        gamble = forecast.onset_lap - dice.whole(0, 1)
    rivals = [car for car in range(1, CARS) if abs(grid[car] - grid[EGO]) == 1]
    return Scenario(
        family=kind.name, seed=seed, split=split, circuit=base, laps=laps,
        race_seed=lasting_seed(numbers[EGO], MAX_LAPS, kind.name, seed), numbers=numbers, pace_s=pace,
        practice_s=np.round(pace + np.array([dice.bell(PACE_ERROR_S) for _ in range(CARS)]), 1), grid=grid,
        compound=compound, age_laps=age, fuel_laps=fuel, plan_lap=np.array([[0] + [lap for lap, _ in plans]]),
        plan_compound=np.array([[0] + [tyre for _, tyre in plans]]), gamble_lap=gamble, wear_scale=wear,
        heat_c=float(heat), rule=rule, forecast=forecast, shower=shower, rain=rain_trace(shower, laps), status=status,
        rival=numbers[dice.pick(rivals)] if kind.rival else 0, closures=closures_of(kind, laps), rain_chance=kind.rain)


def lasting_seed(number: int, laps: int, *parts: object) -> int:
    """Key of a race's noise. One that ends our race whatever we call is passed over; to take risks stays risky."""
    for again in range(100):
        key = stable_hash("race", ENV_VERSION, *parts, again)
        u = noise.uniforms(np.array([key]), np.arange(1, laps + 1), np.array([[number]]), (noise.HAZARD,)).ravel()
        if u[0] > FIRST_CORNER and u[1:].min() > BAD_LUCK:
            break
    return key


def _pace_and_grid(dice: ScenarioRng, gaps_s: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Pace [s/lap] and grid of six cars; ours is one of the middle and neither first nor last on the grid."""
    pace = np.array([dice.bell(0.12)] + dice.shuffled(gaps_s))
    pace[1:] += [dice.bell(0.08) for _ in range(CARS - 1)]
    order = (pace + np.array([dice.bell(0.15) for _ in range(CARS)])).argsort(kind="stable").tolist()
    slot = min(max(order.index(EGO) + 1, 2), CARS - 1)
    order.remove(EGO)
    order.insert(slot - 1, EGO)
    grid = np.empty(CARS, dtype=int)
    grid[order] = np.arange(1, CARS + 1)
    return pace, grid


def _plan(dice: ScenarioRng, circuit: CircuitParameters, laps: int, wear: float, rule: bool, compound: int,
          age: int) -> tuple[int, int]:
    """Planned stops and compounds of an opponent, from the usual tyre life and the two-compound rule alone."""
    when, which, need = dice.uniform(0.35, 0.75), dice.uniform(), dice.uniform()
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
