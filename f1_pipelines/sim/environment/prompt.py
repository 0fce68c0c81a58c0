"""The observation as the text that models read: at most `MAX_TOKENS` tokens for any field and answer.

Common tokenizers spend a token on each digit and on the space before a number, so numbers are short.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from f1_pipelines.sim.engine.parameters import HARD, MEDIUM, SOFT
from f1_pipelines.sim.scenarios import Scenario

if TYPE_CHECKING:
    from f1_pipelines.sim.environment.observation import CarSeen, Observation

MAX_TOKENS = 220
SMALL_FIELD, AROUND = 6, 4  # largest field shown in full; cars shown of a larger one, besides the leader
PROMPT_VERSION = 3  # raise with every change of the text: models are trained on one version
_ZERO = re.compile(r"\b0\.")
_PIECE = re.compile(r"[A-Za-z]{1,5}|\d| (?=\d)|[^\sA-Za-z\d]")


def briefing_of(scenario: Scenario) -> str:
    """The scenario's public facts in short sentences."""
    c = scenario.circuit
    life = [c.cliff_laps[k] / scenario.wear_scale for k in (SOFT, MEDIUM, HARD)]
    offsets = [f"{name} {c.compound_offset_s[k]:+.1f}" for k, name in ((SOFT, "soft"), (HARD, "hard"))]
    lasts = f"Tyres last {life[0]:.0f}, {life[1]:.0f}, {life[2]:.0f};" if scenario.weekend else \
        f"Wear x{scenario.wear_scale}, tyres last {life[0]:.0f}, {life[1]:.0f}, {life[2]:.0f};"
    stops = [f"Stop {c.stop_loss_green_s:.0f} s"]
    for closure in scenario.closures:
        loss_s = c.stop_loss_sc_s if closure.kind == "sc" else c.stop_loss_vsc_s
        often = f" ({closure.chance:.1f} a race)" if closure.often else ""
        stops.append(f"{closure.kind.upper()} {loss_s:.0f}{often}")
    words = [lasts, short(", ".join(offsets)) + " s.",
             "Two dry compounds required." if scenario.rule else "No stop required.", short(", ".join(stops)) + ".",
             *(f"{closure.kind.upper()} {closure.chance:.0%} from lap {closure.first}-{closure.last}."
               for closure in scenario.closures if not closure.often)]
    if scenario.rain_chance:
        words.append(f"Rain {scenario.rain_chance:.0%}.")
    if scenario.rival:
        words.append(f"Beat {scenario.rival}.")
    return " ".join(words)


def text_of(o: Observation) -> str:
    """The text of an observation, at most `MAX_TOKENS` tokens.

    The part that is constant through a race comes first (`opening_of`). Each car has a line, the leader first: number,
    gap to us (on the grid: pace in practice), compound, tyre age, stops made. In a large field the leader and the cars
    around us have lines and the others are counted.
    """
    water = short((f"wet {o.wetness:.2f}" if o.wetness > 0 else "dry") + (f", rain {o.rain:.2f}" if o.rain > 0 else ""))
    temp = "" if abs(o.tyre_temp_c) <= 10 else f", tyres {o.tyre_temp_c:+.0f}C"
    manner = o.mode + ("" if o.temp == "normal" else f" {o.temp}") + ("" if o.drs else " no DRS")
    track = "" if abs(o.heat_c) < 10 else ", hot track" if o.heat_c > 0 else ", cold track"
    status = o.status.upper() + (f" lap {o.status_laps}" if o.status != "green" else "")
    used = f", used {' '.join(o.used)}" if len(o.used) < 3 else ""  # three compounds satisfy the rule
    # Arithmetic spared: laps to go, and what is left of the usual life of our set.
    sums = "" if o.weekend else f", {o.laps - o.lap + 1} to go"
    sums += f", set good for {o.set_left_laps:.0f}" if o.set_left_laps is not None else ""
    lines = [f"{o.family} {o.circuit}. {o.briefing}", f"lap {o.lap}/{o.laps} {status}, {water}{track}",
             f"We {o.number} P{o.position}{sums}, {manner}{temp}{used}"]
    shown = shown_cars(o)
    lines += [_line_of(car, o) for car in shown]
    if len(shown) < len(o.cars):
        lines.append(_others(o, shown))
    noted = bool(o.facts and o.notes) and o.notes[-1].startswith(f"L{o.lap - (not o.done)} ")
    if o.answer and not noted:  # the notes repeat the answer in fewer tokens
        lines.append("> " + short(o.answer))
    text = "\n".join(lines)
    if token_bound(text) > MAX_TOKENS:
        text = text.replace(sums, "", 1)
    return _with_notes(text, o.notes)


def opening_of(text: str) -> str:
    """The part of an observation's text that is constant through its race."""
    return text[:text.find("\n") + 1]


def token_bound(text: str) -> float:
    """Upper bound of SmolLM2's token count.

    Counts each digit, sign, line end and space before a digit, and words in pieces of five letters, plus 4 %. Over
    4,100 prompts of all families the count without the 4 % was 0.965 to 1.05 of the true one (29 November 2026).
    """
    lines = text.split("\n")
    return 1.04 * (sum(map(_pieces, lines)) + len(lines) - 1)


@lru_cache(maxsize=4096)
def _pieces(line: str) -> int:
    """Pieces of a line; most lines of an observation recur."""
    return len(_PIECE.findall(line))


def _with_notes(text: str, notes: Sequence[str]) -> str:
    """Append the newest notes that fit."""
    room = MAX_TOKENS - token_bound(text) - token_bound("\nnotes: ")
    shown: list[str] = []
    for note in reversed(notes):
        room -= token_bound(short(note) + ";")
        if room < 0:
            break
        shown.insert(0, short(note))
    return f"{text}\nnotes: {'; '.join(shown)}" if shown else text


def shown_cars(o: Observation) -> list[CarSeen]:
    """The cars with a line: all of a small field, else the leader, our car and its neighbours."""
    if len(o.cars) <= SMALL_FIELD:
        return list(o.cars)
    ours = next(k for k, car in enumerate(o.cars) if car.number == o.number)
    first = min(max(ours - AROUND // 2, 1), len(o.cars) - AROUND)
    return [o.cars[0], *o.cars[first:first + AROUND]]


def short(text: str) -> str:
    """Drop the zero before a decimal point: it costs a token."""
    return _ZERO.sub(".", text)


def _line_of(car: CarSeen, o: Observation) -> str:
    near = short(f"{car.gap_s:+.1f}" if abs(car.gap_s) < 10 else f"{car.gap_s:+.0f}")
    gap = "out" if not car.running else "us" if car.number == o.number else near
    if o.lap == 1 and not o.done:  # on the grid there are no gaps yet, only practice pace
        gap = short(f"practice {car.practice_s:+.1f}") + (" us" if car.number == o.number else "")
    return f"{car.number} {gap} {car.compound} {car.age_laps}" + (f" x{car.stops}" if car.stops else "")


def _others(o: Observation, shown: list[CarSeen]) -> str:
    """One line that counts the cars not shown."""
    rest = [car for car in o.cars if car not in shown]
    running = [car for car in rest if car.running]
    words = [f"{len(running)} others"]
    if o.lap > 1 and running:
        words.append(f"last {max(c.gap_s for c in running):+.0f}")
    if len(rest) > len(running):
        words.append(f"{len(rest) - len(running)} out")
    return ", ".join(words)
