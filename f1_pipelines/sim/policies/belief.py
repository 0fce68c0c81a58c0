"""The belief about a race, from observations alone."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from f1_pipelines.sim.engine.drive import MODES, TEMPS
from f1_pipelines.sim.engine.parameters import COMPOUNDS, CircuitParameters
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.environment.notes import lap_usage
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.scenarios import FAMILIES
from f1_pipelines.sim.scenarios.grand_prix import FUEL_LAPS
from f1_pipelines.sim.scenarios.track_events import Forecast

Stops = list[tuple[int, int]]  # lap, compound


@dataclass
class Belief:
    """Belief about one race; `see` updates it with each observation."""

    circuit: CircuitParameters
    fuel_laps: float  # expected fuel beyond the flag [laps at race pace]
    fuel_sd: float
    tyre_left: float | None = None  # estimate by the last inspection of this set [laps at race pace]
    tyre_sd: float = 0.0
    forecast: Forecast | None = None
    forecast_lap: int = 0  # lap after the last forecast
    exact: bool = False  # the radar shows when the rain begins
    dry: bool = False  # no rain to come, by forecast or briefing
    plans: dict[int, tuple[str, Stops]] = field(default_factory=dict)  # number -> character, planned stops
    rain: list[float] = field(default_factory=list)  # rain of the laps driven
    status: list[str] = field(default_factory=list)
    stops: int = 0
    first_used: dict[int, str] = field(default_factory=dict)  # starting compound of each car
    wear_laps: float = 0.0  # wear of our set [laps at race pace]
    closed_lap: int = 0  # first lap of a closed track, 0 for none

    @classmethod
    def of(cls, o: Observation, circuits: Mapping[str, CircuitParameters] | None = None) -> Belief:
        """The belief before the start.

        Args:
            o: The observation on the grid.
            circuits: Public parameters by circuit id; the embedded priors apply to circuits that are missing.
        """
        base = (circuits or {}).get(o.circuit) or circuit_prior(o.circuit)
        circuit = replace(base, compound_offset_s=(*o.offsets_s, 0.0, 0.0))
        low, high = FUEL_LAPS if o.weekend else FAMILIES[o.family].fuel_laps
        return cls(circuit, (low + high) / 2, (high - low) / 12**0.5, first_used={c.number: c.compound for c in o.cars},
                   wear_laps=float(o.own.age_laps), dry=o.rain_chance == 0)

    def see(self, o: Observation, last: Observation | None) -> None:
        """Update with observation `o`; `last` is the one before it, None on the grid."""
        if last is not None:
            burnt, worn = _last_lap_usage(o, last)
            self.fuel_laps += 1.0 - burnt
            self.wear_laps += worn
            self.rain.append(o.rain)
            self.status.append(last.status)
            if self.tyre_left is not None:
                self.tyre_left -= worn
        if o.own.stops > self.stops or (last is not None and o.own.age_laps == 0):
            self.tyre_left, self.wear_laps, self.stops = None, 0.0, o.own.stops
        if o.status != "green" and not self.closed_lap:
            self.closed_lap = o.lap
        facts = o.facts
        if "tyre_laps_left" in facts:
            self.tyre_left, self.tyre_sd = facts["tyre_laps_left"] - _last_lap_usage(o, last)[1], facts["sd"]
        if "fuel_margin_laps" in facts:
            margin, sd = facts["fuel_margin_laps"] + 1.0 - _last_lap_usage(o, last)[0], facts["sd"]
            old = self.fuel_sd**-2 if self.fuel_sd < 0.2 else 0.0  # combine repeated readings
            self.fuel_laps = (margin * sd**-2 + self.fuel_laps * old) / (sd**-2 + old)
            self.fuel_sd = (sd**-2 + old)**-0.5
        if "character" in facts:
            self.plans[facts["car"]] = (facts["character"], facts["plan"])
        if "rain" in facts:
            self.forecast_lap, self.dry = o.lap, facts["rain"] == "none"
            self.exact = facts["rain"] == "radar"
            if not self.dry:
                self.forecast = Forecast(facts["chance"], facts["onset_lap"], facts["peak"], facts["length_laps"])

    @property
    def onset(self) -> int:
        """First lap with rain so far, 0 for none."""
        return next((lap for lap, rain in enumerate(self.rain, 1) if rain > 0), 0)

    def life_laps(self, o: Observation, compound: int) -> float:
        """Usual life of a new set [laps at race pace]."""
        return self.circuit.cliff_laps[compound] / o.wear_scale

    def left_laps(self, o: Observation) -> float:
        """Expected life left in our set [laps at race pace]."""
        if self.tyre_left is not None:
            return self.tyre_left
        return self.life_laps(o, COMPOUNDS.index(o.own.compound)) - self.wear_laps


def _last_lap_usage(o: Observation, last: Observation | None) -> tuple[float, float]:
    """Fuel and wear of the lap just driven [laps at race pace]. Answers refer to the state before that lap."""
    return lap_usage(MODES.index(o.mode), TEMPS.index(o.temp), last.status if last else "green")


def rain_now(o: Observation) -> bool:
    """Whether it rained in the lap just driven."""
    return o.rain > 0 and o.lap > 1


def normal_noise(rng: np.random.Generator, sd: float, size: int) -> np.ndarray:
    """`size` draws of normal noise; zeros without drawing if `sd` is 0."""
    return rng.normal(0.0, sd, size) if sd > 0 else np.zeros(size)
