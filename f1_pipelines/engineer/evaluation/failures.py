"""Kinds of failure: the kind of a loss, and the lesson of each kind.

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

    `by_dimension` is the loss by dimension, `remaining` what each dimension still scores if the oracle takes over.
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
        """Whether the car runs out of fuel: fuel and operations give no more score, other dimensions still do."""
        score = self.remaining
        legal = score["strategy"] + score["tyres"] > 0
        return self.by_dimension["fuel"] > 0 and legal and score["fuel"] + score["operations"] == 0


def loss_at(regret: Regret, lap: int) -> Loss:
    """Return the loss from the call of `lap` until the lap in which the oracle best takes over."""
    recovery = regret.recovery_lap(lap)
    before, after = (dict(zip(DIMENSIONS, regret.parts[k - 1].tolist(), strict=True)) for k in (lap, recovery))
    by_dimension = {name: before[name] - after[name] for name in after}
    return Loss(lap, recovery - 1, float(regret.lost[lap - 1]), by_dimension, after)


def kind_of(race: Rollout, regret: Regret, loss: Loss) -> str:
    """Classify a loss as one of `KINDS`."""
    commands = commands_of(race)
    first = commands[loss.first - 1]
    if first is None:
        return "parse_failure"
    if first.verb == "DONE":
        return "handed_over"
    if loss.out_of_fuel:
        inspected = any(command is not None and command.verb == "INSPECT_FUEL_MARGIN" for command in commands)
        return "ran_dry" if inspected or race.scenario.fuel_laps[0] > 0 else "unread_fuel"
    good_stops = race.info["regret_s"] / race.scenario.length <= REGRET_FREE_S and not race.info["disqualified"]
    if loss.main == "comms" and (good_stops or due_stop(race, regret, loss) is None):
        return _message_kind(race, loss)
    if loss.main == "operations":
        return "parse_failure" if None in commands[loss.first - 1:loss.last] else "wasted_calls"
    if loss.main == "fuel":
        return "fuel_wasted"
    kind = _stop_kind(race, regret, loss)
    return "bad_luck" if kind in STOP_KINDS and good_stops else kind


def commands_of(race: Rollout) -> list[Command | None]:
    """Return the parsed command of each called lap, None for an illegal output."""
    return [parsed_command(output, race.scenario) for output in race.outputs]


def oracle_stops(regret: Regret) -> list[Stop]:
    """Return the oracle's stops."""
    return [(lap, command.word) for lap, command in enumerate(regret.oracle, 1) if command.verb == "PIT_NOW"]


def our_stops(race: Rollout) -> list[Stop]:
    """Return the stops in the race, including those that the driver chose."""
    return [(lap, COMPOUNDS[compound]) for lap, compound in race.info["stops"]]


def due_stop(race: Rollout, regret: Regret, loss: Loss) -> Stop | None:
    """Return the oracle's first stop in these laps that was not made."""
    stops = our_stops(race)
    return next((stop for stop in oracle_stops(regret) if loss.first <= stop[0] <= loss.last and stop not in stops),
                None)


def message_verdicts(race: Rollout) -> dict[int, str]:
    """Return the score's verdict on each message, by lap."""
    laps = [lap for lap, command in enumerate(commands_of(race), 1) if command is not None
            and command.verb in MESSAGE_VERBS]
    return dict(zip(laps, race.info["messages"], strict=True))


def false_message(race: Rollout, loss: Loss) -> int:
    """Return the lap of the first false message by the end of the loss, 0 for none; an unmade stop announced is one."""
    return next((lap for lap, verdict in message_verdicts(race).items() if lap <= loss.last and verdict == "false"), 0)


def _message_kind(race: Rollout, loss: Loss) -> str:
    if false_message(race, loss):
        return "false_message"
    verdicts = message_verdicts(race)
    no_effect = any(verdicts.get(lap) in ("idle", "repeated") for lap in range(loss.first, loss.last + 1))
    return "wasted_calls" if no_effect else "silent_pit_wall"


def _stop_kind(race: Rollout, regret: Regret, loss: Loss) -> str:
    stops, best, due = our_stops(race), oracle_stops(regret), due_stop(race, regret, loss)
    if due is not None:
        return _missed_stop_kind(race, due, loss, stops)
    extra = [lap for lap, tyre in stops if loss.first <= lap <= loss.last and (lap, tyre) not in best]
    if extra:
        return "stop_too_early" if any(lap > extra[0] for lap, _ in best) else "needless_stop"
    if loss.main != "tyres":
        return "pace_left"
    worn = any(state.wear_laps[0, 0] > state.cliff_laps[0, 0] for state in race.environment.history[loss.first:])
    return "tyres_past_the_cliff" if worn else "tyres_out_of_temperature"


def _missed_stop_kind(race: Rollout, due: Stop, loss: Loss, stops: list[Stop]) -> str:
    """Classify a loss in whose laps the oracle makes a stop that we don't."""
    lap, compound = due
    observation = race.observations[lap - 1]
    earlier = [tyre for stop_lap, tyre in stops if loss.first <= stop_lap <= lap]
    if compound in RAIN_TYRES and not {observation.own.compound, *earlier} & set(RAIN_TYRES):
        return "slept_through_rain"
    if any(stop_lap == lap for stop_lap, _ in stops):
        return "wrong_compound"
    if earlier:
        return "stop_too_early"
    if observation.status != "green":
        return "missed_safety_car"
    if observation.own.compound in RAIN_TYRES:
        return "stayed_on_rain_tyres"
    if any(stop_lap > lap for stop_lap, _ in stops):
        return "stop_too_late"
    if race.info["disqualified"]:
        return "rule_broken"
    return "tyres_past_the_cliff" if loss.main == "tyres" else "missed_stop"
