"""Failures, punctures, empty tanks, and pit stops."""
from __future__ import annotations

from f1_pipelines.sim.engine.compiled import Record, Records, compiled
from f1_pipelines.sim.engine.parameters import HARD, INTER, MEDIUM, RED, VSC, WET
from f1_pipelines.sim.engine.state import ACCIDENT, MECHANICAL, OUT_OF_FUEL, RUNNING
from f1_pipelines.sim.engine.tables import Tables
from f1_pipelines.sim.engine.weather import INTER_WET_CROSSOVER, SLICK_INTER_CROSSOVER, accident_ratio

VSC_ENDING = 4  # column of `Tables.stop_loss_s`, after the statuses


@compiled
def fail(car: Record, chances: Record, drawn: Record, drive: Record, slow: Record, wetness: float,
         standing_start: bool, engine: Record, own: Record, new: Record) -> None:
    """Retirement, puncture and empty tank of a car, into `own` (CAR_LAP), and its fuel after the lap."""
    accident = ((chances.accident_first if standing_start else chances.accident) * drive.accident
                * accident_ratio(car.compound, wetness) * slow.hazard)
    u = drawn.hazard_u
    hit = u < accident + chances.other * slow.hazard
    retired = RUNNING
    if hit:
        retired = ACCIDENT if u < accident else MECHANICAL if u < accident + chances.mechanical else RUNNING
    worn_through = drawn.puncture_u < own.past_cliff * engine.puncture_per_lap_past
    punctured = worn_through or (hit and retired == RUNNING)
    # Too little fuel for the lap: with half of it a car coasts through this lap, with less it retires.
    fuel = car.fuel_kg - own.burn_kg
    coasts = fuel < 0 and car.fuel_kg >= 0.5 * own.burn_kg
    if fuel < 0 and not coasts:
        retired = OUT_OF_FUEL
    new.fuel_kg = car.fuel_kg - 0.5 * own.burn_kg if coasts else max(fuel, 0.0)
    running = car.out == RUNNING
    own.retired = retired if running else RUNNING
    own.punctured = punctured and running and own.retired == RUNNING
    own.incident = own.punctured * engine.puncture_loss_s + (coasts and running) * engine.starved_loss_s
    new.elapsed_s += own.incident


@compiled
def stop_called(car: Record, call: int, wetness: float, own: Record) -> int:
    """Compound that a car changes to at the end of the lap, -1 to stay out."""
    if car.out != RUNNING or own.retired != RUNNING:
        return -1
    return unplanned_compound(car.compound, wetness) if own.punctured and call < 0 else call


@compiled
def unplanned_compound(compound: int, wetness: float) -> int:
    """Compound for an unplanned stop: what the water asks for; in the dry hard, or medium in place of hard."""
    if wetness > SLICK_INTER_CROSSOVER:
        return WET if wetness > INTER_WET_CROSSOVER else INTER
    return MEDIUM if compound == HARD else HARD


@compiled
def stop_cost(tables: Tables, t: int, row: int, episode: int, k: int, before: Record, laps: Records, at: int,
              new_cars: Records) -> float:
    """Time that the stop of the car in column k takes [s], 0 without a stop; times before any stop is added."""
    if laps[at, k].pit < 0:
        return 0.0
    status = before.status
    ending = status == VSC and before.status_left == 1
    cost = tables.stop_loss_s[t, VSC_ENDING if ending else status]
    if status != RED:
        cost += tables.lap_of_car[row, t, k].stop_s
        mate = tables.of_car[t, k].mate
        later_s = new_cars[episode, k].elapsed_s - new_cars[episode, mate].elapsed_s
        if laps[at, mate].pit >= 0 and later_s > 0:
            cost += max(tables.engine[0].double_stack_s + tables.of_race[t].standstill - later_s, 0.0)
    return cost
