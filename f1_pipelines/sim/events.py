"""What happens to a car besides racing: failures, punctures, empty tanks, stops; and what they do to the track."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim import track_status
from f1_pipelines.sim.parameters import GREEN, HARD, INTER, MEDIUM, RED, VSC, WET
from f1_pipelines.sim.race import Race
from f1_pipelines.sim.state import ACCIDENT, MECHANICAL, OUT_OF_FUEL, RaceState
from f1_pipelines.sim.weather import INTER_WET_CROSSOVER, SLICK_INTER_CROSSOVER


class BadCall(ValueError):
    """A call that names no compound or no car of the race; unchecked it would reach into the next episode's row."""


def column_of(race: Race, name: str, call: np.ndarray) -> np.ndarray:
    """Flat index of the car each call names (of the first car where it names none), (E, N)."""
    if call.max() >= race.cars:
        raise BadCall(f"{name} names column {call.max()}; wanted -1 (nobody) to {race.cars - 1}.")
    return np.maximum(call, 0) + race.rows


def any_of(mask: np.ndarray) -> bool:
    """Whether any is set: `mask.any()` at a quarter of its overhead, which is what small batches are made of."""
    return np.count_nonzero(mask) > 0


def incidents(race: Race, state: RaceState, row: int, hit: np.ndarray, hazard: np.ndarray,
              fuel: np.ndarray, burn: np.ndarray, puncture: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Cars that stop for good, punctures, dry tanks.

    Returns:
        reason to stop (E, N) or 0; punctured (E, N) bool; fuel after the lap [kg]; time lost [s].
    """
    engine, u = race.engine, race.hazard_u[row]
    running = state.out == 0
    stopped = np.where(hit & (u < hazard), ACCIDENT, np.where(hit & (u < hazard + race.mechanical), MECHANICAL, 0))
    flat = (hit & (stopped == 0)) if puncture is None else (hit & (stopped == 0)) | puncture
    # Less than a lap's fuel: coast through this lap on half of it; less than that: stop beside the track.
    short = fuel < 0
    coast = short & (state.fuel_kg >= 0.5 * burn)
    stopped = np.where(short & ~coast, OUT_OF_FUEL, stopped) * running
    flat = flat & running & (stopped == 0)
    fuel = np.where(coast, state.fuel_kg - 0.5 * burn, np.maximum(fuel, 0.0))
    late = flat * engine.puncture_loss_s + (coast & running) * engine.starved_loss_s
    return stopped, flat, fuel, late


def stops(race: Race, state: RaceState, row: int, pit: np.ndarray | None, puncture: np.ndarray | None,
          stopped: np.ndarray | None, elapsed: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Tyre changes at the end of the lap: what changes in the state, and the time each costs."""
    engine = race.engine
    pit = np.full(elapsed.shape, -1) if pit is None else np.asarray(pit, dtype=np.int64)
    if pit.max() > WET:
        raise BadCall(f"pit holds compound {pit.max()}; wanted -1 (stay out) to {WET} (wet).")
    if puncture is not None:
        pit = np.where(puncture & (pit < 0), _set_for(race, state, row), pit)
    new = (pit >= 0) & (state.out == 0)
    if stopped is not None:
        new = new & (stopped == 0)
    status = state.status[:, None]
    column = np.where((status == VSC) & (state.status_left[:, None] == 1), 4, status)
    cost = race.stop_loss_s.take(column + race.rows5) + race.stop_s[row] * (status != RED)
    if race.mate is not None:
        theirs, own = elapsed.take(race.mate), elapsed
        wait = engine.double_stack_s + race.standstill - (own - theirs)
        second = new & new.take(race.mate) & (own > theirs) & (status != RED)
        cost = cost + np.where(second, np.maximum(wait, 0.0), 0.0)
    compound = np.where(new, pit, state.compound)
    cliff = race.tyres[2].take(compound + race.rows5) * race.cliff_factor[row]
    changes = {"new_set": new, "compound": compound, "cliff_laps": np.where(new, cliff, state.cliff_laps),
               "used": state.used | (1 << compound), "stops": state.stops + new, "rain_tyres": any_of(compound > HARD)}
    return changes, np.where(new, cost, 0.0)


def _set_for(race: Race, state: RaceState, row: int) -> np.ndarray:
    """The set a crew has ready for a car that comes in unasked: right for the water, else the other hard one."""
    wet = race.wetness[row][:, None]
    dry = np.where(state.compound == HARD, MEDIUM, HARD)
    return np.where(wet > INTER_WET_CROSSOVER, WET, np.where(wet > SLICK_INTER_CROSSOVER, INTER, dry))


def status_of_next_lap(race: Race, state: RaceState, lap: int,
                       stopped: np.ndarray | None) -> tuple[tuple[np.ndarray, ...], bool]:
    """status, age and left (E,) of the lap to come, and whether any episode is not green."""
    if race.status is not None:
        return tuple(race.status[:, lap]), race.slow_laps[lap]
    row = race.row(lap)
    if stopped is None and not state.any_slow and not race.eventful[row]:
        return (state.status, state.status_age + 1, state.status_left), False
    accidents, others = (0, 0) if stopped is None else ((stopped == ACCIDENT).sum(axis=1, keepdims=True),
                                                        (stopped > ACCIDENT).sum(axis=1, keepdims=True))
    rates = race.status_rates[0 if lap == 1 and race.start_key is not None else 1]
    status = track_status.next_status(
        state.status, state.status_age, state.status_left, accidents, others, rates, race.status_factors,
        race.event_u[0, row], race.event_u[1, row])
    return status, any_of(status[0] != GREEN)
