"""Distribution of the best stops over seeds: no family may have one right answer.

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
    """The best stops over seeds 0 to n - 1.

    Returns:
        Counts of `laps` and `compounds` of first stops (0 and `none` without a stop) and of `stops`; `most`, the share
        of the most frequent plan; `free`, the numbers of races without the two-compound rule that are best with and
        without a stop.
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


def as_text(diversity: dict[str, Any]) -> str:
    """Format one family as bars by lap."""
    lines = [f"{diversity['family']} (n = {diversity['n']}): commonest plan {diversity['most']:.0%}, "
             f"tyres {diversity['compounds']}, without the rule {diversity['free']}"]
    lines += [f"  {'none' if lap == 0 else f'lap {lap}':>7} {'#' * round(80 * count / diversity['n'])} {count}"
              for lap, count in diversity["laps"].items()]
    return "\n".join(lines)


def main() -> None:
    """Print the distribution of every family."""
    parser = argparse.ArgumentParser(description="Histogram of the oracle's stops.")
    parser.add_argument("--n", type=int, default=200, help="seeds of each family")
    arguments = parser.parse_args()
    for family in FAMILIES:
        print(as_text(plan_diversity(family, arguments.n)))


if __name__ == "__main__":
    main()
