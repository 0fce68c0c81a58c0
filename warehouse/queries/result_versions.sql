-- Classifications with more than one version, and the source of each.
SELECT weekend, version, result_status, source, any_value(fetched_at) AS fetched_at,
       max(CASE WHEN finish_position = 1 THEN driver END) AS winner
FROM race.results
WHERE weekend IN (SELECT weekend FROM race.results WHERE version > 1)
GROUP BY ALL
ORDER BY weekend, version
