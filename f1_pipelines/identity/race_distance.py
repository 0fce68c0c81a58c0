"""The planned distance of a Grand Prix."""
from __future__ import annotations

from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim import circuit_prior


def race_distance(weekend: Weekend) -> int:
    """Planned laps of the Grand Prix. The calendar's number is the distance driven, which red flags cut short."""
    prior = circuit_prior(weekend.circuit, weekend.season)
    return prior.race_laps if prior.provenance == "circuit_prior" else weekend.race_laps or prior.race_laps
