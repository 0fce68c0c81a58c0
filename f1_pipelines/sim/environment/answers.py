"""What comes back to the pit wall on a call: `answer_of(command, ...)`."""
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

HEARD = 3  # statements a listener repeats
NOT_UNDERSTOOD = "Not a command, car stays out."


def answer_of(command: Command, scenario: Scenario, race: Race, state: RaceState, row: int = 0) -> Answer | None:
    """What comes back to the pit wall on a call before the lap is driven; None where nothing does.

    Args:
        race, state: A batch in which `scenario` has that row.
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
        "RADIO_DRIVER": lambda: heard("Driver", command.text, state.lap + 1),
        "DRAFT_PIT_WALL": lambda: heard("Crew", command.text, state.lap + 1),
        "BRIEF_MEDIA": lambda: Answer("Statement is out.", {}),
    }.get(command.verb)
    return inspection() if inspection else None


def heard(who: str, text: str, lap: int) -> Answer:
    """The listener's reply repeats what it understood, so that an empty message shows."""
    names = {STOP: "stop", RAIN: "rain", CLOSED: "track closed", CAR: "car", FUEL: "fuel"}
    parts = []
    for claim in claims_of(text, lap)[:HEARD]:
        words = names.get(claim.kind, "stay out")
        words += f" {COMPOUNDS[claim.compound]}" if claim.compound is not None else ""
        parts.append(words + (f" lap {claim.lap}" if claim.lap is not None else ""))
    return Answer(f"{who}: copy, {', '.join(parts)}." if parts else f"{who}: say again?", {})
