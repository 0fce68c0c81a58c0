"""The rules that a classification keeps, whichever source it came from.

A faulty sheet (a place twice, a place missing, an unknown word) is refused whole: repairing it by guesswork would teach
the ranker an order that never was.
"""
from __future__ import annotations

import hashlib
import re

import pandas as pd

from f1_pipelines.tables.race import NON_STARTERS
from f1_pipelines.tables.schema import InvalidRows

_LAPPED = re.compile(r"^\+\d+ laps?$", re.IGNORECASE)
# Ergast's and Jolpica's reasons for a retirement that are no reason but a class of their own.
_WORDS = {
    "finished": "finished", "lapped": "lapped", "retired": "retired", "disqualified": "disqualified",
    "excluded": "disqualified", "did not start": "not_started", "dns": "not_started", "withdrew": "withdrawn",
    "withdrawn": "withdrawn", "did not qualify": "not_started", "did not prequalify": "not_started",
    "not classified": "not_classified", "107% rule": "not_started",
}
# FastF1's ClassifiedPosition and f1db's positionText when they are no number.
_CODES = {
    "R": "retired", "DNF": "retired", "D": "disqualified", "DSQ": "disqualified", "E": "disqualified",
    "EX": "disqualified", "W": "withdrawn", "DNS": "not_started", "F": "not_started", "DNQ": "not_started",
    "DNPQ": "not_started", "N": "not_classified", "NC": "not_classified",
}


def classify_status(code: str | None, text: str | None, gap_laps: float | None = None) -> str:
    """One status for a car, from the sheet's position code first and its free text second.

    Args:
        code: The position as printed: a number for classified cars, else R, D, W, N, DNF, DSQ, DNS, NC, ...
        text: The status or reason in words ("Finished", "+1 Lap", "Lapped", "Engine", "Withdrew"); may be missing.
        gap_laps: Laps behind the winner, if known.

    Returns:
        One of `tables.race.STATUSES`. A classified car that stopped short of the flag (it had done 90 %) is `retired`:
        whether it is classified is a column of its own.

    Raises:
        InvalidRows: Neither code nor text says anything known.
    """
    code = (code or "").strip().upper()
    words = (text or "").strip().lower()
    if code.removesuffix(".0").isdigit():
        if words in ("finished", "", "lapped") or _LAPPED.match(words):
            lapped = words == "lapped" or bool(_LAPPED.match(words)) or bool(gap_laps and gap_laps > 0)
            return "lapped" if lapped else "finished"
        # Whoever is classified took the start, even where the word is "Withdrew" (2020-turkey, 2023-hungary).
        return "retired"
    if code in _CODES:
        # A withdrawal is in the words, the code is only DNS.
        return "withdrawn" if _CODES[code] == "not_started" and words in ("withdrew", "withdrawn") else _CODES[code]
    if not code and words in _WORDS:
        return _WORDS[words]
    raise InvalidRows(
        f"status code {code or None!r} with text {text!r} is unknown (known codes: {', '.join(sorted(_CODES))}); "
        "add it to sources/classification.py after looking at the official sheet"
    )


def started(status: pd.Series) -> pd.Series:
    """Whether a car took the start: everything but `not_started` and `withdrawn`."""
    return ~status.isin(NON_STARTERS)


def check_places(places: pd.Series, what: str) -> None:
    """Places are 1..k, each once, with missing values allowed; `InvalidRows` tells what is twice or lacking."""
    given = sorted(int(place) for place in places.dropna())
    wanted = list(range(1, len(given) + 1))
    if given != wanted:
        twice = sorted({place for place in given if given.count(place) > 1})
        lacking = sorted(set(wanted) - set(given))
        raise InvalidRows(f"{what} is no permutation of 1..{len(given)}: twice {twice or 'none'}, "
                          f"missing {lacking or 'none'}")


def check_classification(rows: pd.DataFrame) -> None:
    """The rows of one weekend's `race.results` (or sprint) are a possible classification, or `InvalidRows`."""
    if rows.empty:
        raise InvalidRows("the classification is empty")
    check_drivers_once(rows)
    check_places(rows["official_order"], "the official order")
    if rows["official_order"].isna().any():
        raise InvalidRows("a car has no place in the official order")
    check_places(rows["finish_position"], "the finishing order")
    unplaced = rows[rows["classified"] & rows["finish_position"].isna()]
    if len(unplaced):
        raise InvalidRows(f"classified without a place: {', '.join(unplaced['driver'])}")
    if not rows["classified"].any():
        raise InvalidRows("no car is classified")
    slots = rows.loc[rows["grid_status"].isin(("grid", "pit_lane")), "grid_position"]
    if slots.isna().any() or slots.duplicated().any():
        raise InvalidRows("the grid has a slot twice or a starter without one")


def check_qualifying(rows: pd.DataFrame) -> None:
    """The rows of one qualifying session have each driver once and places 1..k, or `InvalidRows`."""
    if rows.empty:
        raise InvalidRows("the classification is empty")
    check_drivers_once(rows)
    check_places(rows["position"], "the order")


def check_drivers_once(rows: pd.DataFrame) -> None:
    twice = rows.loc[rows["driver"].duplicated(), "driver"]
    if len(twice):
        raise InvalidRows(f"entered twice: {', '.join(sorted(set(twice)))}")


def classification_hash(rows: pd.DataFrame) -> str:
    """SHA-256 over what a classification says, whoever delivered it and in whatever order its rows came."""
    columns = ["driver", "constructor", "grid_position", "grid_status", "official_order", "finish_position",
               "classified", "status", "points", "laps", "result_status"]
    ordered = rows.sort_values("driver")[columns].astype("string").fillna("")
    text = "\n".join("|".join(row) for row in ordered.itertuples(index=False))
    return hashlib.sha256(text.encode()).hexdigest()


def place_pit_lane_starters(grid_position: pd.Series, grid_status: pd.Series) -> pd.Series:
    """Slots with the pit-lane starters behind the last car of the grid, in the order of the rows.

    Some sources give a pit-lane start as 0, -1 or nothing; none of these may sort ahead of pole.
    """
    slots = grid_position.astype("Int32").where(grid_status == "grid")
    last = int(slots.max()) if slots.notna().any() else 0
    in_pit_lane = grid_status == "pit_lane"
    slots[in_pit_lane] = range(last + 1, last + 1 + int(in_pit_lane.sum()))
    return slots
