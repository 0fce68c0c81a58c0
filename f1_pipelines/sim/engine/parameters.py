"""Every parameter of the physics, with its unit, default and source.

`CircuitParameters` may differ from episode to episode (fits replace them one by one); `EngineParameters` hold for a
whole batch. A source reads `physics.md#section` for a section of docs/physics.md, which was measured on real laps of
2018-2026, or `assumption` where nothing was measured. `describe()` lists all parameters; docs/parameters.md shows them.
"""
from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

SOFT, MEDIUM, HARD, INTER, WET = range(5)
COMPOUNDS = ("soft", "medium", "hard", "inter", "wet")
GREEN, VSC, SC, RED = range(4)
STATUSES = ("green", "vsc", "sc", "red")


def parameter(default: Any, unit: str, source: str) -> Any:
    """A dataclass field with a unit and a source. Tuples are by compound: soft, medium, hard, inter, wet."""
    return field(default=default, metadata={"unit": unit, "source": source})


@dataclass(frozen=True)
class CircuitParameters:
    """One circuit in one season. Defaults are pooled priors; a lap time is a sum of these effects."""

    circuit: str = parameter("unknown", "-", "circuit id as in identity/data/circuits.csv")
    season: int = parameter(2025, "year", "regulations: 2026 has its own pace and overtaking")
    provenance: str = parameter("prior", "-", "prior (pooled), circuit_prior (table of physics.md#circuits) or fitted")
    race_laps: int = parameter(57, "laps", "physics.md#circuits; the usual Grand Prix distance")

    base_lap_s: float = parameter(89.4, "s", "physics.md#circuits, median clean lap less 10 laps of medium wear")
    track_trend_s_per_lap: float = parameter(-0.004, "s/lap", "physics.md#lap-time: trend beyond the fuel burnt")
    fuel_effect_s_per_kg: float = parameter(0.030, "s/kg", "published fits 2014-2019 (race_params), about .03")
    fuel_burn_kg_per_lap: float = parameter(1.77, "kg/lap", "101 kg over the race distance (110 kg limit)")
    lap_scatter_s: float = parameter(0.39, "s", "physics.md#lap-time and #circuits: MAD sd of residuals")

    compound_offset_s: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.15, 0.0, 0.0), "s", "physics.md#lap-time: 0 / 0 / +.15")
    degradation_s_per_lap: tuple[float, ...] = parameter(
        (0.076, 0.062, 0.049, 0.060, 0.040), "s per lap of wear", "physics.md#circuits; inter and wet: assumption")
    cliff_laps: tuple[float, ...] = parameter(
        (28.0, 34.0, 41.0, 34.0, 40.0), "laps of wear",
        "physics.md#lap-time: 90 % of green stops by .44/.52/.62 of the race, cliff 10 % later; inter, wet: assumption")
    fresh_tyre_gain_s: float = parameter(0.16, "s", "physics.md#lap-time: first flying lap on a new set")

    stop_loss_green_s: float = parameter(22.7, "s", "physics.md#stops: lane and standstill, in-lap plus out-lap")
    stop_loss_vsc_s: float = parameter(15.0, "s", "physics.md#stops: VSC on both laps, .66 of green")
    stop_loss_vsc_ending_s: float = parameter(21.9, "s", "physics.md#stops: VSC ends before the out-lap")
    stop_loss_sc_s: float = parameter(13.8, "s", "physics.md#stops: lap of deployment, .61 of green")
    standstill_s: float = parameter(2.6, "s", "part of the loss; assumption, a good crew of 2022-26")
    stop_scatter_s: float = parameter(1.4, "s", "physics.md#stops: robust sd within a race")

    sc_per_race: float = parameter(0.75, "1/race", "physics.md#safety-car")
    vsc_per_race: float = parameter(0.50, "1/race", "physics.md#safety-car")
    red_per_race: float = parameter(0.13, "1/race", "physics.md#safety-car")
    vsc_lap_ratio: float = parameter(1.33, "x green lap", "physics.md#safety-car: whole lap under VSC")
    vsc_last_lap_ratio: float = parameter(1.17, "x green lap", "physics.md#safety-car: VSC ending")
    sc_first_leader_ratio: float = parameter(1.34, "x green lap", "physics.md#safety-car: lap of deployment")
    sc_first_catch_ratio: float = parameter(1.22, "x green lap", "physics.md#safety-car: spread 90 -> 76 s in that lap")
    sc_leader_ratio: float = parameter(1.60, "x green lap", "physics.md#safety-car: leader x1.66, then x1.58")
    sc_catch_ratio: float = parameter(1.26, "x green lap", "measured 2018-26: 45 s back or more, later laps")

    pass_intercept: float = parameter(-0.3, "logit", "physics.md#overtaking")
    pass_per_advantage: float = parameter(2.4, "logit/s", "physics.md#overtaking")
    pass_per_gap: float = parameter(4.4, "logit/s", "physics.md#overtaking (counts against)")
    pass_circuit: float = parameter(-0.1, "logit", "physics.md#circuits: logit of the pass column + .1")
    dirty_air_s: float = parameter(
        0.34, "s", "physics.md#overtaking: .26 / .16 / .05 s at < 1, 1-2, 2-3 s, linear in the gap")
    dirty_air_reach_s: float = parameter(3.0, "s", "physics.md#overtaking")
    lapped_loss_s: float = parameter(0.4, "s/lap", "assumption: letting the leaders by, once a lap down")

    first_lap_places: float = parameter(1.78, "places", "physics.md#first-lap: mean places changed; 4 circuits differ")
    first_lap_loss_s: float = parameter(2.2, "s", "physics.md#first-lap: lap 1 of P1 less laps 2-5 of that car")
    accident_per_race: float = parameter(0.055, "1/car/race", "physics.md#retirements, 2022-2025")
    mechanical_per_race: float = parameter(0.055, "1/car/race", "physics.md#retirements, 2022-2025")

    @cached_property
    def values(self) -> np.ndarray:
        """All numeric parameters in the order of `COLUMNS`, tuples flattened, (K,)."""
        return np.concatenate([np.atleast_1d(np.asarray(getattr(self, name), dtype=float)) for name in COLUMNS])


@dataclass(frozen=True)
class EngineParameters:
    """Parameters shared by all circuits of a batch."""

    noise_below: float = parameter(
        0.32, "x lap scatter", "physics.md#lap-time: 1.3 % of laps gain > 1 s; measured on replays")
    noise_above: float = parameter(
        0.90, "x lap scatter", "physics.md#lap-time: 6.4 % lose > 1 s; measured on replays")
    noise_worst_s: float = parameter(8.0, "s", "a spin; longer losses are incidents")
    noise_best_s: float = parameter(-1.5, "s", "largest gain of a lap: physics.md#lap-time, 1.3 % gain > 1 s")
    noise_carry: float = parameter(0.50, "-", "physics.md#lap-time: .42 measured; cut after two laps, and capped")
    noise_centre: float = parameter(0.27, "x lap scatter", "tuned by simulation: what carried losses add to the median")
    noise_carry_cap_s: float = parameter(1.2, "s", "largest loss that carries over: a mistake is not repeated")
    stop_noise_below: float = parameter(0.36, "x stop scatter", "physics.md#stops: quartiles")
    stop_noise_above: float = parameter(1.30, "x stop scatter", "physics.md#stops: 10 % > +3, 4.6 % > +6, 2 % > +10 s")
    stop_noise_worst_s: float = parameter(30.0, "s", "a wheel nut; the worst stops of 2022-26")
    stop_noise_best_s: float = parameter(-2.5, "s", "the drive through the lane sets a limit")
    pass_lap_noise: float = parameter(0.35, "-", "share of a lost second lost where one can pass; passes of replays")
    pass_shut_logit: float = parameter(-3.0, "logit", "pass_circuit at which that share is 0 (Monaco); linear up to 0")
    pass_chance: float = parameter(0.95, "-", "share of the pass logit that lap noise does not cover already")
    follow_gap_min_s: float = parameter(0.25, "s", "physics.md#overtaking: 1 % of pairs below .23 s")
    follow_gap_max_s: float = parameter(1.3, "s", "physics.md#overtaking: held cars stay within 1 s in 82 % of laps")
    follow_laps: int = parameter(6, "laps", "assumption: how long a place in a train keeps its distance")
    dirty_air_share: float = parameter(0.4, "-", "share of the measured loss; waiting behind cars is simulated")
    passer_loss_s: float = parameter(0.14, "s", "physics.md#overtaking")
    passed_loss_s: float = parameter(0.5, "s", "physics.md#overtaking: +1.1 s, of which the following gap is half")
    first_lap_gap_front_s: float = parameter(0.95, "s/place", "physics.md#first-lap: P2 1.1, P5 3.7 s")
    first_lap_gap_back_s: float = parameter(0.55, "s/place", "physics.md#first-lap: P10 7.0, P20 13.3 s")
    sc_catch_fade: tuple[float, ...] = parameter(
        (1.09, 0.97, 0.91, 0.84), "x sc_catch_ratio", "measured: x1.38, 1.22, 1.15, 1.08 in laps 2, 3, 4, 5+")
    queue_gap_s: float = parameter(1.15, "s", "physics.md#safety-car: spread 22 s in the queue")
    queue_gap_last_s: float = parameter(0.5, "s", "physics.md#safety-car: last SC lap")
    red_gap_s: float = parameter(0.8, "s", "assumption: rolling restart")
    red_stoppage_s: float = parameter(1500.0, "s", "assumption: 25 minutes, counted into the race time")
    cliff_linear_s: float = parameter(0.35, "s per lap past", "assumption; physics.md#lap-time: > 1 s within 3 laps")
    cliff_square_s: float = parameter(0.15, "s per lap^2 past", "assumption")
    cliff_cap_laps: float = parameter(8.0, "laps", "beyond this a set gets no slower (12 s a lap)")
    cliff_spread: float = parameter(0.15, "share", "assumption: one set's cliff is within +-15 % of the usual")
    puncture_per_lap_past: float = parameter(0.03, "1/lap per lap past", "assumption: every fifth set 3 laps past")
    puncture_per_lap: float = parameter(0.0002, "1/lap", "assumption: debris")
    puncture_loss_s: float = parameter(35.0, "s", "assumption: half a lap on three wheels, then the stop")
    fuel_sc: float = parameter(0.50, "x green", "assumption (published 2018-19 models lower the burn)")
    fuel_vsc: float = parameter(0.65, "x green", "assumption")
    wear_sc: float = parameter(0.25, "x green", "published simulator of 2014-2019")
    wear_vsc: float = parameter(0.50, "x green", "published simulator of 2014-2019")
    hold_gap_wear: float = parameter(0.3, "share/s", "assumption: wear saved by a second not used")
    hold_gap_fuel: float = parameter(0.06, "share/s", "assumption: fuel saved by a second not used")
    fresh_left: float = parameter(0.3, "share/lap", "physics.md#lap-time: the next lap is .05 s quicker after .16")
    starved_loss_s: float = parameter(12.0, "s", "assumption: coasting with less than a lap of fuel")
    temp_window_c: float = parameter(10.0, "C", "assumption: no loss within +-10 C of the best temperature")
    temp_loss_s_per_c: float = parameter(0.03, "s/C", "assumption: .3 s at 20 C")
    temp_wear_per_c: float = parameter(0.02, "share/C", "assumption: blisters and graining")
    temp_follow: float = parameter(0.5, "share/lap", "assumption: how quickly tyres take on a new temperature")
    temp_dirty_air_c: float = parameter(8.0, "C", "assumption: sliding behind another car")
    temp_grid_c: float = parameter(-8.0, "C", "assumption: after the formation lap")
    temp_slow_c: float = parameter(-28.0, "C", "assumption: tyres go cold behind the safety car")
    temp_vsc: float = parameter(0.6, "x temp_slow_c", "assumption: a VSC is quicker than a safety car")
    temp_new_c: float = parameter(-6.0, "C", "assumption: a set from the blankets")
    slow_hazard: float = parameter(0.2, "x green", "assumption: fewer incidents under VSC and SC")
    accident_first_lap: float = parameter(0.018, "1/car", "physics.md#retirements: .02 per car in laps 0-1, contact")
    double_stack_s: float = parameter(2.5, "s", "assumption: the second car waits for the standstill plus this")


COLUMNS = tuple(f.name for f in fields(CircuitParameters) if f.name not in ("circuit", "season", "provenance"))
_WIDTH = [len(f.default) if isinstance(f.default, tuple) else 1 for f in fields(CircuitParameters) if f.name in COLUMNS]
SLICES = {name: slice(end - width, end) for name, width, end in zip(COLUMNS, _WIDTH, np.cumsum(_WIDTH), strict=True)}


def describe() -> list[dict[str, Any]]:
    """Name, default, unit and source of every parameter, for docs/parameters.md and the tests."""
    return [{"name": f.name, "default": f.default, **f.metadata}
            for kind in (CircuitParameters, EngineParameters) for f in fields(kind)]
