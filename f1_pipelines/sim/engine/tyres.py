"""What a set of tyres costs in a lap, and how it wears: cliff, temperature, water, a change of set."""
from __future__ import annotations

from f1_pipelines.sim.engine.compiled import Record, compiled
from f1_pipelines.sim.engine.weather import lap_ratio, wear_ratio


@compiled
def laps_past_cliff(car: Record, engine: Record) -> float:
    """Laps of wear past the cliff of the set, at most those after which it gets no slower."""
    return max(min(car.wear_laps - car.cliff_laps, engine.cliff_cap_laps), 0.0)


@compiled
def cliff_s(past_laps: float, engine: Record) -> float:
    """Time that a set past its cliff loses in a lap [s]."""
    return past_laps * (engine.cliff_linear_s + past_laps * engine.cliff_square_s)


@compiled
def weather_s(compound: int, wetness: float, race: Record) -> float:
    """Time that a compound loses in a lap to a slick on a dry track [s]; rain tyres are slow in the dry as well."""
    return (lap_ratio(compound, wetness) - 1.0) * race.base_lap_s


@compiled
def fill_rates(car: Record, race: Record, wetness: float, drive: Record, slow: Record, engine: Record,
               own: Record) -> None:
    """Wear, fuel and settling temperature of the lap, into `own` (CAR_LAP). `slow`: effects of the status."""
    spare = min(own.hold_gap, 1.0)  # up to a second of the pace in hand saves tyres and fuel
    blisters = 1.0 + engine.temp_wear_per_c * own.off_window_c
    own.wear_rate = (drive.wear * blisters * race.wear_scale * (1.0 - engine.hold_gap_wear * spare)
                     * wear_ratio(car.compound, wetness) * slow.wear)
    own.burn_kg = drive.fuel * race.fuel_burn * (1.0 - engine.hold_gap_fuel * spare) * slow.fuel
    own.settle_c = drive.temp_c + engine.temp_dirty_air_c * own.closeness + race.heat_c + slow.temp_c


@compiled
def wear_down(car: Record, engine: Record, own: Record, new: Record) -> None:
    """Age the set by the lap."""
    new.wear_laps = car.wear_laps + own.wear_rate
    new.temp_c = car.temp_c + engine.temp_follow * (own.settle_c - car.temp_c)
    new.age_laps = car.age_laps + 1
    new.fresh_s = car.fresh_s * engine.fresh_left


@compiled
def change(tyre: Record, drawn: Record, race: Record, engine: Record, compound: int, new: Record) -> None:
    """Fit a new set."""
    new.compound, new.offset_s, new.slope_s = compound, tyre.offset_s, tyre.slope_s
    new.cliff_laps = tyre.cliff_laps * drawn.cliff_factor
    new.wear_laps, new.age_laps, new.temp_c, new.fresh_s = 0.0, 0, engine.temp_new_c, race.fresh_s
    new.used |= 1 << compound
    new.stops += 1
