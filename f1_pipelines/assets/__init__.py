"""Dagster assets: one module per stage of the flow, each with its checks."""
import warnings

import dagster as dg

# 2026-11: `backfill_policy` is still beta in Dagster 1.13; without this filter, every command prints five warnings.
warnings.filterwarnings("ignore", message=r"Parameter `backfill_policy`", category=dg.BetaWarning)
