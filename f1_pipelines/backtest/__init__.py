"""Every predictor evaluated on past races, always forwards in time: protocols, predictors, report."""
