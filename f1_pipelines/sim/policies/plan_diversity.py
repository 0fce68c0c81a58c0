"""Which stops are best, seed by seed: no family may have one right answer.

    python -m f1_pipelines.sim.policies.plan_diversity
"""
from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.scenarios import ENV_VERSION, FAMILIES, make_scenario
from f1_pipelines.sim.scoring.reference import reference_of


def plan_diversity(family: str, n: int = 200) -> dict[str, Any]:
    """The oracle's stops over seeds 0 to n - 1.

    Returns:
        `laps` and `compounds` of first stops (0 and `none` for races without), `stops` with their counts, `most`
        (share of the commonest plan), and `free`: of the races without the two-compound rule, how many want a stop.
    """
    laps: Counter[int] = Counter()
    compounds: Counter[str] = Counter()
    stops: Counter[str] = Counter()
    free: Counter[str] = Counter()
    for seed in range(n):
        scenario = make_scenario(family, seed)
        best = reference_of(scenario).stops
        laps[best[0][0] if best else 0] += 1
        compounds[COMPOUNDS[best[0][1]] if best else "none"] += 1
        stops[" + ".join(f"{lap} {COMPOUNDS[tyre]}" for lap, tyre in best) or "none"] += 1
        if not scenario.rule:
            free["stop" if best else "no stop"] += 1
    return {"family": family, "n": n, "env_version": ENV_VERSION, "laps": dict(sorted(laps.items())),
            "compounds": dict(compounds.most_common()), "stops": dict(stops.most_common()),
            "most": stops.most_common(1)[0][1] / n, "free": dict(free)}


def as_text(spread: dict[str, Any]) -> str:
    """One family as bars by lap."""
    lines = [f"{spread['family']} (n = {spread['n']}): commonest plan {spread['most']:.0%}, "
             f"tyres {spread['compounds']}, without the rule {spread['free']}"]
    lines += [f"  {'none' if lap == 0 else f'lap {lap}':>7} {'#' * round(80 * count / spread['n'])} {count}"
              for lap, count in spread["laps"].items()]
    return "\n".join(lines)


def main() -> None:
    """Print all families."""
    parser = argparse.ArgumentParser(description="Histogram of the oracle's stops.")
    parser.add_argument("--n", type=int, default=200, help="seeds of each family")
    given = parser.parse_args()
    for family in FAMILIES:
        print(as_text(plan_diversity(family, given.n)))


if __name__ == "__main__":
    main()
