"""Backtests of all predictors on past races, each trained on earlier races only: protocols, predictors, report."""
