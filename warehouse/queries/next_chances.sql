-- The latest forecast, from the model and from simulated races [%].
SELECT p.weekend, p.stage, p.predicted_position AS place, p.driver, round(100 * p.p_win, 1) AS win,
       round(100 * s.p_win, 1) AS win_simulated, round(100 * p.p_podium, 1) AS podium,
       round(100 * s.p_podium, 1) AS podium_simulated, round(100 * p.p_points, 1) AS points,
       round(p.expected_position, 1) AS expected_place, round(100 * p.p_beats_teammate, 1) AS beats_teammate
FROM ranking.predictions p
JOIN race.calendar c USING (weekend)
LEFT JOIN ranking.simulated_predictions s USING (weekend, driver, checkpoint, stage)
QUALIFY dense_rank() OVER (ORDER BY c.race_start DESC, p.made_at DESC,
                           list_position(['grid', 'qualifying', 'practice', 'entry'], p.stage), p.checkpoint) = 1
ORDER BY place
