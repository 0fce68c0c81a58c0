"""The outcome of a race for our car, read from its states."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim.engine.parameters import GREEN, SC, VSC
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.results import DISQUALIFIED, FINISHED, classify
from f1_pipelines.sim.engine.state import OUT_OF_FUEL, RaceState
from f1_pipelines.sim.scenarios import EGO


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outcomes of our car in a batch, (E,) each."""

    position: np.ndarray
    time_s: np.ndarray  # over the full distance, extrapolated for a lapped car; NaN if not finished
    finished: np.ndarray  # bool, and not disqualified
    disqualified: np.ndarray  # bool
    beaten_by_rival: np.ndarray  # bool; False without a rival
    tyre_loss_s: np.ndarray  # past the cliff, wrong for the wetness, too hot or too cold
    fuel_left_laps: np.ndarray  # at the flag, at race pace
    fuel_natural_laps: np.ndarray  # the same, had the car been driven in mode race throughout
    fuel_slow_laps: np.ndarray  # saved by a closed track
    ran_dry: np.ndarray  # bool: coasted or stopped for lack of fuel

    def one(self, episode: int) -> RaceOutcome:
        """The outcome of one race."""
        return RaceOutcome(**{name: value[episode].item() for name, value in vars(self).items()})


@dataclass(frozen=True)
class RaceOutcome:
    """An `Outcome` of one race, as numbers."""

    position: int
    time_s: float
    finished: bool
    disqualified: bool
    beaten_by_rival: bool
    tyre_loss_s: float
    fuel_left_laps: float
    fuel_natural_laps: float
    fuel_slow_laps: float
    ran_dry: bool


def concatenate(parts: Sequence[Outcome]) -> Outcome:
    """Join the outcomes of several batches."""
    if len(parts) == 1:
        return parts[0]
    return Outcome(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])})


def outcome_of(race: Race, history: Sequence[RaceState], rivals: np.ndarray) -> Outcome:
    """Outcomes of a finished batch.

    Args:
        race: The batch.
        history: States after each lap, lap 0 first.
        rivals: (E,) column of the car to beat, 0 for none.
    """
    end = history[-1]
    result = classify(race, end)
    loss, starved = np.zeros(race.episodes), np.zeros(race.episodes, dtype=bool)
    saved = np.zeros(race.episodes)
    burn = race.fuel_burn[:, 0]
    for before, after in zip(history, history[1:], strict=False):
        drives = (before.lap < race.race_laps) & (before.out[:, EGO] == 0)
        loss += np.where(drives, tyre_loss_s(race, before), 0.0)
        starved |= drives & ran_dry(race, before, after)
        slow = np.where(before.status == SC, 1 - race.engine.fuel_sc, np.where(before.status == VSC,
                                                                             1 - race.engine.fuel_vsc, 0.0))
        saved += np.where(before.lap < race.race_laps, slow, 0.0)
    dry = (end.out[:, EGO] == OUT_OF_FUEL) | starved
    place, rows = result.position, np.arange(race.episodes)
    natural = history[0].fuel_kg[:, EGO] / burn - (race.race_laps - history[0].lap) + saved
    # A lapped car drives fewer laps to the flag; unscaled, being lapped would shorten its race time.
    whole_s = result.time_s[:, EGO] * race.race_laps / np.maximum(result.laps[:, EGO], 1)
    return Outcome(
        position=place[:, EGO], time_s=whole_s, finished=result.status[:, EGO] == FINISHED,
        disqualified=result.status[:, EGO] == DISQUALIFIED,
        beaten_by_rival=(rivals > 0) & (place[rows, rivals] < place[:, EGO]), tyre_loss_s=loss,
        fuel_left_laps=end.fuel_kg[:, EGO] / burn, fuel_natural_laps=natural, fuel_slow_laps=saved, ran_dry=dry)


def tyre_loss_s(race: Race, state: RaceState) -> np.ndarray:
    """(E,) time that our tyres lose in the next lap by being worn out, wrong for the wetness or out of temperature [s].

    Wear before the cliff is no loss, nor is any lap behind a safety car.
    """
    engine = race.engine
    loss = 0.0
    if state.worn:
        past = np.minimum(np.maximum(state.wear_laps[:, EGO] - state.cliff_laps[:, EGO], 0.0), engine.cliff_cap_laps)
        loss = past * (engine.cliff_linear_s + past * engine.cliff_square_s)
    loss = loss + np.maximum(np.abs(state.temp_c[:, EGO]) - engine.temp_window_c, 0.0) * engine.temp_loss_s_per_c
    if race.wet or state.rain_tyres:  # on a dry track slicks lose nothing
        weather = race.weather[race.row(state.lap + 1) if race.wet else 0, 0].reshape(-1, 5)
        loss = loss + weather[np.arange(len(weather)), state.compound[:, EGO]] - weather.min(axis=1)
    return np.where(state.status == GREEN, loss, 0.0)


def ran_dry(race: Race, before: RaceState, after: RaceState) -> np.ndarray:
    """(E,) bool: our car coasted through the lap for lack of fuel, or stopped. No mode burns as little under green."""
    used = before.fuel_kg[:, EGO] - after.fuel_kg[:, EGO]
    burn = race.fuel_burn[:, 0]
    coasted = (before.status == GREEN) & (used < 0.7 * burn) & (after.fuel_kg[:, EGO] < 0.6 * burn)
    return coasted | (after.out[:, EGO] == OUT_OF_FUEL)
