"""Check that a loaded session is complete. Errors name the missing part."""
from __future__ import annotations

from collections.abc import Set

import pandas as pd

from f1_pipelines.identity.weekends import session_kind
from f1_pipelines.sources.fastf1_source.loading import Loaded, NotComplete

# The live timing's name of each kind of session.
_TYPES = {"practice": "Practice", "qualifying": "Qualifying", "race": "Race"}
# The last status of a session that is over. A qualifying is "Finished" after each of its segments.
_OVER = {"practice": {"Finished", "Finalised", "Ends"}, "qualifying": {"Finalised", "Ends"},
         "race": {"Finished", "Finalised", "Ends"}}
# Not all drivers take part in practice, and a car may be too damaged for qualifying; a smaller share is a truncated
# feed. In a race every starter has a lap: FastF1 adds one for a car that stops in the first.
_MIN_SHARE_OF_CARS = {"practice": 0.5, "qualifying": 0.75}
_MIN_SHARE_OF_LAPS = 0.9


def check_timing(loaded: Loaded, session: str) -> None:
    """Raise `NotComplete` unless the session has all that its lap rows need. `session` is our name of it."""
    kind = session_kind(session)
    if missing := missing_parts(loaded):
        raise NotComplete(
            f"{', '.join(missing)} missing: {0 if loaded.laps is None else len(loaded.laps)} laps of "
            f"{len(loaded.entries)} drivers (needs a lap of every starter); FASTF1_DEBUG=1 shows why")
    if loaded.type not in (None, _TYPES[kind]):
        raise NotComplete(f"the live timing calls it a {loaded.type} session; wanted {_TYPES[kind]}", retry=False)
    status = loaded.status or ()
    if status and status[-1] not in _OVER[kind]:
        raise NotComplete(f"SessionStatus ends with {status[-1]} (wanted {' or '.join(sorted(_OVER[kind]))}): "
                          "the session was not over when its data were recorded")
    _check_cars(loaded, kind)
    _check_coverage(loaded)


def missing_parts(loaded: Loaded) -> list[str]:
    """Required streams of the live timing that a session lacks. Weather and messages are not required."""
    # Without the session's own driver list FastF1 takes the race's from Jolpica, which differs in practice.
    names = loaded.entries.get("BroadcastName")
    return [part for part, present in (
        ("DriverList", names is not None and names.fillna("").ne("").any()),
        ("SessionStatus", loaded.status is not None),
        ("TrackStatus", loaded.track_status is not None and len(loaded.track_status) > 0),
        ("TimingData", loaded.laps is not None and len(loaded.laps) > 0),
    ) if not present]


def never_started(loaded: Loaded) -> Set[str]:
    """Car numbers without a lap row in a race: FastF1 adds a row even for a car that stops in the first lap."""
    return set(loaded.entries["DriverNumber"]) - set(loaded.timed_laps()["DriverNumber"])


def _check_cars(loaded: Loaded, kind: str) -> None:
    entries = loaded.entries
    absent = entries[entries["DriverNumber"].isin(never_started(loaded))]
    if kind == "race":
        unexplained = absent[~absent["Laps"].eq(0)]  # 0 laps on the official sheet: that car did not start
        if len(unexplained):
            raise NotComplete(f"TimingData is partial: no lap of {', '.join(unexplained['Abbreviation'].astype(str))} "
                              f"({len(unexplained)} of {len(entries)} drivers), and no official sheet says that they "
                              "did not start")
    elif len(absent) > (1 - _MIN_SHARE_OF_CARS[kind]) * len(entries):
        raise NotComplete(f"TimingData is partial: laps of {len(entries) - len(absent)} of {len(entries)} drivers "
                          f"(a {kind} needs at least {_MIN_SHARE_OF_CARS[kind]:.0%})")


def _check_coverage(loaded: Loaded) -> None:
    """Check that no car lacks more than a tenth of its laps, by its own numbering and by the official sheet."""
    laps = loaded.timed_laps().groupby("DriverNumber")["LapNumber"].agg(["count", "max"])
    sheet = loaded.entries.drop_duplicates("DriverNumber").set_index("DriverNumber")["Laps"].reindex(laps.index)
    driven = pd.concat([laps["max"], sheet], axis=1).max(axis=1)
    incomplete = laps[laps["count"] < _MIN_SHARE_OF_LAPS * driven]
    if len(incomplete):
        car = incomplete.index[0]
        raise NotComplete(f"TimingData is partial: {int(laps.loc[car, 'count'])} of {int(driven[car])} laps of car "
                          f"{car}; {len(incomplete) - 1} other cars also lack more than a tenth")
