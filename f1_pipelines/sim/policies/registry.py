"""All scripted policies by name, in the order of tables and plots. Every other list of policies derives from it."""
from __future__ import annotations

from collections.abc import Callable

from f1_pipelines.sim.policies.expert import Expert
from f1_pipelines.sim.policies.policy import Policy
from f1_pipelines.sim.policies.scripted import (
    Checklist,
    FixedStop,
    InspectAll,
    Random,
    blind_list,
    done,
    keyword_radio,
    stay_out,
)
from f1_pipelines.sim.scenarios import Scenario

ORACLE = "oracle"


def _oracle(scenario: Scenario) -> Policy:
    from f1_pipelines.sim.policies.oracle import Oracle  # a cycle: the oracle replays the races of all other policies

    return Oracle(scenario)


# All but the oracle use only observations and public parameters of the circuit.
POLICIES: dict[str, Callable[[Scenario], Policy]] = {
    "random": lambda s: Random(), "stay_out": lambda s: stay_out(), "done": lambda s: done(),
    "keyword_radio": lambda s: keyword_radio(), "inspect_all": lambda s: InspectAll(),
    "blind_list": lambda s: blind_list(), "fixed_stop": lambda s: FixedStop(), "checklist": lambda s: Checklist(),
    "expert": lambda s: Expert(circuits={s.circuit.circuit: s.circuit}), ORACLE: _oracle,
}
NON_ORACLE = {name: make for name, make in POLICIES.items() if name != ORACLE}
# Each exploits a weakness that a careless score would reward.
DEGENERATE = ("random", "stay_out", "done", "keyword_radio", "inspect_all")
