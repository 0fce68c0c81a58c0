"""The families of sprints, and the ranges that their seeds draw from.

The family `grand_prix` is rebuilt from a weekend: see the module of that name.

Wear is given as the share of the sprint that a new medium set lasts to its usual cliff; the briefing states the wear
scale that results. The chances of events are true: the pit wall knows them, and the draws follow them.
"""
from __future__ import annotations

from dataclasses import dataclass

GRAND_PRIX = "grand_prix"


@dataclass(frozen=True)
class Family:
    """Ranges of one family; pairs are (low, high)."""

    name: str
    circuits: tuple[str, ...]
    unseen_circuits: tuple[str, ...]  # never trained on, reported separately
    laps: tuple[int, int]
    medium_lasts: tuple[float, float]  # x race distance to the usual cliff of a medium
    rule: float  # chance that the two-compound rule applies
    fuel_laps: tuple[float, float]  # fuel beyond the distance, in laps at race pace under green
    rain: float = 0.0  # chance of a shower
    slow: tuple[str, float] = ("", 0.0)  # status that may close the track (sc or vsc), and its chance
    window: tuple[float, float] = (0.3, 0.7)  # share of the distance in which it may begin
    hot: float = 0.25  # chance of a hot track; a cold one has the same
    rival: bool = False  # whether the goal is to beat one car


FAMILIES = {f.name: f for f in (
    Family("dry_strategy_sprint",
           ("monza", "bahrain", "catalunya", "austin", "hungaroring", "miami", "lusail", "yas-marina", "mexico-city",
            "paul-ricard", "spielberg", "shanghai"), ("imola", "las-vegas", "zandvoort"),
           (10, 15), (0.62, 1.15), 0.70, (-0.9, 0.5)),
    Family("weather_roulette",
           ("spa-francorchamps", "silverstone", "interlagos", "suzuka", "montreal", "spielberg", "hungaroring",
            "melbourne", "marina-bay", "shanghai"), ("sepang", "zandvoort", "imola"),
           (12, 15), (1.0, 1.7), 0.50, (-0.8, 0.5), rain=0.7),
    Family("late_safety_car",
           ("monaco", "jeddah", "baku", "marina-bay", "melbourne", "interlagos", "montreal", "miami", "silverstone"),
           ("imola", "mexico-city"), (12, 15), (0.8, 1.25), 0.60, (-1.4, 0.0),
           slow=("sc", 0.8), window=(0.45, 0.75)),
    Family("championship_decider",
           ("catalunya", "yas-marina", "suzuka", "interlagos", "austin", "lusail", "spielberg", "bahrain", "monza"),
           ("las-vegas", "silverstone"), (13, 15), (0.62, 1.0), 0.70, (-0.9, 0.4), rain=0.25,
           slow=("vsc", 0.2), rival=True),
    Family("virtual_safety_car_window",
           ("silverstone", "melbourne", "montreal", "mexico-city", "spielberg", "baku", "miami", "bahrain", "madring",
            "yas-marina"), ("catalunya", "suzuka"), (11, 15), (0.75, 1.2), 0.65, (-1.2, 0.2),
           slow=("vsc", 0.8), window=(0.3, 0.65)),
    Family("tyre_cliff_management",
           ("suzuka", "spa-francorchamps", "bahrain", "shanghai", "catalunya", "zandvoort", "lusail", "silverstone",
            "hungaroring"), ("jeddah", "austin"), (12, 15), (0.55, 0.95), 0.35, (-0.8, 0.5), hot=0.35),
)}
UNSEEN_FAMILY = "virtual_safety_car_window"  # never trained on
SPLITS = ("train", "validation", "test", "unseen_circuit", "unseen_family")
CHARACTERS = ("plan_follower", "undercutter", "safety_car_opportunist", "rain_gambler", "defender")


class UnknownFamily(ValueError):
    """A family that does not exist."""


def family_of(name: object) -> Family:
    """Get a family by name.

    Raises:
        UnknownFamily: No family has this name; the message lists the valid ones.
    """
    if isinstance(name, str) and name in FAMILIES:
        return FAMILIES[name]
    hint = " A grand_prix needs a weekend and a car besides the seed." if name == GRAND_PRIX else ""
    raise UnknownFamily(f"unknown family {str(name)[:40]!r}. Valid: {', '.join(FAMILIES)}.{hint}")
