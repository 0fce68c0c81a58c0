"""Kinds of failure: which kind a loss is, and the lesson of each kind.

A loss is a run of laps whose calls lost score for good (`regret`). Its kind follows from the dimension that lost most,
and from our stops and the oracle's in these laps.
"""
from __future__ import annotations

from dataclasses import dataclass

from f1_pipelines.engineer.evaluation.regret import Regret, parsed_command
from f1_pipelines.engineer.rollout import Rollout
from f1_pipelines.sim.engine.parameters import COMPOUNDS
from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.pit_wall import MESSAGE_VERBS
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS, REGRET_FREE_S

LESSONS = {
    "none": "Keep at it.",
    "missed_stop": "Stop before the tyres or the rule make you.",
    "needless_stop": "Do not stop unless tyres, water or rule ask for it.",
    "stop_too_early": "Wait with the stop until the set is nearly done.",
    "stop_too_late": "Make the stop a little earlier.",
    "wrong_compound": "Choose the compound that lasts to the flag.",
    "missed_safety_car": "Stop at once when the track closes and a stop is due.",
    "slept_through_rain": "Ask the forecast; take inters when it gets wet.",
    "stayed_on_rain_tyres": "Back to slicks as soon as the track dries.",
    "unread_fuel": "Ask the fuel margin in lap 1; save if it is negative.",
    "ran_dry": "Save fuel until the margin is positive again.",
    "fuel_wasted": "Stop saving fuel once the margin is positive.",
    "tyres_past_the_cliff": "Ask how long the set lasts and stop before it falls off.",
    "tyres_out_of_temperature": "Cool or warm the tyres when they leave their window.",
    "rule_broken": "Two dry compounds are required: stop once.",
    "pace_left": "Push, attack or defend while it gains a place.",
    "silent_pit_wall": "Announce the stop, rain and a closed track in time.",
    "false_message": "Say only what is certain.",
    "wasted_calls": "Call nothing that can do nothing.",
    "bad_luck": "Nothing: the stops were right, luck aside.",
    "handed_over": "Never say DONE before the flag.",
    "parse_failure": "Answer with exactly one valid command.",
}
KINDS = tuple(LESSONS)
STOP_KINDS = ("missed_stop", "needless_stop", "stop_too_early", "stop_too_late", "wrong_compound")
RAIN_TYRES = ("inter", "wet")
Stop = tuple[int, str]  # lap, compound


@dataclass(frozen=True)
class Loss:
    """Laps `first` to `last` of a race, whose calls lost `cost` of the score for good.

    `by_dimension` is the loss by dimension, `remaining` what each dimension still gives with the oracle from there on.
    """

    first: int
    last: int
    cost: float
    by_dimension: dict[str, float]
    remaining: dict[str, float]

    @property
    def main(self) -> str:
        """The dimension that lost most."""
        return max(self.by_dimension, key=self.by_dimension.__getitem__)

    @property
    def out_of_fuel(self) -> bool:
        """Whether the tank is empty before the flag: fuel and operations give nothing any more, others still do."""
        left = self.remaining
        legal = left["strategy"] + left["tyres"] > 0
        return self.by_dimension["fuel"] > 0 and legal and left["fuel"] + left["operations"] == 0


def loss_at(regret: Regret, lap: int) -> Loss:
    """The loss that begins with the call of `lap` and lasts until the lap in which the oracle best takes over."""
    after = regret.recovery_lap(lap)
    before, left = (dict(zip(DIMENSIONS, regret.parts[at - 1].tolist(), strict=True)) for at in (lap, after))
    return Loss(lap, after - 1, float(regret.lost[lap - 1]), {name: before[name] - left[name] for name in left}, left)


def kind_of(race: Rollout, regret: Regret, loss: Loss) -> str:
    """The kind of a loss, one of `KINDS`."""
    commands = commands_of(race)
    first = commands[loss.first - 1]
    if first is None:
        return "parse_failure"
    if first.verb == "DONE":
        return "handed_over"
    if loss.out_of_fuel:
        inspected = any(command is not None and command.verb == "INSPECT_FUEL_MARGIN" for command in commands)
        return "ran_dry" if inspected or race.scenario.fuel_laps[0] > 0 else "unread_fuel"
    right = race.info["regret_s"] / race.scenario.length <= REGRET_FREE_S and not race.info["disqualified"]
    if loss.main == "comms" and (right or due_stop(race, regret, loss) is None):
        return _message_kind(race, loss)
    if loss.main == "operations":
        return "parse_failure" if None in commands[loss.first - 1:loss.last] else "wasted_calls"
    if loss.main == "fuel":
        return "fuel_wasted"
    kind = _stop_kind(race, regret, loss)
    return "bad_luck" if kind in STOP_KINDS and right else kind


def commands_of(race: Rollout) -> list[Command | None]:
    """The parsed command of each called lap, None for an illegal output."""
    return [parsed_command(output, race.scenario) for output in race.outputs]


def oracle_stops(regret: Regret) -> list[Stop]:
    """The oracle's stops."""
    return [(lap, command.word) for lap, command in enumerate(regret.oracle, 1) if command.verb == "PIT_NOW"]


def our_stops(race: Rollout) -> list[Stop]:
    """The stops that were made, including those of the driver's own choice."""
    return [(lap, COMPOUNDS[compound]) for lap, compound in race.info["stops"]]


def due_stop(race: Rollout, regret: Regret, loss: Loss) -> Stop | None:
    """The first stop of the oracle in these laps that was not made."""
    ours = our_stops(race)
    return next((stop for stop in oracle_stops(regret) if loss.first <= stop[0] <= loss.last and stop not in ours),
                None)


def message_verdicts(race: Rollout) -> dict[int, str]:
    """The score's verdict on each message, by lap."""
    laps = [lap for lap, command in enumerate(commands_of(race), 1) if command is not None
            and command.verb in MESSAGE_VERBS]
    return dict(zip(laps, race.info["messages"], strict=True))


def false_message(race: Rollout, loss: Loss) -> int:
    """Lap of the first false message up to the end of the loss, 0 for none. A stop announced and not made is one."""
    return next((lap for lap, verdict in message_verdicts(race).items() if lap <= loss.last and verdict == "false"), 0)


def _message_kind(race: Rollout, loss: Loss) -> str:
    if false_message(race, loss):
        return "false_message"
    verdicts = message_verdicts(race)
    idle = any(verdicts.get(lap) in ("idle", "repeated") for lap in range(loss.first, loss.last + 1))
    return "wasted_calls" if idle else "silent_pit_wall"


def _stop_kind(race: Rollout, regret: Regret, loss: Loss) -> str:
    ours, best, due = our_stops(race), oracle_stops(regret), due_stop(race, regret, loss)
    if due is not None:
        return _missed_stop_kind(race, due, loss, ours)
    extra = [lap for lap, tyre in ours if loss.first <= lap <= loss.last and (lap, tyre) not in best]
    if extra:
        return "stop_too_early" if any(lap > extra[0] for lap, _ in best) else "needless_stop"
    if loss.main != "tyres":
        return "pace_left"
    worn = any(state.wear_laps[0, 0] > state.cliff_laps[0, 0] for state in race.environment.history[loss.first:])
    return "tyres_past_the_cliff" if worn else "tyres_out_of_temperature"


def _missed_stop_kind(race: Rollout, due: Stop, loss: Loss, ours: list[Stop]) -> str:
    """The kind of a loss in whose laps the oracle makes a stop that we don't."""
    lap, compound = due
    seen, instead = race.observations[lap - 1], [tyre for at, tyre in ours if loss.first <= at <= lap]
    if compound in RAIN_TYRES and not {seen.own.compound, *instead} & set(RAIN_TYRES):
        return "slept_through_rain"
    if any(at == lap for at, _ in ours):
        return "wrong_compound"
    if instead:
        return "stop_too_early"
    if seen.status != "green":
        return "missed_safety_car"
    if seen.own.compound in RAIN_TYRES:
        return "stayed_on_rain_tyres"
    if any(at > lap for at, _ in ours):
        return "stop_too_late"
    if race.info["disqualified"]:
        return "rule_broken"
    return "tyres_past_the_cliff" if loss.main == "tyres" else "missed_stop"
