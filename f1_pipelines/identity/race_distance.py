"""The planned distance of a Grand Prix."""
from __future__ import annotations

from f1_pipelines.identity.weekend import Weekend
from f1_pipelines.sim import circuit_prior


def race_distance(weekend: Weekend) -> int:
    """Planned distance of the Grand Prix [laps]. The calendar has the laps driven, which a red flag may cut short."""
    prior = circuit_prior(weekend.circuit, weekend.season)
    return prior.race_laps if prior.provenance == "circuit_prior" else weekend.race_laps or prior.race_laps
