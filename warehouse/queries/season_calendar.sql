-- The 2026 season: round, circuit and state of each weekend.
SELECT weekend, round, event_name, layout, format, state, race_start
FROM race.calendar
WHERE season = 2026
ORDER BY race_start
