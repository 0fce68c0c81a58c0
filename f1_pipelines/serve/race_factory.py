"""Which race is asked for, and its start: a sprint of a family and seed, or a Grand Prix of the published warehouse."""
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

BY_HAND = "you"  # calls the laps with LiveRace.drive
Name = Annotated[str, Field(max_length=60)]
_KEY = re.compile(r"\d{4}-[a-z0-9-]{1,55}", re.ASCII)
# Errors that a client can mend, with messages made for it. All others are ours and reach the log only.
CLIENT_ERRORS = (BadScenario, UnknownFamily, UnknownPolicy, NoGrandPrix, NoWarehouse, EpisodeOver)


class RaceRequest(BaseModel):
    """Which race: a sprint of a family and seed, or a `grand_prix` of a weekend and a car."""

    model_config = ConfigDict(extra="forbid")

    family: Name = Field("dry_strategy_sprint", examples=["late_safety_car"])
    seed: int = Field(0, ge=0, le=MAX_SEED)
    circuit: Name | None = Field(None, description="Another circuit than the seed's own.", examples=["monaco"])
    weekend: Name | None = Field(None, description="Of a grand_prix.", examples=["2026-monaco"])
    car: Name | int | None = Field(None, description="Of a grand_prix: driver id or number of our car.")


class ResetRequest(RaceRequest):
    """Which race an agent wants; without a seed one of the split is drawn, of `train` if none is named."""

    seed: int | None = Field(None, ge=0, le=MAX_SEED)  # type: ignore[assignment]  # None: drawn from the split
    split: Name | None = Field(None, description="Checked: the seed must belong to it.")
    text: bool = Field(True, description="Whether observations carry their text.")


def begin_race(request: RaceRequest, policy: str) -> LiveRace:
    """That race on its grid, to be called by that policy, or by hand for `you`.

    Raises:
        UnknownFamily, BadScenario, UnknownPolicy, NoGrandPrix: What came and what is valid.
        NoWarehouse, PolicyUnavailable: What can't be had here and now, and why.
    """
    scenario = scenario_of(request)
    return LiveRace(scenario, None if policy == BY_HAND else create_policy(policy, scenario), policy)


def scenario_of(request: RaceRequest) -> Scenario:
    """The scenario of a race.

    Raises:
        As `begin_race`.
    """
    if request.family != GRAND_PRIX:
        if request.weekend is not None or request.car is not None:
            raise BadScenario("weekend and car belong to the family grand_prix; the others are drawn from their seed.")
        return make_scenario(request.family, request.seed, circuit=request.circuit)
    if request.weekend is None or request.car is None or request.circuit is not None:
        raise BadScenario("a grand_prix wants a weekend, like 2026-monaco, and a car, like leclerc, and no circuit.")
    return make_grand_prix(published_weekend(request.weekend), request.car, request.seed)


def published_weekend(key: str) -> GrandPrix:
    """A weekend by the published warehouse, as `RaceEnvironment(weekends=...)` wants it.

    Raises:
        BadScenario, NoGrandPrix, NoWarehouse: Why no race can be rebuilt from it.
    """
    if not _KEY.fullmatch(key):
        raise BadScenario(f"a weekend reads season-slug, like 2026-monaco; got {key[:40]!r}.")
    with published() as connection:
        return read_weekend(connection, key)
