"""The sample's tracks: the parameters its races are driven with, and the weather there.

The parameters are our priors moved by seeded amounts of the size that circuits and seasons differ by, so that a fit on
the sample's laps has something to find that no prior gives away.
"""
from __future__ import annotations

from dataclasses import replace

from f1_pipelines.identity.circuits import circuit_of
from f1_pipelines.identity.climate import rain_chance
from f1_pipelines.identity.race_distance import race_distance
from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim import CircuitParameters, circuit_prior
from f1_pipelines.sim.teams.seeded_draws import normal, scale, uniform_scalar

# docs/physics.md#circuits between seasons of a circuit: pace .4 %, stops about 1 s, slopes a quarter of their value.
PACE_SD_PCT, STOP_SD_S, SLOPE_SPREAD, PASS_SD = 0.35, 0.8, 1.35, 0.25


def true_parameters(weekend: Weekend) -> CircuitParameters:
    """What the races of this weekend are driven with: what a fit on the sample's laps should find.

    The same for every weekend of a (circuit, season). `race_laps` is the planned distance: a race that was cut short
    in reality goes the whole way here.
    """
    prior = circuit_prior(weekend.circuit, weekend.season)
    key = f"track/{weekend.circuit}/{weekend.season}"
    names = ("pace", "green", "sc", "vsc", "pass", *(f"slope {n}" for n in range(len(prior.degradation_s_per_lap))))
    moved = dict(zip(names, normal(key, names)[0].tolist(), strict=True))
    slope = scale(f"{key}/slopes", ("all",), SLOPE_SPREAD)[0]
    slopes = tuple(float(s * slope * (1.0 + 0.08 * moved[f"slope {n}"])) for n, s in
                   enumerate(prior.degradation_s_per_lap))
    stop = STOP_SD_S * moved["green"]
    return replace(
        prior, provenance="sample", race_laps=race_distance(weekend),
        base_lap_s=prior.base_lap_s * (1.0 + PACE_SD_PCT / 100.0 * moved["pace"]), degradation_s_per_lap=slopes,
        stop_loss_green_s=prior.stop_loss_green_s + stop, stop_loss_vsc_ending_s=prior.stop_loss_vsc_ending_s + stop,
        stop_loss_vsc_s=prior.stop_loss_vsc_s + 0.66 * stop + 0.4 * moved["vsc"],
        stop_loss_sc_s=prior.stop_loss_sc_s + 0.61 * stop + 0.4 * moved["sc"],
        pass_circuit=prior.pass_circuit + PASS_SD * moved["pass"])


def sprint_distance(weekend: Weekend) -> int:
    """Laps of a sprint: the least number that goes beyond 100 km."""
    return int(100.0 // circuit_of(weekend.circuit, weekend.layout).length_km) + 1


def is_wet(weekend: Weekend, session: str) -> bool:
    """Whether a practice or qualifying is held on a wet track. Races have rain by lap instead."""
    return uniform_scalar(f"{weekend.key}/{session}/rain") < 0.7 * rain_chance(weekend)


def air_temp_c(weekend: Weekend, session: str) -> float:
    """Air temperature [degrees C]: cooler away from the equator and out of summer."""
    latitude = circuit_of(weekend.circuit, weekend.layout).latitude
    month = weekend.race_start.month
    summer = 1.0 - abs(month - 7) / 6.0 if latitude > 0 else abs(month - 7) / 6.0
    usual = 31.0 - 0.35 * abs(latitude) + 9.0 * (summer - 0.5)
    day, hour = normal(f"{weekend.key}/air", ("day", session))[0]
    return float(usual + 2.5 * day + 1.0 * hour)
