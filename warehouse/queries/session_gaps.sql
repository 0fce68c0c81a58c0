-- Past sessions without rows: overdue or not held.
SELECT weekend, session, state, starts_at
FROM race.sessions
WHERE state IN ('overdue', 'not_held')
ORDER BY starts_at DESC
