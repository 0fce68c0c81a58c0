"""Messages scored by truth and timing: `comms(messages, course) -> (score, verdicts)`.

Topics due in a race: each stop that can be announced (or that there is none), rain, a closed track, the rival. A true
message in time earns its topic once: in full if exact (lap and compound of the stop, lap of the rain), else half.
False, repeated and empty messages cost.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from f1_pipelines.sim.engine.parameters import SC, VSC
from f1_pipelines.sim.scoring.announcements import RAIN_AFTER, RAIN_BEFORE, STOP_WITHIN
from f1_pipelines.sim.scoring.claims import CAR, CLOSED, FUEL, RAIN, STAY, STOP, Claim, claims_of

FALSE_COST, REPEAT_COST, IDLE_COST = 0.25, 0.15, 0.10
VAGUE = 0.5


@dataclass(frozen=True)
class Message:
    """A message sent before a lap."""

    lap: int
    verb: str  # RADIO_DRIVER, DRAFT_PIT_WALL, BRIEF_MEDIA
    text: str


@dataclass(frozen=True)
class Lap:
    """Public facts of a lap."""

    status: int
    rain: float
    gap_s: dict[int, float]  # other cars' gaps to ours before the lap, + is behind
    stopped: frozenset[int]  # car numbers that stopped at its end


@dataclass(frozen=True)
class Course:
    """The facts of a race that messages are checked against; `stops` are ours: (lap, compound, announceable)."""

    laps: tuple[Lap, ...]
    stops: tuple[tuple[int, int, bool], ...]
    rival: int = 0
    fuel_short: bool = False

    def lap(self, number: int) -> Lap | None:
        """A lap, counted from 1; None outside the race."""
        return self.laps[number - 1] if 1 <= number <= len(self.laps) else None


def due_topics(course: Course) -> list[str]:
    """Topics due in a race.

    >>> due_topics(Course((Lap(0, 0.0, {}, frozenset()),) * 9, ((5, 2, True),), rival=44))
    ['stop 5', 'rival']
    """
    due = [f"stop {lap}" for lap, _, announceable in course.stops if announceable]
    if not course.stops:
        due.append("stay")
    if any(lap.status in (SC, VSC) for lap in course.laps):
        due.append("closed")
    if any(lap.rain > 0 for lap in course.laps):
        due.append("rain")
    return due + (["rival"] if course.rival else [])


def is_true(claim: Claim, course: Course) -> bool:
    """Whether a claim is true in a race."""
    message_lap, total = claim.message_lap, len(course.laps)
    if claim.kind == STOP:
        return _stop_meant(claim, course) is not None
    if claim.kind == STAY:
        return all(lap < message_lap or lap > message_lap + 3 for lap, _, _ in course.stops)
    if claim.kind == RAIN:
        if not claim.yes:
            return all(lap.rain == 0 for lap in course.laps[message_lap - 1:])
        near = range(message_lap, message_lap + 3) if claim.lap is None else range(claim.lap - 1, claim.lap + 2)
        if claim.lap is not None and claim.lap > total:
            return False
        return any((lap := course.lap(n)) is not None and lap.rain > 0 for n in near)
    if claim.kind == CLOSED:
        now = course.lap(message_lap)
        return now is not None and now.status == (SC if claim.word == "sc" else VSC)
    if claim.kind == CAR:
        return _car_is_true(claim, course)
    return claim.kind == FUEL and course.fuel_short


def _stop_meant(claim: Claim, course: Course) -> int | None:
    """Lap of the stop that a claim announces; None without one."""
    for lap, compound, _ in course.stops:
        near = claim.message_lap <= lap <= claim.message_lap + 2 if claim.lap is None else abs(lap - claim.lap) <= 1
        if near and lap >= claim.message_lap and claim.compound in (None, compound):
            return lap
    return None


def _car_is_true(claim: Claim, course: Course) -> bool:
    lap = course.lap(claim.message_lap)
    if lap is None or claim.car not in lap.gap_s:
        return False
    if claim.word == "stops":
        around = range(claim.message_lap - 2, claim.message_lap + 4) if claim.lap is None else range(claim.lap - 1,
                                                                                                     claim.lap + 2)
        return any((at := course.lap(n)) is not None and claim.car in at.stopped for n in around)
    gap = lap.gap_s[claim.car]
    right = (gap < 0) == (claim.word == "ahead")
    return right and (claim.gap_s is None or abs(abs(gap) - claim.gap_s) <= 0.5 + 0.2 * abs(gap))


def _earns(claim: Claim, course: Course) -> str | None:
    """The topic that a true claim earns; None if it is not in time."""
    message_lap = claim.message_lap
    if claim.kind == STOP:
        lap = _stop_meant(claim, course)
        return f"stop {lap}" if lap is not None and lap - message_lap <= STOP_WITHIN else None
    if claim.kind == STAY:
        return "stay" if not course.stops else None
    if claim.kind == RAIN and claim.yes:
        first = next((n for n, lap in enumerate(course.laps, 1) if lap.rain > 0), None)
        return "rain" if first is not None and first - RAIN_BEFORE <= message_lap <= first + RAIN_AFTER else None
    if claim.kind == CAR:
        return "rival" if claim.car == course.rival else None
    return "closed" if claim.kind == CLOSED else None


def comms(messages: Sequence[Message], course: Course) -> tuple[float, list[str]]:
    """Score of a race's messages in [0, 1], and a verdict on each: true, false, repeated or idle.

    >>> race = Course((Lap(0, 0.0, {}, frozenset()),) * 9, ((5, 2, True),))
    >>> comms([Message(4, "RADIO_DRIVER", "Box lap 5 for hards")], race)
    (1.0, ['true'])
    >>> comms([Message(4, "RADIO_DRIVER", "box box, rain, safety car")], race)  # half a topic, two false claims
    (0.0, ['false'])
    >>> comms([], race)
    (0.0, [])
    """
    due, cost, verdicts, repeated = due_topics(course), 0.0, [], set()
    earned: dict[str, Any] = {}
    for message in messages:
        claims = claims_of(message.text, message.lap)
        false = sum(not is_true(claim, course) for claim in claims)
        cost += FALSE_COST * false
        if false:
            verdicts.append("false")
            continue
        new = False
        for claim in claims:
            topic = _earns(claim, course)
            worth = 1.0 if claim.exact else VAGUE
            if message.verb != "BRIEF_MEDIA" and topic in due and worth > earned.get(topic, 0.0):
                earned[topic], new = worth, True
        key = (message.verb == "BRIEF_MEDIA", *((c.kind, c.lap, c.compound, c.word, c.car) for c in claims))
        verdicts.append("idle" if not claims else "true" if new or key not in repeated else "repeated")
        # True but not due: free the first time.
        cost += {"idle": IDLE_COST, "repeated": REPEAT_COST, "true": 0.0}[verdicts[-1]]
        repeated.add(key)
    credit = sum(earned.values()) / len(due) if due else 1.0  # nothing due: full score for silence
    return min(max(credit - cost, 0.0), 1.0), verdicts
