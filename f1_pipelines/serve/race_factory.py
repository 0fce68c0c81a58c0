"""Builds a race from a request: a sprint from family and seed, or a Grand Prix from the published warehouse."""
from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from f1_pipelines.serve.live_race import LiveRace
from f1_pipelines.serve.policies import create_policy
from f1_pipelines.serve.published_warehouse import NoWarehouse, published
from f1_pipelines.sim.environment.environment import EpisodeOver
from f1_pipelines.sim.policies.play import UnknownPolicy
from f1_pipelines.sim.scenarios import (
    GRAND_PRIX,
    MAX_SEED,
    BadScenario,
    GrandPrix,
    Scenario,
    UnknownFamily,
    make_grand_prix,
    make_scenario,
)
from f1_pipelines.weekend_scenarios import NoGrandPrix, read_weekend

BY_HAND = "you"  # no policy: commands come through LiveRace.drive
Name = Annotated[str, Field(max_length=60)]
_KEY = re.compile(r"\d{4}-[a-z0-9-]{1,55}", re.ASCII)
# Errors in the request; clients see their messages. All other errors are the server's and reach the log only.
CLIENT_ERRORS = (BadScenario, UnknownFamily, UnknownPolicy, NoGrandPrix, NoWarehouse, EpisodeOver)


class RaceRequest(BaseModel):
    """A sprint (`family`, `seed` and optionally `circuit`) or a `grand_prix` (`weekend`, `car` and `seed`)."""

    model_config = ConfigDict(extra="forbid")

    family: Name = Field("dry_strategy_sprint", examples=["late_safety_car"])
    seed: int = Field(0, ge=0, le=MAX_SEED)
    circuit: Name | None = Field(None, description="Circuit of a sprint; default: chosen by the seed.",
                                 examples=["monaco"])
    weekend: Name | None = Field(None, description="Weekend of a grand_prix.", examples=["2026-monaco"])
    car: Name | int | None = Field(None, description="Our car in a grand_prix: its driver id or car number.")


class ResetRequest(RaceRequest):
    """A race for an agent. Without a seed, a random one from the split is used."""

    seed: int | None = Field(  # type: ignore[assignment]  # RaceRequest has a default instead of None
        None, ge=0, le=MAX_SEED, description="Default: a random seed from the split.")
    split: Name | None = Field(None, description="Split that the seed must belong to; default for a random seed: "
                                                 "train, or unseen_family for that family.")
    text: bool = Field(True, description="Whether observations include the prompt text.")


def begin_race(request: RaceRequest, policy: str) -> LiveRace:
    """Create a race on its grid, controlled by a policy, or by hand for the policy `you`.

    Raises:
        UnknownFamily, BadScenario, UnknownPolicy, NoGrandPrix: The request is invalid; the message says what is valid.
        NoWarehouse, PolicyUnavailable: The warehouse or the policy is not available.
    """
    scenario = scenario_of(request)
    return LiveRace(scenario, None if policy == BY_HAND else create_policy(policy, scenario), policy)


def scenario_of(request: RaceRequest) -> Scenario:
    """Create the scenario of a race.

    Raises:
        BadScenario, UnknownFamily, NoGrandPrix, NoWarehouse: See `begin_race`.
    """
    if request.family != GRAND_PRIX:
        if request.weekend is not None or request.car is not None:
            raise BadScenario("weekend and car are only for the family grand_prix; leave them out, or set the family.")
        return make_scenario(request.family, request.seed, circuit=request.circuit)
    if request.weekend is None or request.car is None or request.circuit is not None:
        raise BadScenario("a grand_prix needs a weekend, like 2026-monaco, and a car, like leclerc, but no circuit.")
    return make_grand_prix(published_weekend(request.weekend), request.car, request.seed)


def published_weekend(key: str) -> GrandPrix:
    """Read a weekend from the published warehouse; the `weekends` of `RaceEnvironment`.

    Raises:
        BadScenario: The key is malformed.
        NoGrandPrix: The weekend has no data for a race.
        NoWarehouse: There is no readable warehouse.
    """
    if not _KEY.fullmatch(key):
        raise BadScenario(f"a weekend key is season-slug, like 2026-monaco; got {key[:40]!r}.")
    with published() as connection:
        return read_weekend(connection, key)
