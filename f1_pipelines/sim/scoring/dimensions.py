"""The dimensions of a score, each in [0, 1] and a pure function of the race.

race: the result relative to the best race possible for this car (`reference`). strategy: the stops relative to the
best stops, averaged over luck. tyres, fuel: waste. comms: truth and timing of messages (`messages`). operations:
illegal, void and harmful commands, and laps without a command. Questions earn nothing. Seconds are those of a sprint;
in a longer race they are divided by its length in sprints (`Scenario.length`).
"""
from __future__ import annotations

from dataclasses import dataclass

WEIGHTS = {"race": 0.35, "strategy": 0.20, "tyres": 0.15, "fuel": 0.10, "comms": 0.10, "operations": 0.10}
DIMENSIONS = tuple(WEIGHTS)
PLACE_COST, SECOND_COST, LUCK_S = 0.10, 0.012, 4.0  # luck: difference between two equal races
RIVAL_SHARE = 0.4  # of the dimension race, if there is a rival
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
    """Clip x to [0, 1]."""
    return min(max(x, 0.0), 1.0)


def race_result(finished: bool, position: int, time_s: float, best_position: int, best_time_s: float,
                rival: str = "none") -> float:
    """The result relative to the best race possible.

    Args:
        finished: Whether the car reached the flag and was not disqualified.
        position: Our position at the flag.
        time_s: Our race time [s].
        best_position: Position in the best race of this car with full knowledge.
        best_time_s: Race time in that race [s].
        rival: `none`, `beaten`, `ahead` (finished ahead of us), or `unbeatable` (ahead in the best race as well).

    >>> race_result(True, 2, 1000.0, 2, 1000.0)
    1.0
    >>> round(race_result(True, 3, 1009.0, 2, 1000.0), 2)  # one place, 5 s beyond luck
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
    """The stops relative to the best stops.

    Args:
        regret_s: Cost of our stops minus that of the best ones, averaged over luck, with places as seconds [s].
        legal: Whether the two-compound rule was met.

    >>> strategic_decisions(1.0, True), round(strategic_decisions(8.0, True), 2), strategic_decisions(0.0, False)
    (1.0, 0.5, 0.0)
    """
    return share(1.0 - max(regret_s - REGRET_FREE_S, 0.0) / REGRET_SPAN_S) if legal else 0.0


def tyre_management(loss_s: float, unavoidable_s: float, legal: bool) -> float:
    """Time lost on tyres that are worn out, wrong for the wetness or out of temperature.

    Args:
        loss_s: Time lost in our race [s].
        unavoidable_s: Time lost in the best race [s].
        legal: Whether the two-compound rule was met.

    >>> tyre_management(4.0, 3.5, True), round(tyre_management(11.5, 3.5, True), 2)
    (1.0, 0.5)
    """
    return share(1.0 - max(loss_s - unavoidable_s - TYRE_FREE_S, 0.0) / TYRE_SPAN_S) if legal else 0.0


def fuel_management(left_laps: float, natural_laps: float, slow_laps: float, ran_dry: bool) -> float:
    """Fuel at the flag: neither short nor saved needlessly.

    Args:
        left_laps: Fuel left at the flag [laps at race pace].
        natural_laps: Fuel that mode race throughout would have left [laps].
        slow_laps: Fuel saved by a closed track, which no plan can rely on [laps].
        ran_dry: Whether the car coasted or stopped for lack of fuel.

    >>> fuel_management(0.1, -0.5, 0.0, False), fuel_management(0.0, -0.5, 0.0, True)
    (1.0, 0.0)
    >>> round(fuel_management(0.95, -0.5, 0.0, False), 2)  # 0.4 laps too much
    0.5
    """
    if ran_dry:
        return 0.0
    return share(1.0 - max(left_laps - max(SPARE_LAPS + slow_laps, natural_laps), 0.0) / WASTE_SPAN_LAPS)


def operations(illegal: int, void: int, harmful: int, left_laps: int, legal_car: bool) -> float:
    """The work of the pit wall.

    Args:
        illegal: Commands that did not parse or named a car that is not in the race.
        void: Commands without a possible effect (`pit_wall`).
        harmful: Commands that gave away a place or a fresh set.
        left_laps: Laps handed to the driver, the last `score.FREE_LAPS` excepted.
        legal_car: Whether the car was neither disqualified nor out of fuel.

    >>> operations(0, 0, 0, 0, True), round(operations(1, 1, 0, 0, True), 2), operations(0, 0, 0, 9, True)
    (1.0, 0.67, 0.0)
    """
    if not legal_car:
        return 0.0
    return share(1.0 - ILLEGAL_COST * illegal - VOID_COST * void - HARM_COST * harmful - LEFT_COST * left_laps)
