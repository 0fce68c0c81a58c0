"""Race engineers evaluated on held-out races: episodes, leaderboard, regret, post-mortems."""
