"""Which race is looked at, and who calls it: the form above the live simulator."""
from __future__ import annotations

import secrets
from typing import Any

from nicegui import ui

from f1_pipelines.serve.policies import available_policies
from f1_pipelines.serve.published_warehouse import NoWarehouse, published
from f1_pipelines.serve.race_factory import BY_HAND, RaceRequest
from f1_pipelines.serve.routes.predictions import driver_name
from f1_pipelines.sim.scenarios import FAMILIES, GRAND_PRIX, MAX_SEED

OWN_CIRCUIT = ""
DEFAULT_RACE = {"family": "weather_roulette", "seed": 7, "policy": "expert"}
_KIND_LABELS = {"scripted": "scripted", "oracle": "knows the future", "language model": "language model"}


class RaceForm:
    """Selects for family, circuit, seed and policy; of a Grand Prix for weekend and driver instead of the circuit."""

    def __init__(self, query: dict[str, str]):
        """`query`: what the address of the page says: family, seed, circuit, weekend, car, policy."""
        family = query.get("family") if query.get("family") in (*FAMILIES, GRAND_PRIX) else DEFAULT_RACE["family"]
        seed: Any = int(query["seed"]) if str(query.get("seed", "")).isdigit() else DEFAULT_RACE["seed"]
        known = {BY_HAND: "you (call it yourself)"} | {
            offer.name: f"{offer.name} ({_KIND_LABELS[offer.kind]})" for offer in available_policies()}
        policy = query.get("policy") if query.get("policy") in known else DEFAULT_RACE["policy"]
        self.family = ui.select([*FAMILIES, GRAND_PRIX], value=family, label="Family",
                                on_change=lambda: self.where.refresh()).classes("min-w-52 grow").props(
            "data-mark=family")
        self._query = query
        self.where()
        self.seed = ui.number("Seed", value=seed, min=0, max=MAX_SEED, precision=0).classes("w-24").props(
            "data-mark=seed")
        ui.button(icon="casino", on_click=self._roll).props('flat round aria-label="Another seed"')
        self.policy = ui.select(known, value=policy, label="On the pit wall").classes("min-w-48 grow").props(
            "data-mark=policy")

    @ui.refreshable_method
    def where(self) -> None:
        """The circuit of a sprint, or weekend and driver of a Grand Prix."""
        self.circuit: ui.select | None = None
        self.weekend: ui.select | None = None
        self.driver: ui.select | None = None
        if self.family.value != GRAND_PRIX:
            family = FAMILIES[self.family.value]
            circuits = {OWN_CIRCUIT: "the seed's own"} | {key: key for key in sorted((*family.circuits,
                                                                                      *family.unseen_circuits))}
            circuit = self._query.get("circuit", OWN_CIRCUIT)
            self.circuit = ui.select(circuits, value=circuit if circuit in circuits else OWN_CIRCUIT,
                                     label="Circuit").classes(
                "min-w-36 grow").props("data-mark=circuit")
            return
        keys = _weekends_with_grid()
        wanted = self._query.get("weekend")
        self.weekend = ui.select(keys, value=wanted if wanted in keys else (keys[0] if keys else None), label="Weekend",
                                 with_input=True, on_change=self._drivers).classes("min-w-40 grow").props(
            "data-mark=weekend")
        self.driver = ui.select({}, label="Whose pit wall").classes("min-w-40 grow").props("data-mark=driver")
        self._drivers()

    def request(self) -> RaceRequest:
        """The race that is chosen now."""
        return RaceRequest(family=self.family.value, seed=int(self.seed.value or 0),
                           circuit=(self.circuit.value or None) if self.circuit else None,
                           weekend=self.weekend.value if self.weekend else None,
                           car=self.driver.value if self.driver else None)

    def _drivers(self) -> None:
        if self.weekend is None or self.driver is None:
            return
        names = _starters(self.weekend.value) if self.weekend.value else {}
        car = self._query.get("car")
        self.driver.set_options(names, value=car if car in names else next(iter(names), None))

    def _roll(self) -> None:
        self.seed.value = secrets.randbelow(10_000)


def _weekends_with_grid() -> list[str]:
    """The newest first; none without a warehouse."""
    try:
        with published() as connection:
            return [key for (key,) in connection.execute(
                "SELECT weekend FROM race.calendar WHERE weekend IN (SELECT weekend FROM race.grid "
                "WHERE session = 'race') ORDER BY race_start DESC").fetchall()]
    except NoWarehouse:
        return []


def _starters(weekend: str) -> dict[str, str]:
    """Names by driver id, in the order of the grid."""
    try:
        with published() as connection:
            rows = connection.execute("SELECT driver FROM race.grid WHERE weekend = ? AND session = 'race' AND "
                                      "grid_position IS NOT NULL ORDER BY grid_position", [weekend]).fetchall()
    except NoWarehouse:
        return {}
    return {driver: driver_name(driver) for (driver,) in rows}
