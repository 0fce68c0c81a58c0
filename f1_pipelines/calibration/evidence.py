"""All measurements from laps by race, in one pass over the laps."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from f1_pipelines.calibration import incidents, overtaking, safety_cars, stops
from f1_pipelines.calibration.lap_model import FREE_GAP_S, LEAST_LAPS, RaceFit
from f1_pipelines.calibration.races import LEAST_RACE_LAPS, dry_races, fit_races, race_distance, term_values
from f1_pipelines.calibration.stage import CannotFit, stage_laps
from f1_pipelines.identity.circuits import UnknownCircuit, circuit_of

SCATTER_SE_S = 0.02  # standard error of a race's lap scatter from 300-600 laps
SAME_LENGTH = 0.10  # layouts whose lengths differ by a larger share are separate tracks (Bahrain's outer one of 2020)


@dataclass(frozen=True)
class Evidence:
    """`by_race` has one row per race and quantity: weekend, season, circuit, quantity, value, se, n."""

    staged: pd.DataFrame
    fits: dict[str, RaceFit]
    by_race: pd.DataFrame
    pairs: pd.DataFrame
    pass_rule: overtaking.PassRule
    events: pd.DataFrame
    retirements: pd.DataFrame
    losses: pd.DataFrame
    circuit: dict[str, str]  # track of each weekend of the calendar
    distance: dict[str, int]
    race_order: dict[str, int]  # position of each weekend of the calendar, by race start
    through: str  # the last weekend with laps

    def before(self, season: int) -> Evidence:
        """Return the evidence without the laps, stops and results of this season and later ones.

        Raises:
            CannotFit: No earlier race was fitted.
        """
        def earlier(frame: pd.DataFrame) -> pd.DataFrame:
            return frame[frame["weekend"].str[:4].astype(int) < season]

        fits = {weekend: fit for weekend, fit in self.fits.items() if int(weekend[:4]) < season}
        if not fits:
            raise CannotFit(f"no fitted race before {season}; the first is {min(self.fits)}, so choose a later season")
        distance = {weekend: laps for weekend, laps in self.distance.items() if int(weekend[:4]) < season}
        pairs = earlier(self.pairs)
        return replace(self, staged=earlier(self.staged), fits=fits, by_race=earlier(self.by_race), pairs=pairs,
                       pass_rule=overtaking.fit_pass_rule(pairs, self.circuit), events=earlier(self.events),
                       retirements=earlier(self.retirements), losses=earlier(self.losses), distance=distance,
                       through=max(distance, key=lambda weekend: self.race_order[weekend]))


def gather(laps: pd.DataFrame, results: pd.DataFrame, pit_stops: pd.DataFrame, calendar: pd.DataFrame) -> Evidence:
    """Measure every race.

    Args:
        laps: Rows of `race.laps`; weekends missing from the calendar are ignored.
        results: Rows of `race.results`, the newest version of each weekend.
        pit_stops: Rows of `race.pit_stops`; a stop counts if laps and stop list agree within one lap.
        calendar: Rows of `race.calendar`.

    Raises:
        CannotFit: There are no laps, columns are missing, or no race is dry with enough clean laps.
    """
    circuit = track_of(calendar)
    staged = stage_laps(laps[laps["weekend"].isin(list(circuit))])
    order = {str(w): n for n, w in enumerate(calendar.sort_values("race_start")["weekend"])}
    distance = race_distance(staged, calendar)
    clean = dry_races(staged)
    fits = fit_races(clean, distance)
    if not fits:
        raise CannotFit(f"none of {len(distance)} races is dry with {LEAST_RACE_LAPS}+ clean laps; wanted at least one")
    results = results[results["weekend"].isin(staged["weekend"].unique())]
    if results.empty:
        raise CannotFit(f"no results of the {len(distance)} races with laps; load race_results for them")
    losses = known_stops(stops.stop_losses(staged), pit_stops)
    pairs = overtaking.pairs(staged, fits)
    if pairs.empty:
        raise CannotFit(f"no car follows another in {len(distance)} races: session_time_s is missing in their laps; "
                        "wanted the session clock at the end of each lap")
    starts = incidents.first_laps(staged, results)
    residuals = incidents.residuals(clean, fits)
    ratios = safety_cars.lap_ratios(staged)
    by_race = {
        **free_air(clean, distance, circuit),
        "stop_scatter": stops.scatter_by_race(losses), "fresh_gain": incidents.fresh_gain_by_race(staged, residuals),
        "dirty_air": overtaking.dirty_air_by_race(pairs), "first_lap_places": incidents.places_by_race(starts),
        "first_lap_loss": incidents.first_lap_loss_by_race(staged, starts),
        **{f"stop_{kind}": stops.loss_by_race(losses, kind) for kind in stops.KINDS},
        **{f"ratio_{kind}": safety_cars.ratio_by_race(ratios, kind) for kind in ratios["kind"].unique()}}
    values = pd.concat([rows.assign(quantity=name) for name, rows in by_race.items() if len(rows)], ignore_index=True)
    values = values.assign(season=values["weekend"].str[:4].astype(int), circuit=values["weekend"].map(circuit))
    return Evidence(
        staged, fits, values[["weekend", "season", "circuit", "quantity", "value", "se", "n"]],
        pairs, overtaking.fit_pass_rule(pairs, circuit),
        safety_cars.periods(safety_cars.status_by_race(staged, distance)),
        incidents.retirements(results), losses, circuit,
        distance, order, max(distance, key=lambda weekend: order[weekend]))


def free_air(clean: pd.DataFrame, distance: Mapping[str, int], circuit: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Measure base lap, scatter, trend and tyres by race from laps in free air.

    Cars in a train lap at the pace of the first car, which hides their tyre wear: the slopes of the engine's own races
    are recovered only from laps in free air. In real races these slopes are about 8 % steeper than from all laps.
    """
    fits = fit_races(clean[clean["gap_s"] > FREE_GAP_S], distance)
    rows = {name: pd.DataFrame([(w, *value(fit), fit.n_laps) for w, fit in fits.items()],
                               columns=["weekend", "value", "se", "n"])
            for name, value in (("base", _field_pace), ("scatter", lambda fit: (fit.scatter_s, SCATTER_SE_S)))}
    terms = term_values(fits, circuit).groupby("term")
    return rows | {term: of_term for term, of_term in terms if not term.startswith("traffic")}


def known_stops(losses: pd.DataFrame, pit_stops: pd.DataFrame) -> pd.DataFrame:
    """Keep the stops that the stop list confirms within one lap, and all stops of races without a list."""
    listed = {(w, d, int(lap) + off) for w, d, lap in zip(pit_stops["weekend"], pit_stops["driver"], pit_stops["lap"],
                                                          strict=True) for off in (-1, 0, 1)}
    unlisted_race = ~losses["weekend"].isin(pit_stops["weekend"].unique())
    confirmed = [key in listed for key in zip(losses["weekend"], losses["driver"], losses["lap"], strict=True)]
    return losses[unlisted_race | np.array(confirmed, dtype=bool)].reset_index(drop=True)


def track_of(calendar: pd.DataFrame) -> dict[str, str]:
    """Map weekends to tracks: the circuit, or `circuit/layout` if that layout is a separate track.

    Layouts of one circuit are the same track if their lengths are within 10 % of the most frequent one's: a moved
    chicane hardly changes tyre wear. Bahrain's outer layout of 2020 is separate; an unknown layout is not.
    """
    length = {(c, layout): _length_km(c, layout)
              for c, layout in calendar[["circuit", "layout"]].drop_duplicates().itertuples(index=False)}
    usual = calendar.groupby("circuit")["layout"].agg(lambda layouts: layouts.mode().iloc[0])
    return {str(w): f"{c}/{layout}" if abs(length[c, layout] / length[c, usual[c]] - 1) > SAME_LENGTH else str(c)
            for w, c, layout in calendar[["weekend", "circuit", "layout"]].itertuples(index=False)}


def _field_pace(fit: RaceFit) -> tuple[float, float]:
    """Median pace of the cars with enough laps [s] and its standard error."""
    pace = np.array([p for d, p in fit.pace_s.items() if fit.laps_of[d] >= LEAST_LAPS])
    return float(np.median(pace)), float(1.25 * np.std(pace) / np.sqrt(len(pace)))


def _length_km(circuit: str, layout: str) -> float:
    try:
        return circuit_of(circuit, layout).length_km
    except UnknownCircuit:
        return float("nan")
