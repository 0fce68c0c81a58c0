"""Plots of races, training and forecasts for README and UI. matplotlib loads slowly, so functions import it."""
