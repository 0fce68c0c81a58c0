"""Dagster wiring: one module per stage of the flow, each with its checks."""
import warnings

import dagster as dg

# 2026-11: `backfill_policy` still counts as beta in Dagster 1.13; without this, five warnings precede every command.
warnings.filterwarnings("ignore", message=r"Parameter `backfill_policy`", category=dg.BetaWarning)
