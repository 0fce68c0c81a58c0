"""The rules of a classification, for every source.

A faulty sheet (a place twice, a place missing, an unknown status) is refused as a whole: a guessed repair would teach
the ranker an order that never happened.
"""
from __future__ import annotations

import hashlib
import re

import pandas as pd

from f1_pipelines.tables.race import NON_STARTERS
from f1_pipelines.tables.schema import InvalidRows

_LAPPED = re.compile(r"^\+\d+ laps?$", re.IGNORECASE)
# Texts of Ergast and Jolpica that are a status of their own. Any other text is the reason for a retirement.
_WORDS = {
    "finished": "finished", "lapped": "lapped", "retired": "retired", "disqualified": "disqualified",
    "excluded": "disqualified", "did not start": "not_started", "dns": "not_started", "withdrew": "withdrawn",
    "withdrawn": "withdrawn", "did not qualify": "not_started", "did not prequalify": "not_started",
    "not classified": "not_classified", "107% rule": "not_started",
}
# FastF1's ClassifiedPosition and f1db's positionText where it is not a number.
_CODES = {
    "R": "retired", "DNF": "retired", "D": "disqualified", "DSQ": "disqualified", "E": "disqualified",
    "EX": "disqualified", "W": "withdrawn", "DNS": "not_started", "F": "not_started", "DNQ": "not_started",
    "DNPQ": "not_started", "N": "not_classified", "NC": "not_classified",
}


def classify_status(code: str | None, text: str | None, gap_laps: float | None = None) -> str:
    """Find the status of a car, by the position code of the sheet first and its free text second.

    Args:
        code: The position as printed: a number for classified cars, else R, D, W, N, DNF, DSQ, DNS, NC, ...
        text: The status or reason in words ("Finished", "+1 Lap", "Lapped", "Engine", "Withdrew"); may be missing.
        gap_laps: Laps behind the winner, if known.

    Returns:
        One of `tables.race.STATUSES`. A car that stopped before the flag but is classified (it completed 90 %) is
        `retired`; `classified` is a separate column.

    Raises:
        InvalidRows: Neither code nor text is known.
    """
    code = (code or "").strip().upper()
    words = (text or "").strip().lower()
    if code.removesuffix(".0").isdigit():
        if words in ("finished", "", "lapped") or _LAPPED.match(words):
            lapped = words == "lapped" or bool(_LAPPED.match(words)) or bool(gap_laps and gap_laps > 0)
            return "lapped" if lapped else "finished"
        # A classified car took the start, even if its text is "Withdrew" (2020-turkey, 2023-hungary).
        return "retired"
    if code in _CODES:
        # The code of a withdrawal is only DNS; the text tells.
        return "withdrawn" if _CODES[code] == "not_started" and words in ("withdrew", "withdrawn") else _CODES[code]
    if not code and words in _WORDS:
        return _WORDS[words]
    raise InvalidRows(
        f"status code {code or None!r} with text {text!r} is unknown (known codes: {', '.join(sorted(_CODES))}); "
        "add it to sources/classification.py after checking the official sheet"
    )


def started(status: pd.Series) -> pd.Series:
    """Whether a car took the start: any status but `not_started` and `withdrawn`."""
    return ~status.isin(NON_STARTERS)


def check_places(places: pd.Series, name: str) -> None:
    """Raise `InvalidRows` unless the places are 1..k, each once. Missing values are allowed."""
    numbers = sorted(int(place) for place in places.dropna())
    expected = list(range(1, len(numbers) + 1))
    if numbers != expected:
        repeated = sorted({place for place in numbers if numbers.count(place) > 1})
        missing = sorted(set(expected) - set(numbers))
        raise InvalidRows(f"{name} is not a permutation of 1..{len(numbers)}: repeated {repeated or 'none'}, "
                          f"missing {missing or 'none'}")


def check_classification(rows: pd.DataFrame) -> None:
    """Raise `InvalidRows` unless the rows of one race or sprint are a possible classification."""
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
    """Raise `InvalidRows` unless the rows of one qualifying session have each driver once and places 1..k."""
    if rows.empty:
        raise InvalidRows("the classification is empty")
    check_drivers_once(rows)
    check_places(rows["position"], "the order")


def check_drivers_once(rows: pd.DataFrame) -> None:
    repeated = rows.loc[rows["driver"].duplicated(), "driver"]
    if len(repeated):
        raise InvalidRows(f"entered twice: {', '.join(sorted(set(repeated)))}")


def classification_hash(rows: pd.DataFrame) -> str:
    """SHA-256 over the content of a classification, independent of its source and the order of its rows."""
    columns = ["driver", "constructor", "grid_position", "grid_status", "official_order", "finish_position",
               "classified", "status", "points", "laps", "result_status"]
    ordered = rows.sort_values("driver")[columns].astype("string").fillna("")
    text = "\n".join("|".join(row) for row in ordered.itertuples(index=False))
    return hashlib.sha256(text.encode()).hexdigest()


def place_pit_lane_starters(grid_position: pd.Series, grid_status: pd.Series) -> pd.Series:
    """Put pit-lane starters in the slots behind the last car of the grid, in the order of the rows.

    Some sources give a pit-lane start as 0, -1 or nothing; none of these may sort ahead of pole.
    """
    slots = grid_position.astype("Int32").where(grid_status == "grid")
    last = int(slots.max()) if slots.notna().any() else 0
    in_pit_lane = grid_status == "pit_lane"
    slots[in_pit_lane] = range(last + 1, last + 1 + int(in_pit_lane.sum()))
    return slots
