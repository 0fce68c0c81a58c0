"""Failures, punctures, empty tanks and pit stops, and how retirements close the track."""
from __future__ import annotations

from typing import Any, cast

import numpy as np

from f1_pipelines.sim.engine import track_status
from f1_pipelines.sim.engine.arrays import any_of, with_values
from f1_pipelines.sim.engine.parameters import GREEN, HARD, INTER, MEDIUM, RED, VSC, WET
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import ACCIDENT, MECHANICAL, OUT_OF_FUEL, RaceState
from f1_pipelines.sim.engine.weather import INTER_WET_CROSSOVER, SLICK_INTER_CROSSOVER


class BadCall(ValueError):
    """A call that names no compound or no car of the race: unchecked, it would index into the next episode's row."""


def column_of(race: Race, name: str, call: np.ndarray) -> np.ndarray:
    """Flat index of the car that each call names (the first car where it names none), (E, N)."""
    if call.max() >= race.cars:
        raise BadCall(f"{name} names column {call.max()}; wanted -1 (none) to {race.cars - 1}.")
    return np.maximum(call, 0) + race.rows


def incidents(race: Race, state: RaceState, row: int, hazard: np.ndarray, other: np.ndarray,
              fuel: np.ndarray, burn: np.ndarray, puncture: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Retirements, punctures and empty tanks of a lap.

    Returns:
        Reason of retirement or 0, punctured (bool), fuel after the lap [kg], time lost [s]; (E, N) each.
    """
    engine, u = race.engine, race.hazard_u[row]
    running, hit = state.out == 0, u < hazard + other
    retired = np.where(hit & (u < hazard), ACCIDENT, np.where(hit & (u < hazard + race.mechanical), MECHANICAL, 0))
    punctured = (hit & (retired == 0)) if puncture is None else (hit & (retired == 0)) | puncture
    # Too little fuel for the lap: with half of it a car coasts through this lap, with less it retires.
    short = fuel < 0
    coast = short & (state.fuel_kg >= 0.5 * burn)
    retired = np.where(short & ~coast, OUT_OF_FUEL, retired) * running
    punctured = punctured & running & (retired == 0)
    fuel = np.where(coast, state.fuel_kg - 0.5 * burn, np.maximum(fuel, 0.0))
    lost_s = punctured * engine.puncture_loss_s + (coast & running) * engine.starved_loss_s
    return retired, punctured, fuel, lost_s


def pit_stops(race: Race, state: RaceState, row: int, pit: np.ndarray | None, puncture: np.ndarray | None,
              retired: np.ndarray | None, elapsed: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Tyre changes at the end of the lap, computed only for the cars that make one.

    Returns:
        Changed fields of the state by name, (E, N) each; flat index of the S cars that stop, (S,); time that each
        stop takes [s], (E, N).
    """
    engine = race.engine
    pit = np.full(elapsed.shape, -1) if pit is None else np.asarray(pit, dtype=np.int64)
    if puncture is not None:
        pit = np.where(puncture & (pit < 0), _unplanned_compound(race, state, row), pit)
    new = (pit >= 0) & (state.out == 0) if state.any_out else pit >= 0
    if retired is not None:
        new = new & (retired == 0)
    at = new.ravel().nonzero()[0]
    first_set, compound = race.rows5.take(at), pit.take(at)
    if state.any_slow or race.mate is not None:
        episode = at // race.cars
        status = state.status.take(episode)
    if state.any_slow:
        column = np.where((status == VSC) & (state.status_left.take(episode) == 1), 4, status)
        cost = race.stop_loss_s.take(column + first_set) + race.stop_s[row].take(at) * (status != RED)
    else:
        cost = race.stop_loss_s.take(first_set) + race.stop_s[row].take(at)
    if race.mate is not None:
        mate = race.mate.take(at)
        mate_s, own_s = elapsed.take(mate), elapsed.take(at)
        wait = engine.double_stack_s + race.standstill.take(episode) - (own_s - mate_s)
        second = new.take(mate) & (own_s > mate_s) & (status != RED)
        cost = cost + np.where(second, np.maximum(wait, 0.0), 0.0)
    if any_of(compound > WET):
        raise BadCall(f"pit holds compound {compound.max()}; wanted -1 (stay out) to {WET} (wet).")
    offset, slope, usual_cliff = race.tyres.take(compound + first_set, axis=1)
    cliff = usual_cliff * race.cliff_factor[row].take(at)
    changes = {"compound": with_values(state.compound, at, compound),
               "offset_s": with_values(state.offset_s, at, offset), "slope_s": with_values(state.slope_s, at, slope),
               "cliff_laps": with_values(state.cliff_laps, at, cliff),
               "used": with_values(state.used, at, state.used.take(at) | (1 << compound)), "stops": state.stops + new}
    changes["rain_tyres"] = any_of((changes["compound"] if state.rain_tyres else compound) > HARD)
    changes["last_stop"] = state.lap + 1
    return changes, at, with_values(np.zeros(elapsed.shape), at, cost)


def _unplanned_compound(race: Race, state: RaceState, row: int) -> np.ndarray:
    """Compound for an unplanned stop, (E, N): what the water asks for; in the dry hard, or medium in place of hard."""
    wet = race.wetness[row][:, None]
    dry = np.where(state.compound == HARD, MEDIUM, HARD)
    return np.where(wet > INTER_WET_CROSSOVER, WET, np.where(wet > SLICK_INTER_CROSSOVER, INTER, dry))


Statuses = tuple[np.ndarray, np.ndarray, np.ndarray]


def status_of_next_lap(race: Race, state: RaceState, lap: int,
                       retired: np.ndarray | None) -> tuple[Statuses, bool]:
    """Status, age and laps left of the coming lap, (E,) each, and whether any episode is not green."""
    if race.status is not None:
        status, age, left = race.given_status
        return (status[lap], age[lap], left[lap]), race.slow_laps[lap]
    row = race.row(lap)
    if retired is None and not state.any_slow and not race.eventful[row]:
        return (state.status, state.status_age + 1, state.status_left), False
    accidents: Any
    others: Any
    accidents, others = (0, 0) if retired is None else ((retired == ACCIDENT).sum(axis=1, keepdims=True),
                                                        (retired > ACCIDENT).sum(axis=1, keepdims=True))
    rates, factors, drawn = cast("tuple[np.ndarray, np.ndarray, np.ndarray]",
                                 (race.status_rates, race.status_factors, race.event_u))  # all set if status is drawn
    following = track_status.next_status(
        state.status, state.status_age, state.status_left, accidents, others,
        rates[0 if lap == 1 and race.start_key is not None else 1], factors, drawn[0, row], drawn[1, row])
    return following, any_of(following[0] != GREEN)
