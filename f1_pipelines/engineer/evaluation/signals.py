"""The signal that a costly call ignored: only what the pit wall could know at that time.

The answer to an inspection that was not made comes from a replay of the race up to that lap.
"""
from __future__ import annotations

from f1_pipelines.engineer.evaluation.failures import Loss, commands_of, due_stop, false_message
from f1_pipelines.engineer.evaluation.regret import Regret
from f1_pipelines.engineer.rollout import Rollout
from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.environment import RaceEnvironment

FUEL, TYRES, FORECAST, UNDERCUT = (Command(verb) for verb in (
    "INSPECT_FUEL_MARGIN", "INSPECT_TYRE_DEGRADATION", "REQUEST_FORECAST", "ASSESS_UNDERCUT_WINDOW"))
FRESH_LAPS = {FUEL: 99, TYRES: 2, FORECAST: 2, UNDERCUT: 1}  # laps for which an answer stays valid
QUESTIONS = {  # the inspection that would have helped, by kind of failure
    "missed_stop": TYRES, "needless_stop": TYRES, "stop_too_early": TYRES, "stop_too_late": UNDERCUT,
    "tyres_past_the_cliff": TYRES, "slept_through_rain": FORECAST, "stayed_on_rain_tyres": FORECAST,
    "unread_fuel": FUEL, "ran_dry": FUEL, "fuel_wasted": FUEL,
}


def signal_of(race: Rollout, regret: Regret, loss: Loss, kind: str) -> str:
    """Return one sentence: where the signal was, or the inspection and lap that gave or would give it."""
    if kind in QUESTIONS:
        return _answer(race, regret, loss, kind)
    lap = loss.first
    observation = race.observations[lap - 1]
    if kind == "missed_safety_car":
        due = due_stop(race, regret, loss)
        assert due is not None  # else the kind would differ
        return _closed(race, due[0])
    if kind == "rule_broken":
        used = observation.used[0]
        return f'The briefing said "Two dry compounds required"; lap {lap} showed that only {used} was used.'
    if kind == "wrong_compound":
        rule = observation.briefing.split(";")[0]
        return f'The briefing said "{rule}"; {observation.laps - lap} laps were to go after lap {lap}.'
    if kind == "tyres_out_of_temperature":
        worst = max(race.observations[lap - 1:], key=lambda o: abs(o.tyre_temp_c))
        return f"The observation of lap {worst.lap} showed tyres at {worst.tyre_temp_c:+.0f} C from their best."
    if kind == "pace_left":
        gaps = race.observations[max(lap, min(2, len(race.observations))) - 1]  # the grid shows no gaps yet
        near = min((car for car in gaps.cars if car.number != gaps.number), key=lambda car: abs(car.gap_s))
        return f"The observation of lap {gaps.lap} showed #{near.number} at {near.gap_s:+.1f} s."
    if kind == "silent_pit_wall":
        return _due_message_signal(race, regret, loss)
    if kind == "false_message":
        claim = race.observations[false_message(race, loss) - 1]
        water = "wet" if claim.wetness > 0 else "dry"
        return f"{race.outputs[claim.lap - 1][:60]} was said in lap {claim.lap}, which showed {claim.status}, {water}."
    if kind == "parse_failure":
        return f"The environment answered: {(race.errors[lap - 1] or '').split('. Valid')[0]}"
    if kind == "handed_over":
        return f"{observation.laps - lap} laps were still to go."
    if kind == "bad_luck":
        return f"None: luck aside, these stops were {race.info['regret_s']:.1f} s off the best ones."
    return f"What came back on {race.outputs[lap - 1][:60]}: {race.answers[lap - 1] or 'nothing'}"


def answer_at(race: Rollout, question: Command, lap: int) -> str:
    """Return the answer to a recent inspection before that lap, or else the answer that it would give in that lap."""
    commands = commands_of(race)
    for asked_lap in range(min(lap, len(commands)), max(lap - FRESH_LAPS[question], 0), -1):
        if commands[asked_lap - 1] == question:
            return f"{question} said in lap {asked_lap}: {race.answers[asked_lap - 1]}"
    environment = RaceEnvironment()
    environment.begin(race.scenario)
    for output in race.outputs[:lap - 1]:
        environment.advance(output)
    return f"{question} in lap {lap} would have said: {environment.step(question).observation.answer}"


def _answer(race: Rollout, regret: Regret, loss: Loss, kind: str) -> str:
    """Return the answer in the lap before the due stop or the loss; for unread fuel, in the first lap."""
    due = due_stop(race, regret, loss)
    lap = 1 if kind == "unread_fuel" else (due[0] if due and kind != "stop_too_early" else loss.first) - 1
    closures = [c for c in race.observations[loss.first - 1].closures if loss.first <= c.last]
    if kind == "stop_too_early" and due and race.scenario.status[due[0] - 1] and closures:
        return (f"The briefing said {closures[0].kind.upper()} {closures[0].chance:.0%} from lap "
                f"{closures[0].first}-{closures[0].last}.")
    answer = answer_at(race, QUESTIONS[kind], min(max(lap, 1), len(race.outputs)))
    return f"{answer[:-1]}, with {race.scenario.laps - max(lap, 1)} laps to go." if QUESTIONS[kind] == TYRES else answer


def _closed(race: Rollout, lap: int) -> str:
    """Return the signal of a closed track: its status, and the cost of a stop."""
    status, circuit = race.observations[lap - 1].status.upper(), race.scenario.circuit
    cheap_s, usual_s = circuit.stop_loss_sc_s if status == "SC" else circuit.stop_loss_vsc_s, circuit.stop_loss_green_s
    return f"The observation of lap {lap} said {status}; a stop cost {cheap_s:.0f} s, not {usual_s:.0f}."


def _due_message_signal(race: Rollout, regret: Regret, loss: Loss) -> str:
    """Return the source of the oracle's first message in these laps."""
    lap, text = next(((lap, command.text) for lap, command in enumerate(regret.oracle, 1)
                      if loss.first <= lap <= loss.last and command.text), (loss.first, ""))
    if text.startswith("Rain"):
        return answer_at(race, FORECAST, min(max(lap - 1, 1), len(race.outputs)))
    if text.startswith(("Safety car", "VSC")):
        return f"The observation of lap {lap} said {race.observations[lap - 1].status.upper()}."
    if text.startswith("Car"):
        return f"The briefing said to beat #{race.scenario.rival}, and its gap stood in the observation."
    return "The pit wall knew its own plan."
