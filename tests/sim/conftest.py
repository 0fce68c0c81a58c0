from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from f1_pipelines.sim.engine.drive import Calls, drive_code
from f1_pipelines.sim.engine.parameters import CircuitParameters, EngineParameters
from f1_pipelines.sim.engine.priors import circuit_prior
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.state import RaceState
from f1_pipelines.sim.scenarios import Entry, GrandPrix


@pytest.fixture
def quiet_circuit() -> CircuitParameters:
    """A circuit without randomness: no scatter, no failures, no closed track."""
    return CircuitParameters(lap_scatter_s=0.0, stop_scatter_s=0.0, sc_per_race=0.0, vsc_per_race=0.0, red_per_race=0.0,
                             accident_per_race=0.0, mechanical_per_race=0.0)


@pytest.fixture
def quiet(quiet_circuit) -> Callable[..., RaceSetup]:
    """A setup on the quiet circuit, joined under way with the given gaps, after the first corner."""
    def setup(gaps_s=(0.0, 5.0, 10.0), laps=10, circuit=quiet_circuit, **more) -> RaceSetup:
        values = {"circuits": (circuit,), "seeds": np.array([3]), "car_pace_s": np.zeros(len(gaps_s)),
                  "start_gap_s": np.array(gaps_s), "race_laps": laps, "accident_scale": 0.0,
                  "engine": EngineParameters(puncture_per_lap=0.0)}
        return RaceSetup(**{**values, **more})

    return setup


@pytest.fixture
def eventful() -> Callable[..., RaceSetup]:
    """A batch with every kind of event: rain, failures, safety cars, empty tanks, worn tyres, mixed lengths."""
    def setup(episodes: int, cars: int = 8, laps: int = 14, **more) -> RaceSetup:
        at = np.arange(episodes)[:, None]
        lap = np.arange(laps)
        names = ("bahrain", "monaco", "spa-francorchamps")
        return RaceSetup(**{
            "circuits": tuple(circuit_prior(name) for name in names), "circuit_of": np.arange(episodes) % 3,
            "seeds": np.arange(episodes) * 7919 + 5, "race_laps": laps - np.arange(episodes) % 4,
            "car_pace_s": np.linspace(-1, 1, cars) * (1 + at % 3), "car_numbers": np.arange(cars) * 3 + 1,
            "team": np.arange(cars) // 2, "rain": 0.9 * ((at % 4 == 1) & (lap > 4) & (lap < 9)),
            "start_fuel_kg": (laps - 2 + at % 5) * 1.9 + np.zeros(cars), "start_age_laps": at % 6 + np.zeros(cars, int),
            "start_compound": (at + np.arange(cars)) % 3, "wear_scale": 1.0 + np.arange(episodes) % 4,
            "accident_scale": 6.0, "mechanical_scale": 4.0, "track_heat_c": np.arange(episodes) % 3 * 6.0, **more})

    return setup


@pytest.fixture
def busy() -> Callable[[Race, RaceState], Calls]:
    """Calls of every kind that differ by episode, car and lap, but not by place in the batch."""
    def policy(race: Race, state: RaceState) -> Calls:
        seed = (np.asarray(race.setup.seeds)[:, None] % 1000).astype(np.int64)
        car = np.broadcast_to(race.setup.car_numbers, (race.episodes, race.cars)).astype(np.int64)
        x = (seed * 31 + car * 17 + state.lap * 13) % 97
        code = drive_code(mode=x % 6, temp=x % 3, drs=x % 7 > 0, attack=x % 5 == 0, defend=x % 11 == 0)
        no_call = np.full(x.shape, -1)
        return Calls(pit=np.where(x % 9 == 4, x % 5, no_call), drive=code,
                     hold_gap=np.where(x % 13 == 2, (x + 1) % race.cars, no_call),
                     let_by=np.where(x % 6 == 1, (x + 2) % race.cars, no_call))

    return policy


@pytest.fixture(scope="session")
def grand_prix() -> GrandPrix:
    """A weekend of 22 cars at Spa, a tenth of a second apart; the start tyres of half of the field are known."""
    circuit = circuit_prior("spa-francorchamps", 2026)
    return GrandPrix("2026-belgium", circuit, circuit.race_laps, tuple(
        Entry(f"driver-{chr(97 + k)}", k + 2, f"team-{k // 2}", k + 1, round(0.1 * (k - 10), 2), k % 3 if k % 2 else -1)
        for k in range(22)), 0.4)
