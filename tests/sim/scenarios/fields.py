from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from f1_pipelines.sim import Race, RaceState, prepare
from f1_pipelines.sim.engine.drive import DEFAULT_DRIVE
from f1_pipelines.sim.engine.lap import CALL
from f1_pipelines.sim.engine.state import new_state
from f1_pipelines.sim.scenarios import Scenario, plans_of, setup_of
from f1_pipelines.sim.scenarios.opponents import step_field


def stay_out_all(scenarios: Sequence[Scenario]) -> tuple[Race, list[RaceState]]:
    """Races in which our car never stops: (race, states after each lap)."""
    race, plans = prepare(setup_of(scenarios)), plans_of(scenarios)
    stay_out = np.full(len(scenarios), np.array((-1, DEFAULT_DRIVE, -1, -1), CALL))
    history = [new_state(race)]
    while history[-1].lap < race.laps:
        history.append(step_field(race, history[-1], plans, stay_out))
    return race, history
