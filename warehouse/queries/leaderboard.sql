-- All policies on the same held-out races: mean score with 95 % interval, closed share of the expert gap, against SFT.
SELECT policy, variant, n, round(mean, 3) AS score, round(low, 3) AS low, round(high, 3) AS high,
       round(gap_closed, 2) AS gap_closed, round(over_sft, 3) AS over_sft, round(over_sft_low, 3) AS sft_low,
       round(over_sft_high, 3) AS sft_high, round(regret, 3) AS regret, round(parse_failures, 4) AS unparsed, checkpoint
FROM strategy.leaderboard
WHERE family = 'all'
ORDER BY mean DESC, policy, variant
