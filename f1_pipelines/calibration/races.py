"""Every dry race fitted, and what earlier races say about a coming one."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from f1_pipelines.calibration.empirical_bayes import pool
from f1_pipelines.calibration.lap_model import TERMS, WIDE_MEAN, WIDE_SD, Prior, RaceFit, fit_race

LEAST_RACE_LAPS = 150  # clean laps below which a race says nothing (a dry race has about 900)


def race_distance(staged: pd.DataFrame, calendar: pd.DataFrame) -> dict[str, int]:
    """Laps of each race: what the calendar says, else the longest distance that any car drove."""
    driven = staged.groupby("weekend")["lap"].max()
    planned = calendar.set_index("weekend")["race_laps"]
    return {w: int(planned[w]) if w in planned.index and pd.notna(planned[w]) else int(n) for w, n in driven.items()}


def dry_races(staged: pd.DataFrame) -> pd.DataFrame:
    """Clean laps of the races that are dry and have enough of them."""
    clean = staged[staged["clean"] & staged["dry"]]
    return clean[clean.groupby("weekend")["lap"].transform("size") >= LEAST_RACE_LAPS]


def fit_races(clean: pd.DataFrame, distance: Mapping[str, int]) -> dict[str, RaceFit]:
    """Each race on its own, with wide priors."""
    return {weekend: fit_race(laps, distance[weekend] / 2) for weekend, laps in clean.groupby("weekend")}


def term_values(fits: Mapping[str, RaceFit], circuits: Mapping[str, str]) -> pd.DataFrame:
    """One row per race and term: `weekend`, `season`, `circuit`, `term`, `value`, `se`, free of the prior.

    A fitted term is a compromise of data and prior; the data's own word is what shrinkage wants:
    precision 1/se^2 - 1/sd^2. A compound that nobody drove has none (se infinite).
    """
    rows = []
    for weekend, fit in fits.items():
        precision = 1 / fit.terms_se**2 - 1 / WIDE_SD**2
        measured = precision > 0.05 / WIDE_SD**2  # less is rounding: the term has no data
        safe = np.where(measured, precision, 1.0)
        value = np.where(measured, (fit.terms / fit.terms_se**2 - WIDE_MEAN / WIDE_SD**2) / safe, np.nan)
        rows.append(pd.DataFrame({"weekend": weekend, "season": int(weekend[:4]), "circuit": circuits[weekend],
                                  "term": TERMS, "value": value, "se": np.where(measured, safe**-0.5, np.inf)}))
    return pd.concat(rows, ignore_index=True)


class TermPriors:
    """Priors of the races of a season, from earlier races."""

    def __init__(self, terms: pd.DataFrame, season: int):
        """
        Args:
            terms: As `term_values` gives them; seasons from `season` on are left out.
            season: Of the races to come.
        """
        earlier = terms[terms["season"] < season]
        self.pooled = {term: pool(rows, season) for term, rows in earlier.groupby("term")
                       if np.isfinite(rows["se"]).any()}

    def of(self, circuit: str) -> Prior | None:
        """Prior of a coming race at a circuit, new ones too; None when nothing at all was raced before."""
        if not self.pooled:
            return None
        mean, sd = WIDE_MEAN.copy(), WIDE_SD.copy()
        for k, term in enumerate(TERMS):
            if term in self.pooled:
                mean[k], sd[k] = self.pooled[term].next_race(circuit)
        return Prior(mean, sd)
