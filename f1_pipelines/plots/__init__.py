"""Pictures of what was raced and learned, for README, paper and UI. matplotlib only, and imported late: it is slow."""
