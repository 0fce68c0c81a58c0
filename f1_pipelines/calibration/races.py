"""Fit each dry race, and derive priors for future races from earlier ones."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from f1_pipelines.calibration.empirical_bayes import pool
from f1_pipelines.calibration.lap_model import TERMS, WIDE_MEAN, WIDE_SD, Prior, RaceFit, fit_race

LEAST_RACE_LAPS = 150  # clean laps needed to fit a race (a dry race has about 900)


def race_distance(staged: pd.DataFrame, calendar: pd.DataFrame) -> dict[str, int]:
    """Laps of each race: the calendar's, or the longest distance driven if the calendar has none."""
    driven = staged.groupby("weekend")["lap"].max()
    planned = calendar.set_index("weekend")["race_laps"]
    return {w: int(planned[w]) if w in planned.index and pd.notna(planned[w]) else int(n) for w, n in driven.items()}


def dry_races(staged: pd.DataFrame) -> pd.DataFrame:
    """Clean laps of the dry races that have enough of them."""
    clean = staged[staged["clean"] & staged["dry"]]
    return clean[clean.groupby("weekend")["lap"].transform("size") >= LEAST_RACE_LAPS]


def fit_races(clean: pd.DataFrame, distance: Mapping[str, int]) -> dict[str, RaceFit]:
    """Fit each race separately with wide priors."""
    return {weekend: fit_race(laps, distance[weekend] / 2) for weekend, laps in clean.groupby("weekend")}


def term_values(fits: Mapping[str, RaceFit], circuits: Mapping[str, str]) -> pd.DataFrame:
    """One row per race and term: `weekend`, `season`, `circuit`, `term`, `value`, `se`, without the prior.

    A fitted term mixes data and prior, but pooling needs the data's estimate alone: its precision is 1/se^2 - 1/sd^2.
    A term without data (unused compound) has an infinite se.
    """
    rows = []
    for weekend, fit in fits.items():
        precision = 1 / fit.terms_se**2 - 1 / WIDE_SD**2
        measured = precision > 0.05 / WIDE_SD**2  # less is rounding error: the term has no data
        safe = np.where(measured, precision, 1.0)
        value = np.where(measured, (fit.terms / fit.terms_se**2 - WIDE_MEAN / WIDE_SD**2) / safe, np.nan)
        rows.append(pd.DataFrame({"weekend": weekend, "season": int(weekend[:4]), "circuit": circuits[weekend],
                                  "term": TERMS, "value": value, "se": np.where(measured, safe**-0.5, np.inf)}))
    return pd.concat(rows, ignore_index=True)


class TermPriors:
    """Priors for the races of a season from earlier seasons."""

    def __init__(self, terms: pd.DataFrame, season: int):
        """
        Args:
            terms: Rows of `term_values`; `season` and later ones are ignored.
            season: Season of the future races.
        """
        earlier = terms[terms["season"] < season]
        self.pooled = {term: pool(rows, season) for term, rows in earlier.groupby("term")
                       if np.isfinite(rows["se"]).any()}

    def of(self, circuit: str) -> Prior | None:
        """Prior of a future race at a circuit, raced before or not; None if no earlier race was fitted."""
        if not self.pooled:
            return None
        mean, sd = WIDE_MEAN.copy(), WIDE_SD.copy()
        for k, term in enumerate(TERMS):
            if term in self.pooled:
                mean[k], sd[k] = self.pooled[term].next_race(circuit)
        return Prior(mean, sd)
