"""Public facts of our car as numbers, for agents without text: `FEATURES`."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.classification import used_one_slick
from f1_pipelines.sim.engine.compiled import Records, compiled
from f1_pipelines.sim.engine.parameters import COMPOUNDS, SC, VSC
from f1_pipelines.sim.engine.tables import Tables
from f1_pipelines.sim.scenarios import EGO
from f1_pipelines.sim.scenarios.opponents import last_wetness

FAR_S = 99.0  # largest gap in the features
FEATURES = ("lap_share", "laps_to_go", "vsc", "sc", "position", "gap_ahead_s", "gap_behind_s", "soft", "medium", "hard",
            "inter", "wet", "age_laps", "stops", "rule_kept", "wetness", "rain", "tyre_temp_c", "mode", "wear_scale")


@compiled
def fill_features(tables: Tables, t: int, lap: int, cars: Records, races: Records, row: int, rule: bool, rain: float,
                  mode: int, out: np.ndarray) -> None:
    """Fill the features of a race.

    Args:
        tables: Tables of the batch.
        t: Row of the race in the tables.
        lap: Laps driven.
        cars, races: States.
        row: Row of the race in the states.
        rule: Whether the two-compound rule holds.
        rain: Rain in the last lap.
        mode: Mode of our car.
        out: Filled, (F,).
    """
    race, car, state = tables.of_race[t], cars[row, EGO], races[row]
    position, behind_s = 1, FAR_S
    while cars[row, position - 1].order != EGO:
        position += 1
    if position < cars.shape[1]:
        behind_s = min(cars[row, cars[row, position].order].elapsed_s - car.elapsed_s, FAR_S)
    out[0], out[1] = min(lap / race.race_laps, 1.0), max(race.race_laps - lap, 0)
    out[2], out[3], out[4] = state.status == VSC, state.status == SC, position
    out[5], out[6] = min(car.gap_ahead_s, FAR_S), behind_s
    for compound in range(len(COMPOUNDS)):
        out[7 + compound] = car.compound == compound
    out[12], out[13], out[14] = car.age_laps, car.stops, not rule or not used_one_slick(car.used)
    out[15], out[16] = last_wetness(tables, t, lap + 1), rain
    out[17], out[18], out[19] = round(car.temp_c), mode, race.wear_scale
