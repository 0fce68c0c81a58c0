"""The commands of the pit wall and their grammar: `parse(text) -> Command`.

A command is one line: a verb and its argument, if any. Case is ignored; text is in double quotes. Anything else raises
`BadCommand`, whose message quotes the start of the input, says what is wrong and lists what is valid.
"""
from __future__ import annotations

from dataclasses import dataclass

from f1_pipelines.sim.engine.drive import MODES, TEMPS
from f1_pipelines.sim.engine.parameters import COMPOUNDS

TOPICS = ("circuit", "tyres", "rules", "standings")
MAX_CHARS = 400  # a longer command is refused before it is parsed
SWITCH = ("on", "off")
CAR, TEXT = "car", "text"  # kinds of argument besides a choice of words
MAX_CAR = 99

GRAMMAR: dict[str, tuple[str, ...] | str | None] = {
    "PIT_NOW": COMPOUNDS, "STAY_OUT": None, "RECOMMEND_PIT": None, "SET_MODE": MODES, "DRS_PERMISSION": SWITCH,
    "DEFEND_POSITION": None, "ATTACK_AHEAD": None, "HOLD_GAP": CAR, "LET_BY": CAR, "MANAGE_TYRE_TEMP": TEMPS,
    "INSPECT_TYRE_DEGRADATION": None, "CHECK_OPPONENT_STRATEGY": CAR, "REQUEST_FORECAST": None,
    "ASSESS_UNDERCUT_WINDOW": None, "INSPECT_FUEL_MARGIN": None, "RADIO_DRIVER": TEXT, "DRAFT_PIT_WALL": TEXT,
    "BRIEF_MEDIA": TEXT, "REQUEST_INFO": TOPICS, "ESCALATE_TO_PRINCIPAL": None, "DONE": None,
}
VERBS = tuple(GRAMMAR)
EFFECTS = {
    "PIT_NOW": "stop at the end of this lap for these tyres",
    "STAY_OUT": "nothing changes",
    "RECOMMEND_PIT": "the driver comes in this lap if his tyres are worn out, wrong for the water, or the track is "
                     "closed and a stop still due; else he stays out and says so",
    "SET_MODE": "pace, wear and fuel of the laps from now on",
    "DRS_PERMISSION": "off: harder to pass, fewer accidents; until changed",
    "DEFEND_POSITION": "this lap: harder to be passed, 0.25 s slower",
    "ATTACK_AHEAD": "this lap: easier to pass, more wear and risk",
    "HOLD_GAP": "no quicker than that car until told otherwise; pace in hand saves tyres and fuel",
    "LET_BY": "this lap: a car right behind goes past",
    "MANAGE_TYRE_TEMP": "10 C up or down, at a small cost in pace; until changed",
    "INSPECT_TYRE_DEGRADATION": "how many laps our set still has, with the error of the estimate",
    "CHECK_OPPONENT_STRATEGY": "that car's plan and character",
    "REQUEST_FORECAST": "chance, start, strength and end of rain",
    "ASSESS_UNDERCUT_WINDOW": "what stopping now gains on the car ahead, and where we come out",
    "INSPECT_FUEL_MARGIN": "laps of fuel beyond the flag at race pace",
    "RADIO_DRIVER": "tells the driver; judged on truth and timing",
    "DRAFT_PIT_WALL": "a note for the crew; judged alike",
    "BRIEF_MEDIA": "a statement; judged on truth only",
    "REQUEST_INFO": "public facts: " + ", ".join(TOPICS),
    "ESCALATE_TO_PRINCIPAL": "what the principal expects of this race",
    "DONE": "the driver takes over to the flag: no further calls, no stops",
}


class BadCommand(ValueError):
    """Not a valid command."""


@dataclass(frozen=True)
class Command:
    """One command of the pit wall. `word` is a compound, mode, switch, temperature or topic; `car` a car number."""

    verb: str
    word: str = ""
    car: int = 0
    text: str = ""

    def __post_init__(self) -> None:
        kind = GRAMMAR.get(self.verb, "") if isinstance(self.verb, str) else ""
        fits = kind != "" and (self.word in kind if isinstance(kind, tuple) else self.word == "") and (
            type(self.car) is int and 1 <= self.car <= MAX_CAR if kind == CAR else self.car == 0) and (
            isinstance(self.text, str) and _is_message(self.text) if kind == TEXT else self.text == "")
        if not fits:
            verb, *arguments = (_excerpt(str(part)) for part in (self.verb, self.word, self.car, self.text))
            raise BadCommand(f"{verb} with word, car, text {', '.join(arguments)} is no command. "
                             f"Valid: {' '.join(VERBS)}.")

    def __str__(self) -> str:
        """Format the command so that `parse` reads it.

        >>> str(parse('radio_driver "box lap 7 for hards"'))
        'RADIO_DRIVER "box lap 7 for hards"'
        """
        kind = GRAMMAR[self.verb]
        if kind is None:
            return self.verb
        return f"{self.verb} " + (f'"{self.text}"' if kind == TEXT else str(self.car) if kind == CAR else self.word)


STAY = Command("STAY_OUT")


def parse(text: object) -> Command:
    """Parse one command.

    >>> parse("PIT_NOW hard")
    Command(verb='PIT_NOW', word='hard', car=0, text='')
    >>> parse("PIT_NOW slick")
    Traceback (most recent call last):
    f1_pipelines.sim.environment.commands.BadCommand: PIT_NOW takes soft|medium|hard|inter|wet; got 'slick'.

    Raises:
        BadCommand: The text is not a command.
    """
    if not isinstance(text, str):
        raise BadCommand(f"a command is text, got {type(text).__name__}. Valid: {' '.join(VERBS)}.")
    if len(text) > MAX_CHARS:
        raise BadCommand(f"a command has at most {MAX_CHARS} characters, got {len(text)}, starting "
                         f"{_excerpt(text)}. Valid: {' '.join(VERBS)}.")
    line = text.strip()
    verb, _, rest = line.partition(" ")
    verb, rest = verb.upper() if verb.isascii() else verb, rest.strip()
    if verb not in GRAMMAR:
        what = f"unknown command {_excerpt(verb)}" if verb else "an empty command"
        raise BadCommand(f"{what}. Valid: {' '.join(VERBS)}.")
    kind = GRAMMAR[verb]
    if kind is None:
        if rest:
            raise BadCommand(f"{verb} takes nothing; got {_excerpt(rest)}.")
        return Command(verb)
    if kind == TEXT:
        inner = rest[1:-1].strip() if len(rest) > 1 and rest[0] == rest[-1] == '"' else ""
        if not _is_message(inner):
            raise BadCommand(f'{verb} takes one line of text in double quotes; got {_excerpt(rest)}.')
        return Command(verb, text=inner)
    if kind == CAR:
        number = rest.removeprefix("#")
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= MAX_CAR):
            raise BadCommand(f"{verb} takes a car number from 1 to {MAX_CAR}; got {_excerpt(rest)}.")
        return Command(verb, car=int(number))
    if not rest.isascii() or rest.lower() not in kind:
        raise BadCommand(f"{verb} takes {'|'.join(kind)}; got {_excerpt(rest)}.")
    return Command(verb, word=rest.lower())


def usage() -> str:
    """Format the grammar for prompts and help, one command a line."""
    lines = []
    for verb, kind in GRAMMAR.items():
        argument = "" if kind is None else ' "text"' if kind == TEXT else " n" if kind == CAR else " " + "|".join(kind)
        lines.append(f"{verb}{argument}: {EFFECTS[verb]}")
    return "\n".join(lines)


def _is_message(text: str) -> bool:
    """Whether a text is a valid message: one printable line without double quotes."""
    return 0 < len(text) <= MAX_CHARS and '"' not in text and text.isprintable()


def _excerpt(text: str) -> str:
    """The start of an input, safe to print."""
    short = text[:24].encode("ascii", "replace").decode()
    return repr(short + ("..." if len(text) > 24 else ""))
