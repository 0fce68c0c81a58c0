-- All predictors against grid order: mean Spearman with the paired 95 % interval, all starters.
SELECT protocol, predictor, n_races, round(spearman, 3) AS spearman, round(delta_spearman, 3) AS delta,
       round(delta_low, 3) AS low, round(delta_high, 3) AS high, round(ndcg10, 3) AS ndcg10, round(top1, 3) AS top1,
       round(podium_overlap, 3) AS podium, round(mae_positions, 2) AS places_off, data_version
FROM ranking.evaluation_summary
WHERE population = 'starters'
ORDER BY protocol DESC, spearman DESC
