"""Rules that find faults of stored races, one query each, for the asset checks and `race.unlearnable_weekends`.

Every rule selects `weekend`, `fault` (an identifier) and `detail` (a sentence).
"""
from __future__ import annotations


def _broken_places(fault: str, sheets: str) -> str:
    """A rule that finds sheets whose places are not 1..n, each once.

    Args:
        fault: Identifier of the fault.
        sheets: Query of weekend, sheet (its name in a sentence) and place.
    """
    return f"""
        SELECT weekend, '{fault}' AS fault,
               format('{{}}: {{}} cars in {{}} places from {{}} to {{}}, wanted each place from 1 to {{}} once', sheet,
                      count(*), count(DISTINCT place), coalesce(min(place)::VARCHAR, 'none'),
                      coalesce(max(place)::VARCHAR, 'none'), count(*)) AS detail
        FROM ({sheets}) GROUP BY weekend, sheet
        HAVING count(*) <> count(DISTINCT place) OR count(*) <> max(place) OR min(place) <> 1"""


BROKEN_ORDER = _broken_places("broken_order", """
    SELECT weekend, 'classification of the race' AS sheet, official_order AS place FROM race.current_results
    UNION ALL
    SELECT weekend, 'classified cars of the race', finish_position FROM race.current_results WHERE classified""")

BROKEN_SPRINT_ORDER = _broken_places("broken_sprint_order", """
    SELECT weekend, 'classification of the sprint' AS sheet, official_order AS place
    FROM race.current_sprint_results""")

_QUALIFYING = """
    SELECT weekend, '{sheet}' AS sheet, position AS place FROM race.qualifying
    WHERE session = '{session}' AND position IS NOT NULL"""
BROKEN_QUALIFYING = _broken_places(
    "broken_qualifying", _QUALIFYING.format(sheet="qualifying", session="qualifying"))
BROKEN_SPRINT_QUALIFYING = _broken_places(
    "broken_sprint_qualifying", _QUALIFYING.format(sheet="sprint qualifying", session="sprint_qualifying"))

# Features use the slots of `race.grid` if it has any, else those of the classification. A car withdrawn late may share
# its slot with the one that moved up (2025-spain), so slots of `race.grid` are checked for starters only.
_STARTED = "status NOT IN ('not_started', 'withdrawn')"
_SLOTS = f"""(
    SELECT weekend, 'classification' AS sheet, driver, grid_position AS slot FROM race.current_results
    UNION ALL
    SELECT weekend, 'starting grid', driver, g.grid_position FROM race.grid g
    JOIN (SELECT weekend, driver FROM race.current_results WHERE {_STARTED}) USING (weekend, driver)
    WHERE g.session = 'race')"""
GRID_SLOT_TWICE = f"""
    SELECT weekend, 'grid_slot_twice' AS fault,
           format('{{}}: slot {{}} for {{}}', sheet, slot, string_agg(driver, ', ' ORDER BY driver)) AS detail
    FROM {_SLOTS} WHERE slot IS NOT NULL GROUP BY weekend, sheet, slot HAVING count(*) > 1"""
GRID_SENTINEL = f"""
    SELECT weekend, 'grid_sentinel' AS fault,
           format('{{}}: slot {{}} for {{}}; slots count from 1', sheet, slot, driver) AS detail
    FROM {_SLOTS} WHERE slot < 1"""
_SLOTLESS = "(WHERE grid_position IS NULL AND grid_status IN ('grid', 'pit_lane'))"
STARTER_WITHOUT_SLOT = f"""
    SELECT weekend, 'starter_without_slot' AS fault,
           format('no slot, and no reason for it, for {{}}',
                  string_agg(driver, ', ' ORDER BY driver) FILTER {_SLOTLESS}) AS detail
    FROM race.current_results GROUP BY weekend
    HAVING count(grid_position) > 0 AND count(*) FILTER {_SLOTLESS} > 0"""
NO_GRID = """
    SELECT weekend, 'no_grid' AS fault, format('none of {} cars has a slot on the grid', count(*)) AS detail
    FROM race.current_results GROUP BY weekend HAVING count(grid_position) = 0"""

# A few cars may be substitutes or withdrawn before qualifying; if a fifth of the field is missing, rows were lost.
QUALIFYING_INCOMPLETE = f"""
    SELECT r.weekend, 'qualifying_incomplete' AS fault,
           format('qualifying has {{}} of {{}} starters, wanted four fifths of them at least', count(q.driver),
                  count(*)) AS detail
    FROM race.current_results r
    LEFT JOIN race.qualifying q ON q.weekend = r.weekend AND q.driver = r.driver AND q.session = 'qualifying'
    WHERE {_STARTED}
      AND r.weekend IN (SELECT weekend FROM race.qualifying WHERE session = 'qualifying')
    GROUP BY r.weekend HAVING count(q.driver) < 0.8 * count(*)"""

STARTER_WITHOUT_FEATURES = f"""
    SELECT r.weekend, 'starter_without_features' AS fault,
           format('features.ranking has no row of {{}}', string_agg(r.driver, ', ' ORDER BY r.driver)) AS detail
    FROM race.current_results r
    WHERE {_STARTED} AND r.result_status <> 'provisional'
      AND r.weekend IN (SELECT weekend FROM features.ranking)
      AND NOT EXISTS (SELECT 1 FROM features.ranking f WHERE f.weekend = r.weekend AND f.driver = r.driver)
    GROUP BY r.weekend"""


def any_of(*rules: str) -> str:
    """The union of rules."""
    return " UNION ALL ".join(f"SELECT * FROM ({rule})" for rule in rules)


# A race may lack all its slots (INCOMPLETE_GRID), but slots that exist must be possible.
IMPOSSIBLE_GRID = any_of(GRID_SLOT_TWICE, GRID_SENTINEL)
INCOMPLETE_GRID = any_of(STARTER_WITHOUT_SLOT, NO_GRID)
UNSOUND_QUALIFYING = any_of(BROKEN_QUALIFYING, QUALIFYING_INCOMPLETE)
# Sprints are not training data, so their faults don't exclude the Grand Prix.
UNLEARNABLE = any_of(BROKEN_ORDER, IMPOSSIBLE_GRID, INCOMPLETE_GRID, UNSOUND_QUALIFYING,
                     STARTER_WITHOUT_FEATURES) + " ORDER BY weekend, fault, detail"
