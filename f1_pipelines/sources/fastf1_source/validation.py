"""Whether a loaded session is whole. Every gate names the part that lacks; a half-loaded session passes none."""
from __future__ import annotations

from collections.abc import Set

import pandas as pd

from f1_pipelines.identity.weekends import session_kind
from f1_pipelines.sources.fastf1_source.loading import Loaded, NotComplete

# The live timing's word for each kind of session.
_TYPES = {"practice": "Practice", "qualifying": "Qualifying", "race": "Race"}
# The last word of a session that is over. A qualifying is "Finished" after each of its segments.
_OVER = {"practice": {"Finished", "Finalised", "Ends"}, "qualifying": {"Finalised", "Ends"},
         "race": {"Finished", "Finalised", "Ends"}}
# Not everybody drives in practice, and a car may be too damaged for qualifying; fewer than these is a cut-off feed.
# In a race every starter has a lap: FastF1 adds one for a car that stops in the first.
_LEAST_SHARE_DRIVING = {"practice": 0.5, "qualifying": 0.75}
_LEAST_SHARE_OF_LAPS = 0.9


def check_timing(loaded: Loaded, session: str) -> None:
    """The session has all that its lap rows need, or `NotComplete`.

    Args:
        loaded: As FastF1 loaded it.
        session: Our name of it.
    """
    kind = session_kind(session)
    if missing := missing_parts(loaded):
        raise NotComplete(
            f"{', '.join(missing)} missing: {0 if loaded.laps is None else len(loaded.laps)} laps of "
            f"{len(loaded.entries)} drivers (needs a lap of every starter); FastF1 loaded it without, FASTF1_DEBUG=1 "
            "shows why")
    if loaded.type not in (None, _TYPES[kind]):
        raise NotComplete(f"the live timing calls it a {loaded.type} session, a {_TYPES[kind]} was wanted", retry=False)
    status = loaded.status or ()
    if status and status[-1] not in _OVER[kind]:
        raise NotComplete(f"SessionStatus ends with {status[-1]} (wanted {' or '.join(sorted(_OVER[kind]))}): "
                          "the session was not over when its data were taken")
    _check_everybody(loaded, kind)
    _check_coverage(loaded)


def missing_parts(loaded: Loaded) -> list[str]:
    """The live timing's streams that a session can't do without and does. Weather and messages are not among them."""
    # Without the session's own driver list FastF1 takes the race's from Jolpica, which differs in practice.
    listed = loaded.entries.get("BroadcastName")
    return [part for part, there in (
        ("DriverList", listed is not None and listed.fillna("").ne("").any()),
        ("SessionStatus", loaded.status is not None),
        ("TrackStatus", loaded.track_status is not None and len(loaded.track_status) > 0),
        ("TimingData", loaded.laps is not None and len(loaded.laps) > 0),
    ) if not there]


def never_started(loaded: Loaded) -> Set[str]:
    """Car numbers without a single lap row in a race: FastF1 adds a row even for a car that stops in the first lap."""
    return set(loaded.entries["DriverNumber"]) - set(loaded.timed_laps()["DriverNumber"])


def _check_everybody(loaded: Loaded, kind: str) -> None:
    entries = loaded.entries
    absent = entries[entries["DriverNumber"].isin(never_started(loaded))]
    if kind == "race":
        unexplained = absent[~absent["Laps"].eq(0)]  # 0 laps on the official sheet: that car did not start
        if len(unexplained):
            raise NotComplete(f"TimingData is partial: no lap of {', '.join(unexplained['Abbreviation'].astype(str))} "
                              f"({len(unexplained)} of {len(entries)} drivers), and no official sheet says that they "
                              "did not start")
    elif len(absent) > (1 - _LEAST_SHARE_DRIVING[kind]) * len(entries):
        raise NotComplete(f"TimingData is partial: laps of {len(entries) - len(absent)} of {len(entries)} drivers "
                          f"(a {kind} has those of {_LEAST_SHARE_DRIVING[kind]:.0%} at least)")


def _check_coverage(loaded: Loaded) -> None:
    """No car lacks more than a tenth of its laps, by its own numbering and by the official sheet."""
    laps = loaded.timed_laps().groupby("DriverNumber")["LapNumber"].agg(["count", "max"])
    sheet = loaded.entries.drop_duplicates("DriverNumber").set_index("DriverNumber")["Laps"].reindex(laps.index)
    driven = pd.concat([laps["max"], sheet], axis=1).max(axis=1)
    holed = laps[laps["count"] < _LEAST_SHARE_OF_LAPS * driven]
    if len(holed):
        car = holed.index[0]
        raise NotComplete(f"TimingData is partial: {int(laps.loc[car, 'count'])} of {int(driven[car])} laps of car "
                          f"{car}, and {len(holed) - 1} other cars lack more than a tenth, too")
