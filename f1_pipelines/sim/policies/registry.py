"""Who may sit on the pit wall without knowing the future."""
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

# Of the scenario they are given what everybody knows of a track, and no more.
NON_ORACLE: dict[str, Callable[[Scenario], Policy]] = {
    "random": lambda s: Random(), "stay_out": lambda s: stay_out(), "done": lambda s: done(),
    "keyword_radio": lambda s: keyword_radio(), "inspect_all": lambda s: InspectAll(),
    "blind_list": lambda s: blind_list(), "fixed_stop": lambda s: FixedStop(), "checklist": lambda s: Checklist(),
    "expert": lambda s: Expert(circuits={s.circuit.circuit: s.circuit}),
}
DEGENERATE = ("random", "stay_out", "done", "keyword_radio", "inspect_all")
