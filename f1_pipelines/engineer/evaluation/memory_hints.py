"""Hints for the briefing from post-mortems of training races.

Use: `MemoryHints.from_postmortems(postmortems, scenario_of).hint(scenario)`.

Notable choices:
- Races are grouped by facts known before the start: family, chance of rain, rule, heat, start tyre.
- Only races of the train split count, each for its own family, so the family never trained on has no hints.
- Lines are made once from the counts, so a hint takes at most two lookups for any number of races.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from f1_pipelines.engineer.evaluation.failures import LESSONS
from f1_pipelines.sim.engine.hashing import stable_hash, stable_uniform
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.scenarios import Scenario

HINTED_SHARE = 0.15  # share of training races with a random hint, so that models learn to read hints
MIN_POSTMORTEMS = 8  # races that a situation needs for its own line; with fewer it uses its family's line
LESSONS_SHOWN, MAX_WORDS = 2, 25
HOT_C = 10.0  # the observation says "hot track" from here on
NO_LESSON = ("none", "bad_luck")
Situation = tuple[str, ...]


def situation_of(scenario: Scenario) -> Situation:
    """Describe coarsely what is known of a race before the start; the family comes first.

    >>> from f1_pipelines.sim.scenarios import make_scenario
    >>> situation_of(make_scenario("weather_roulette", 1))
    ('weather_roulette', 'rain', 'no rule', 'cold', 'soft')
    """
    heat = "mild" if abs(scenario.heat_c) < HOT_C else "hot" if scenario.heat_c > 0 else "cold"
    return (scenario.family, "rain" if scenario.rain_chance else "dry", "rule" if scenario.rule else "no rule", heat,
            COMPOUNDS[scenario.compound[0]])


@dataclass(frozen=True)
class MemoryHints:
    """A line for each common situation, and one for each family for its rare situations."""

    lines: dict[Situation, str] = field(default_factory=dict)

    @classmethod
    def from_postmortems(cls, postmortems: pd.DataFrame, scenario_of: Callable[[str, int], Scenario]) -> MemoryHints:
        """Make hints from the commonest failures.

        Args:
            postmortems: Rows of `strategy.postmortems`; other splits than train are ignored.
            scenario_of: Makes the race of a family and seed, for example `ScenarioSampler.scenario`.
        """
        counts: dict[Situation, Counter[str]] = defaultdict(Counter)
        situations: dict[tuple[str, int], Situation] = {}
        train_rows = postmortems[postmortems["split"] == "train"]
        for family, seed, kind in train_rows[["family", "seed", "kind"]].itertuples(index=False):
            if (family, seed) not in situations:
                situations[family, seed] = situation_of(scenario_of(family, seed))
            counts[situations[family, seed]][kind] += 1
            counts[family,][kind] += 1
        lines = {key: line for key, kinds in counts.items() if len(key) == 1 or kinds.total() >= MIN_POSTMORTEMS
                 if (line := _line(kinds))}
        return cls(lines)

    def hint(self, scenario: Scenario) -> str:
        """Return the line for a race, at most `MAX_WORDS` words; empty without failures in its family."""
        situation = situation_of(scenario)
        return self.lines.get(situation) or self.lines.get(situation[:1], "")


def random_hint(family: str, seed: int) -> str:
    """Return random lessons, which need not fit the race, for `HINTED_SHARE` of training races; else empty."""
    if stable_uniform("hinted", family, seed) >= HINTED_SHARE:
        return ""
    rng = np.random.default_rng(stable_hash("lessons", family, seed))
    kinds = rng.permutation(sorted(set(LESSONS) - set(NO_LESSON)))
    return _line(Counter(kinds[:LESSONS_SHOWN].tolist()))


def _line(kinds: Counter[str]) -> str:
    """Return the lessons of the commonest failures, as many as fit."""
    ranked = sorted(((count, kind) for kind, count in kinds.items() if kind not in NO_LESSON),
                    key=lambda pair: (-pair[0], pair[1]))
    line = "Learnt:" if ranked else ""
    for _, kind in ranked[:LESSONS_SHOWN]:
        longer = f"{line} {LESSONS[kind]}"
        if len(longer.split()) <= MAX_WORDS:
            line = longer
    return line
