"""The six dimensions of a score, each in [0, 1], each a pure function of what happened.

The race is judged against what this car could have achieved in this race (the oracle's finish), the stops against the
best stops in a race without luck, tyres and fuel by what was wasted, messages by truth and timing (`messages`), and
operations by calls that were illegal, void or harmful and by laps nobody called. Asking is never paid. Seconds are
those of a sprint: in a Grand Prix, as many times longer, as many times more of them count as one (`Scenario.length`).
"""
from __future__ import annotations

from dataclasses import dataclass

WEIGHTS = {"race": 0.35, "strategy": 0.20, "tyres": 0.15, "fuel": 0.10, "comms": 0.10, "operations": 0.10}
DIMENSIONS = tuple(WEIGHTS)
PLACE_COST, SECOND_COST, LUCK_S = 0.10, 0.012, 4.0  # luck: what two equal races differ by
RIVAL_SHARE = 0.4  # of the race, where one car is the race
REGRET_FREE_S, REGRET_SPAN_S = 2.0, 12.0
TYRE_FREE_S, TYRE_SPAN_S = 1.0, 14.0
SPARE_LAPS, WASTE_SPAN_LAPS = 0.55, 0.8
ILLEGAL_COST, VOID_COST, HARM_COST, LEFT_COST = 0.25, 0.08, 0.25, 0.12


@dataclass(frozen=True)
class Score:
    """A score and its parts."""

    race: float
    strategy: float
    tyres: float
    fuel: float
    comms: float
    operations: float

    @property
    def total(self) -> float:
        """Weighted sum.

        >>> round(Score(1, 1, 1, 1, 1, 1).total, 6)
        1.0
        """
        return sum(weight * getattr(self, name) for name, weight in WEIGHTS.items())

    def as_dict(self) -> dict[str, float]:
        """Dimensions and total."""
        return {**{name: getattr(self, name) for name in DIMENSIONS}, "score": self.total}


def share(x: float) -> float:
    """x cut to [0, 1]."""
    return min(max(x, 0.0), 1.0)


def race_result(finished: bool, position: int, time_s: float, best_position: int, best_time_s: float,
                rival: str = "none") -> float:
    """The result against the oracle's.

    Args:
        finished: Saw the flag and was not disqualified.
        position, time_s: Ours at the flag; best_ those of the best race found for this car with full knowledge.
        rival: `none`, `beaten`, `ahead` (it finished ahead), or `unbeatable` (ahead of the oracle as well).

    >>> race_result(True, 2, 1000.0, 2, 1000.0)
    1.0
    >>> round(race_result(True, 3, 1009.0, 2, 1000.0), 2)  # a place and five seconds beyond luck
    0.84
    >>> race_result(False, 6, float("nan"), 2, 1000.0)
    0.0
    >>> round(race_result(True, 3, 1009.0, 2, 1000.0, rival="ahead"), 3)
    0.504
    """
    if not finished:
        return 0.0
    places, seconds = max(position - best_position, 0), max(time_s - best_time_s - LUCK_S, 0.0)
    result = share(1.0 - PLACE_COST * places - SECOND_COST * seconds)
    if rival == "none":
        return result
    return (1.0 - RIVAL_SHARE) * result + RIVAL_SHARE * (1.0 if rival == "beaten" else result if rival == "unbeatable"
                                                         else 0.0)


def strategic_decisions(regret_s: float, legal: bool) -> float:
    """The stops, against the best stops.

    Args:
        regret_s: What our stops cost over the best ones in this race without its luck (places counted in seconds).
        legal: The two-compound rule was kept.

    >>> strategic_decisions(1.0, True), round(strategic_decisions(8.0, True), 2), strategic_decisions(0.0, False)
    (1.0, 0.5, 0.0)
    """
    return share(1.0 - max(regret_s - REGRET_FREE_S, 0.0) / REGRET_SPAN_S) if legal else 0.0


def tyre_management(loss_s: float, unavoidable_s: float, legal: bool) -> float:
    """Seconds lost on tyres that were worn out, wrong for the water or out of temperature.

    Args:
        loss_s: Ours; `unavoidable_s` that of the best race.
        legal: The two-compound rule was kept: it is the first duty of whoever manages tyres.

    >>> tyre_management(4.0, 3.5, True), round(tyre_management(11.5, 3.5, True), 2)
    (1.0, 0.5)
    """
    return share(1.0 - max(loss_s - unavoidable_s - TYRE_FREE_S, 0.0) / TYRE_SPAN_S) if legal else 0.0


def fuel_management(left_laps: float, natural_laps: float, slow_laps: float, ran_dry: bool) -> float:
    """Fuel at the flag: none missing, none saved for nothing.

    Args:
        left_laps: At the flag, in laps at race pace.
        natural_laps: What mode race throughout would have left.
        slow_laps: Saved by a closed track, which nobody can count on.
        ran_dry: Coasted or stopped for want of fuel.

    >>> fuel_management(0.1, -0.5, 0.0, False), fuel_management(0.0, -0.5, 0.0, True)
    (1.0, 0.0)
    >>> round(fuel_management(0.95, -0.5, 0.0, False), 2)  # half a lap saved too much
    0.5
    """
    if ran_dry:
        return 0.0
    return share(1.0 - max(left_laps - max(SPARE_LAPS + slow_laps, natural_laps), 0.0) / WASTE_SPAN_LAPS)


def operations(illegal: int, void: int, harmful: int, left_laps: int, legal_car: bool) -> float:
    """How the pit wall worked.

    Args:
        illegal: Commands that did not parse or named what is not in the race.
        void: Calls that could do nothing: to attack nobody, to set what is set, to ask again what has not changed.
        harmful: Places given away, sets thrown away.
        left_laps: Laps handed to the driver before the last two.
        legal_car: Not disqualified, and not left beside the track for want of fuel.

    >>> operations(0, 0, 0, 0, True), round(operations(1, 1, 0, 0, True), 2), operations(0, 0, 0, 9, True)
    (1.0, 0.67, 0.0)
    """
    if not legal_car:
        return 0.0
    return share(1.0 - ILLEGAL_COST * illegal - VOID_COST * void - HARM_COST * harmful - LEFT_COST * left_laps)
