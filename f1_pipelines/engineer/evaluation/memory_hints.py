"""Hints for the briefing from post-mortems of training races.

Use: `MemoryHints.of(postmortems, scenario_of).hint(scenario)`.

Notable choices:
- Only what everybody knows before the start tells two races apart: family, chance of rain, rule, heat, start tyre.
- Nothing but races of the train split counts, each for its own family: a family that is never trained on has no hints.
- Post-mortems are counted once. What is looked up afterwards is a finished line, so a hint costs two lookups at most,
  however many races there were.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from f1_pipelines.engineer.evaluation.failures import LESSONS
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scenarios.rng import digest, share

HINTED_SHARE = 0.15  # share of the training races whose observations carry some line, so that a line is no riddle
MIN_POSTMORTEMS = 8  # races that a situation needs to speak for itself; with fewer its family does
LESSONS_SHOWN, MAX_WORDS = 2, 25
HOT_C = 10.0  # the observation says "hot track" from here on
NO_LESSON = ("none", "bad_luck")
Situation = tuple[str, ...]


def situation_of(scenario: Scenario) -> Situation:
    """What everybody knows of a race before the start, coarsely; the family first.

    >>> from f1_pipelines.sim.scenarios import make_scenario
    >>> situation_of(make_scenario("weather_roulette", 1))
    ('weather_roulette', 'rain', 'no rule', 'cold', 'soft')
    """
    heat = "mild" if abs(scenario.heat_c) < HOT_C else "hot" if scenario.heat_c > 0 else "cold"
    return (scenario.family, "rain" if scenario.rain_chance else "dry", "rule" if scenario.rule else "no rule", heat,
            COMPOUNDS[scenario.compound[0]])


@dataclass(frozen=True)
class MemoryHints:
    """A line by situation, and by family for situations that were rare."""

    lines: dict[Situation, str] = field(default_factory=dict)

    @classmethod
    def of(cls, postmortems: pd.DataFrame, scenario_of: Callable[[str, int], Scenario]) -> MemoryHints:
        """Count what went wrong.

        Args:
            postmortems: Rows of `strategy.postmortems`; those of other splits than train are left out.
            scenario_of: The race of a family and seed, `Scenes.scenario` for example.
        """
        counts: dict[Situation, Counter[str]] = defaultdict(Counter)
        known: dict[tuple[str, int], Situation] = {}
        trained = postmortems[postmortems["split"] == "train"]
        for family, seed, kind in trained[["family", "seed", "kind"]].itertuples(index=False):
            if (family, seed) not in known:
                known[family, seed] = situation_of(scenario_of(family, seed))
            counts[known[family, seed]][kind] += 1
            counts[family,][kind] += 1
        lines = {key: line for key, kinds in counts.items() if len(key) == 1 or kinds.total() >= MIN_POSTMORTEMS
                 if (line := _line(kinds))}
        return cls(lines)

    def hint(self, scenario: Scenario) -> str:
        """At most 25 words for the briefing of a race; empty where nothing was learnt."""
        situation = situation_of(scenario)
        return self.lines.get(situation) or self.lines.get(situation[:1], "")


def random_hint(family: str, seed: int) -> str:
    """For a training race: in most none, in `HINTED_SHARE` of them two lessons by lot. They need not fit the race."""
    if share("hinted", family, seed) >= HINTED_SHARE:
        return ""
    kinds = np.random.default_rng(digest("lessons", family, seed)).permutation(sorted(set(LESSONS) - set(NO_LESSON)))
    return _line(Counter(kinds[:LESSONS_SHOWN].tolist()))


def _line(kinds: Counter[str]) -> str:
    """The commonest failures as lessons, as many as fit."""
    ranked = sorted(((count, kind) for kind, count in kinds.items() if kind not in NO_LESSON),
                    key=lambda pair: (-pair[0], pair[1]))
    line = "Learnt:" if ranked else ""
    for _, kind in ranked[:LESSONS_SHOWN]:
        longer = f"{line} {LESSONS[kind]}"
        if len(longer.split()) <= MAX_WORDS:
            line = longer
    return line
