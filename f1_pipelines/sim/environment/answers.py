"""Answers to commands: `answer_of(command, ...)`."""
from __future__ import annotations

from collections.abc import Callable

from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import RaceState
from f1_pipelines.sim.environment import inspections
from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.inspections import Answer
from f1_pipelines.sim.environment.pit_wall import drivers_choice
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scoring.claims import CAR, CLOSED, FUEL, RAIN, STOP, claims_of

MAX_REPEATED_CLAIMS = 3  # claims that the reply to a message repeats
NOT_UNDERSTOOD = "Not a command, car stays out."


def answer_of(command: Command, scenario: Scenario, race: Race, state: RaceState, row: int = 0) -> Answer | None:
    """Answer a command before its lap is driven; None for commands without an answer.

    Args:
        command: The command.
        scenario: The scenario.
        race: The batch that holds the scenario.
        state: State of the batch before the lap.
        row: Row of the scenario in the batch.
    """
    def driver() -> Answer:
        pit = drivers_choice(scenario, race, state, row)
        text = f"Driver: coming in for {COMPOUNDS[pit]}." if pit >= 0 else "Driver: fine, staying out."
        return Answer(text, {"pit": pit})

    inspection: Callable[[], Answer] | None = {
        "RECOMMEND_PIT": driver,
        "INSPECT_TYRE_DEGRADATION": lambda: inspections.tyre_life(scenario, race, state, row),
        "INSPECT_FUEL_MARGIN": lambda: inspections.fuel_margin(scenario, race, state, row),
        "CHECK_OPPONENT_STRATEGY": lambda: inspections.opponent(scenario, scenario.column(command.car)),
        "REQUEST_FORECAST": lambda: inspections.forecast(scenario, state),
        "ASSESS_UNDERCUT_WINDOW": lambda: inspections.undercut(scenario, race, state, row),
        "REQUEST_INFO": lambda: inspections.information(scenario, command.word),
        "ESCALATE_TO_PRINCIPAL": lambda: inspections.principal(scenario),
        "RADIO_DRIVER": lambda: acknowledge("Driver", command.text, state.lap + 1),
        "DRAFT_PIT_WALL": lambda: acknowledge("Crew", command.text, state.lap + 1),
        "BRIEF_MEDIA": lambda: Answer("Statement is out.", {}),
    }.get(command.verb)
    return inspection() if inspection else None


def acknowledge(listener: str, text: str, lap: int) -> Answer:
    """Repeat the claims understood, so that a message without any shows.

    Args:
        listener: Driver or Crew.
        text: The message.
        lap: The lap it is sent in.
    """
    names = {STOP: "stop", RAIN: "rain", CLOSED: "track closed", CAR: "car", FUEL: "fuel"}
    parts = []
    for claim in claims_of(text, lap)[:MAX_REPEATED_CLAIMS]:
        words = names.get(claim.kind, "stay out")
        words += f" {COMPOUNDS[claim.compound]}" if claim.compound is not None else ""
        parts.append(words + (f" lap {claim.lap}" if claim.lap is not None else ""))
    return Answer(f"{listener}: copy, {', '.join(parts)}." if parts else f"{listener}: say again?", {})
