"""Successive halving: drive all plans in some futures and only the promising ones in the others, at half the cost.

All plans meet the same futures, so the first ones rule out plans that cannot be best.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from f1_pipelines.sim.policies.sampled_futures import Outcomes, Plan, SampledFutures

FIRST_FUTURES, MIN_PLANS = 32, 20  # futures for all plans; fewest plans for which halving pays
SURVIVORS, SURVIVORS_OF_KIND = 12, 2  # plans that continue: of all, and of each kind


def evaluate_plans(futures: SampledFutures, plans: Sequence[Plan], kinds: Callable[[Outcomes], np.ndarray],
                   costs: Callable[[Outcomes], np.ndarray]) -> tuple[np.ndarray, Outcomes]:
    """Drive plans in the first futures, and the survivors in all futures.

    Args:
        futures: The sampled futures.
        plans: Candidate plans.
        kinds: Outcomes -> (K,) kind of each plan; the best of every kind survive.
        costs: Outcomes -> (K,) cost of each plan [s].

    Returns:
        Indices of the survivors, ascending, and their outcomes in all futures.
    """
    if len(plans) < MIN_PLANS or len(futures.rival) <= FIRST_FUTURES:
        return np.arange(len(plans)), futures.outcomes(plans)
    first = futures.head(FIRST_FUTURES).outcomes(plans)
    kind, order = kinds(first), costs(first).argsort(kind="stable")
    survivors = np.sort(np.unique(np.concatenate(
        [order[:SURVIVORS], *(order[kind[order] == k][:SURVIVORS_OF_KIND] for k in np.unique(kind))])))
    tail = futures.tail(FIRST_FUTURES).outcomes([plans[k] for k in survivors])
    return survivors, Outcomes(*(np.concatenate([getattr(first, name)[survivors], getattr(tail, name)], axis=1)
                                 for name in Outcomes.__dataclass_fields__))
