"""Many plans in some of the futures, the promising ones in the rest as well: half the work, the same best plan.

All plans meet the same futures, so that a few of them tell which plans can't be best.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from f1_pipelines.sim.policies.sampled_futures import Outcomes, Plan, SampledFutures

FIRST_FUTURES, MIN_PLANS = 32, 20  # futures that all plans are driven in; plans from which on that is worth it
SURVIVORS, SURVIVORS_OF_KIND = 12, 2  # plans that go on: of all, and of each kind


def evaluate_plans(futures: SampledFutures, plans: Sequence[Plan], kinds: Callable[[Outcomes], np.ndarray],
                   costs: Callable[[Outcomes], np.ndarray]) -> tuple[np.ndarray, Outcomes]:
    """Drive the plans; those that go on are driven in all futures.

    Args:
        kinds: Outcomes -> (K,) what kind each plan is of: the best of every kind go on.
        costs: Outcomes -> (K,) what each plan costs [s].

    Returns:
        indices of the plans that went on, in their order, and their outcomes.
    """
    if len(plans) < MIN_PLANS or len(futures.rival) <= FIRST_FUTURES:
        return np.arange(len(plans)), futures.outcomes(plans)
    first = futures.few(FIRST_FUTURES).outcomes(plans)
    kind, order = kinds(first), costs(first).argsort(kind="stable")
    survivors = np.sort(np.unique(np.concatenate(
        [order[:SURVIVORS], *(order[kind[order] == k][:SURVIVORS_OF_KIND] for k in np.unique(kind))])))
    rest = futures.rest(FIRST_FUTURES).outcomes([plans[k] for k in survivors])
    return survivors, Outcomes(*(np.concatenate([getattr(first, name)[survivors], getattr(rest, name)], axis=1)
                                 for name in Outcomes.__dataclass_fields__))
