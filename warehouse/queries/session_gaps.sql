-- Sessions that should be in and are not: overdue, or not held at all.
SELECT weekend, session, state, starts_at
FROM race.sessions
WHERE state IN ('overdue', 'not_held')
ORDER BY starts_at DESC
