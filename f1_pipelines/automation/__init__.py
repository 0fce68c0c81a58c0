"""Scheduling of weekend runs from the calendar, past runs and source updates, without Dagster."""
