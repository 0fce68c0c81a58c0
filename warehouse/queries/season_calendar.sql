-- The season as it stands: rounds, circuits, what is done and what is still to come.
SELECT weekend, round, event_name, layout, format, state, race_start
FROM race.calendar
WHERE season = 2026
ORDER BY race_start
