"""Claims in a radio message: a stop, staying out, rain, a closed track, another car.

A message is split into clauses, parsed one by one. Only statements that the race can prove true or false are claims;
"keep it up" is none.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace

STOP, STAY, RAIN, CLOSED, CAR, FUEL = "stop", "stay", "rain", "closed", "car", "fuel"
_CLAUSE = re.compile(r"[.;,!?:]| then | and |\bbut\b")
_LAP = re.compile(r"\blaps? (\d{1,3})\b")
_IN = re.compile(r"\bin (\d{1,2}) laps?\b")
_NOW = re.compile(r"\b(this lap|now|box box)\b")
_NEXT = re.compile(r"\bnext lap\b")
_COMPOUND = re.compile(r"\b(soft|medium|hard|inter|intermediate|full wet|wet)(?:s| tyres?| set)?\b")
_COMPOUND_ID = {"soft": 0, "medium": 1, "hard": 2, "inter": 3, "intermediate": 3, "full wet": 4, "wet": 4}
_STOP = re.compile(r"\b(box|pit|stop|come in|stopping|pitting|boxing)\b")
_STAY = re.compile(r"\b(stay out|no stop|not stopping|no more stops?|to the (?:end|flag) on)\b")
_RAIN = re.compile(r"\b(rain|shower|drizzle|raining)\b")
_DRY = re.compile(r"\b(no (?:more )?(?:rain|showers?)|stays? dry|dry to the (?:end|flag)|rain is over)\b")
_VSC = re.compile(r"\b(vsc|virtual safety car)\b")
_SC = re.compile(r"\b(sc|safety car)\b")
_MAYBE = re.compile(r"\b(if|may|maybe|might|could|likely|unlikely|possible|chance|expect|watch)\b")
_NOT = re.compile(r"\b(not|never|no|none|without|cancel|forget|ignore|\w+n['’]t|dont|wont|isnt|cannot)\b")
_NUMBER = re.compile(r"(?:#|\bcar )(\d{1,2})\b")
_STOPS = re.compile(r"\b(stops?|pits?|boxes|stopping|pitting|boxing|stopped|pitted|boxed)\b")
_SIDE = re.compile(r"\b(ahead|behind)\b")
_GAP = re.compile(r"\b(\d{1,2}(?:\.\d)?) ?s(?:ec(?:onds)?)?\b")


@dataclass(frozen=True)
class Claim:
    """One statement of a message sent before lap `message_lap`."""

    kind: str
    message_lap: int
    lap: int | None = None  # the lap it names, if any
    compound: int | None = None
    yes: bool = True  # False: a denial
    word: str = ""  # sc or vsc; ahead, behind or stops
    car: int = 0
    gap_s: float | None = None

    @property
    def exact(self) -> bool:
        """Whether it names all that the listener needs."""
        if self.kind == STOP:
            return self.lap is not None and self.compound is not None
        return self.kind != RAIN or not self.yes or self.lap is not None


def claims_of(text: str, message_lap: int) -> list[Claim]:
    """The claims of a message sent before lap `message_lap`.

    >>> [(c.kind, c.lap, c.compound) for c in claims_of("Box lap 7 for hards, rain from lap 9", 5)]
    [('stop', 7, 2), ('rain', 9, None)]
    >>> claims_of("Good job, keep it up, do not box lap 7 for hards", 5)
    []
    """
    claims = []
    for clause in _CLAUSE.split(re.sub(r"(\d)\.(\d)", r"\1·\2", text.lower())):
        clause = clause.replace("·", ".")
        if _MAYBE.search(clause) or _NOT.search(_STAY.sub("", _DRY.sub("", clause))):
            continue  # conditional, or denied in other words than "stay out" and "no rain": no claim
        lap = _lap(clause, message_lap)
        if _VSC.search(clause):
            claims.append(Claim(CLOSED, message_lap, word="vsc"))
        elif _SC.search(clause):
            claims.append(Claim(CLOSED, message_lap, word="sc"))
        before = len(claims)
        if _DRY.search(clause):
            claims.append(Claim(RAIN, message_lap, yes=False))
        elif _RAIN.search(clause):
            claims.append(Claim(RAIN, message_lap, lap=lap))
        number = _NUMBER.search(clause)
        if number:
            side, gap = _SIDE.search(clause), _GAP.search(clause)
            word = side.group(1) if side else "stops" if _STOPS.search(clause) else ""
            if word:
                claims.append(Claim(CAR, message_lap, lap=lap, word=word, car=int(number.group(1)),
                                    gap_s=float(gap.group(1)) if gap else None))
        elif _STAY.search(clause):
            claims.append(Claim(STAY, message_lap))
        elif _STOP.search(clause):
            compound = _COMPOUND.search(clause)
            claims.append(Claim(STOP, message_lap, lap=lap, compound=_COMPOUND_ID[compound.group(1)] if compound
                                else None))
        if re.search(r"\b(save|saving|short of) fuel\b", clause):
            claims.append(Claim(FUEL, message_lap))
        if len(claims) == before and claims and claims[-1].kind == STOP:  # "box, lap 7, hards" is one stop
            compound = _COMPOUND.search(clause)
            claims[-1] = replace(claims[-1], lap=claims[-1].lap if lap is None else lap,
                                 compound=_COMPOUND_ID[compound.group(1)] if compound else claims[-1].compound)
    return claims


def _lap(clause: str, lap: int) -> int | None:
    named, later = _LAP.search(clause), _IN.search(clause)
    if named:
        return int(named.group(1))
    if later:
        return lap + int(later.group(1))
    return lap if _NOW.search(clause) else lap + 1 if _NEXT.search(clause) else None
