"""The form of the live simulator: choose the race and the policy."""
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
    """Inputs for family, circuit, seed and policy; for a Grand Prix weekend and driver instead of circuit."""

    def __init__(self, query: dict[str, str]):
        """
        Args:
            query: The page's URL parameters, used as initial values: family, seed, circuit, weekend, car, policy.
        """
        family = query.get("family") if query.get("family") in (*FAMILIES, GRAND_PRIX) else DEFAULT_RACE["family"]
        seed: Any = int(query["seed"]) if str(query.get("seed", "")).isdigit() else DEFAULT_RACE["seed"]
        policies = {BY_HAND: "you (by hand)"} | {
            policy.name: f"{policy.name} ({_KIND_LABELS[policy.kind]})" for policy in available_policies()}
        selected = query.get("policy") if query.get("policy") in policies else DEFAULT_RACE["policy"]
        self.family = ui.select([*FAMILIES, GRAND_PRIX], value=family, label="Family",
                                on_change=lambda: self.location.refresh()).classes("min-w-52 grow").props(
            "data-mark=family")
        self._query = query
        self.location()
        self.seed = ui.number("Seed", value=seed, min=0, max=MAX_SEED, precision=0).classes("w-24").props(
            "data-mark=seed")
        ui.button(icon="casino", on_click=self._randomize_seed).props('flat round aria-label="Random seed"')
        self.policy = ui.select(policies, value=selected, label="Policy").classes("min-w-48 grow").props(
            "data-mark=policy")

    @ui.refreshable_method
    def location(self) -> None:
        """Show the circuit of a sprint, or weekend and driver of a Grand Prix."""
        self.circuit: ui.select | None = None
        self.weekend: ui.select | None = None
        self.driver: ui.select | None = None
        if self.family.value != GRAND_PRIX:
            family = FAMILIES[self.family.value]
            circuits = {OWN_CIRCUIT: "chosen by the seed"} | {key: key for key in sorted((*family.circuits,
                                                                                          *family.unseen_circuits))}
            circuit = self._query.get("circuit", OWN_CIRCUIT)
            self.circuit = ui.select(circuits, value=circuit if circuit in circuits else OWN_CIRCUIT,
                                     label="Circuit").classes("min-w-36 grow").props("data-mark=circuit")
            return
        keys = _weekends_with_grid()
        key = self._query.get("weekend")
        self.weekend = ui.select(keys, value=key if key in keys else (keys[0] if keys else None), label="Weekend",
                                 with_input=True, on_change=self._set_drivers).classes("min-w-40 grow").props(
            "data-mark=weekend")
        self.driver = ui.select({}, label="Driver").classes("min-w-40 grow").props("data-mark=driver")
        self._set_drivers()

    def request(self) -> RaceRequest:
        """Return the selected race."""
        return RaceRequest(family=self.family.value, seed=int(self.seed.value or 0),
                           circuit=(self.circuit.value or None) if self.circuit else None,
                           weekend=self.weekend.value if self.weekend else None,
                           car=self.driver.value if self.driver else None)

    def _set_drivers(self) -> None:
        if self.weekend is None or self.driver is None:
            return
        names = _starters(self.weekend.value) if self.weekend.value else {}
        car = self._query.get("car")
        self.driver.set_options(names, value=car if car in names else next(iter(names), None))

    def _randomize_seed(self) -> None:
        self.seed.value = secrets.randbelow(10_000)


def _weekends_with_grid() -> list[str]:
    """Keys of weekends with a grid, newest first; empty without a warehouse."""
    try:
        with published() as connection:
            return [key for (key,) in connection.execute(
                "SELECT weekend FROM race.calendar WHERE weekend IN (SELECT weekend FROM race.grid "
                "WHERE session = 'race') ORDER BY race_start DESC").fetchall()]
    except NoWarehouse:
        return []


def _starters(weekend: str) -> dict[str, str]:
    """Driver names by id, in grid order."""
    try:
        with published() as connection:
            rows = connection.execute("SELECT driver FROM race.grid WHERE weekend = ? AND session = 'race' AND "
                                      "grid_position IS NOT NULL ORDER BY grid_position", [weekend]).fetchall()
    except NoWarehouse:
        return {}
    return {driver: driver_name(driver) for (driver,) in rows}
