-- Drivers with the most places gained from grid to flag, mean over their last five starts.
SELECT driver, count(*) AS starts, round(avg(grid_position - official_order), 1) AS places_gained
FROM (
    SELECT r.*, row_number() OVER (PARTITION BY driver ORDER BY race_start DESC) AS ago
    FROM race.current_results r JOIN race.calendar USING (weekend)
    WHERE r.status NOT IN ('not_started', 'withdrawn')
)
WHERE ago <= 5
GROUP BY driver
HAVING count(*) = 5
ORDER BY places_gained DESC
LIMIT 15
