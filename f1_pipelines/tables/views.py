"""Views of the warehouse, always up to date."""
from __future__ import annotations

from dataclasses import dataclass

from f1_pipelines.tables.race_faults import UNLEARNABLE


@dataclass(frozen=True)
class View:
    """A view with the meaning of its rows and its SQL."""

    schema: str
    name: str
    comment: str
    sql: str

    @property
    def qualified(self) -> str:
        return f"{self.schema}.{self.name}"


# The current version: official and amended ones come before provisional ones, then the latest.
_CURRENT = """
    SELECT * FROM race.{table}
    QUALIFY version = first_value(version) OVER (
        PARTITION BY weekend ORDER BY result_status = 'provisional', version DESC)
"""

# Three hours cover the longest session with a red flag; after that a session without rows is overdue, never "done".
_SESSIONS = """
    WITH planned AS (
        UNPIVOT (SELECT weekend, state, practice_1_start AS practice_1, practice_2_start AS practice_2,
                        practice_3_start AS practice_3, sprint_qualifying_start AS sprint_qualifying,
                        sprint_start AS sprint, qualifying_start AS qualifying, race_start AS race
                 FROM race.calendar)
        ON practice_1, practice_2, practice_3, sprint_qualifying, sprint, qualifying, race
        INTO NAME session VALUE starts_at
    ), held AS (
        SELECT DISTINCT weekend, session FROM race.practice
        UNION SELECT DISTINCT weekend, session FROM race.qualifying
        UNION SELECT DISTINCT weekend, session FROM race.session_laps
        UNION SELECT DISTINCT weekend, 'sprint' FROM race.sprint_results
        UNION SELECT DISTINCT weekend, 'race' FROM race.results
    )
    SELECT planned.weekend, planned.session, planned.starts_at,
        CASE WHEN held.weekend IS NOT NULL THEN 'done'
             WHEN planned.state IN ('cancelled', 'postponed') THEN planned.state
             WHEN planned.state = 'done' THEN 'not_held'
             WHEN now() < starts_at THEN 'upcoming'
             WHEN now() < starts_at + INTERVAL 3 HOUR THEN 'live'
             ELSE 'overdue' END AS state
    FROM planned LEFT JOIN held USING (weekend, session)
"""

VIEWS = (
    View("race", "current_results", "The current classification: the latest official or amended version, else the "
         "latest one", _CURRENT.format(table="results")),
    View("race", "current_sprint_results", "The current sprint classification",
         _CURRENT.format(table="sprint_results")),
    View("race", "sessions", "Start and state of each planned session: upcoming, live, done, overdue (past its time, "
         "but without rows), not_held (the race has rows, the session none), cancelled or postponed", _SESSIONS),
    View("race", "unlearnable_weekends", "Races excluded from training by faults of their stored rows; one row per "
         "fault", UNLEARNABLE),
)
