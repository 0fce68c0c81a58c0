"""Validate the simulator by replays of real dry races without a red flag (docs/physics.md#replay).

Each row of `sim.validation` lists its real inputs. A replay with fitted pace is a fit, not a forecast; if it is no
better than `pace_rank`, the simulation adds nothing. `replay_half` is tested on held-out laps. `replay_ex_ante`
forecasts the race's pace from qualifying and earlier races.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from f1_pipelines.calibration.circuits import circuit_parameters, circuit_rows, pooled_prior
from f1_pipelines.calibration.evidence import Evidence
from f1_pipelines.calibration.lap_errors import lap_errors
from f1_pipelines.calibration.lap_model import LEAST_LAPS, TERMS, Prior, RaceFit, fit_race
from f1_pipelines.calibration.pace_forecast import forecast_pace, qualifying_gaps, race_pace, with_form
from f1_pipelines.calibration.races import TermPriors, term_values
from f1_pipelines.calibration.real_race import RealRace, real_race
from f1_pipelines.calibration.replay import NOISE_FREE, Replay, replay
from f1_pipelines.calibration.scores import gap_error_s, lap_errors_of, order_scores, stop_error_s
from f1_pipelines.calibration.stage import clean_laps
from f1_pipelines.sim import CircuitParameters
from f1_pipelines.sim.engine.parameters import GREEN, SC, VSC
from f1_pipelines.sim.engine.step import ENGINE_VERSION
from f1_pipelines.tables.sim import VALIDATION, VALIDATION_SUMMARY

FIRST_SEASON = 2019  # the first forecast is fitted on the season before
EPISODES = 100
UNKNOWN_PACE_S = 0.8  # gap to the median car of a car without five clean laps (few of those finish)
PEER_2019_LEFT_OUT = ("2019-australia", "2019-italy", "2019-russia")  # not run by the published simulator
PEER = "2019_peer"

RACE = "grid, stops (lap, compound, age of the set), track status by lap, retirements"
INPUTS = {
    "grid": "grid", "pace_rank": "race pace fitted on the race",
    "replay_fitted": f"{RACE}; race pace, tyres and trend fitted on the race",
    "replay_fitted_noise_free": f"{RACE}; race pace, tyres and trend fitted on the race",
    "replay_fitted_lap_1": f"{RACE}; order and gaps after lap 1, cost of each stop; race pace, tyres and trend fitted "
                           "on the race",
    "half_order": "order at half distance",
    "replay_half": f"{RACE}; order, gaps and tyres at half distance; pace, tyres and trend fitted on the first half "
                   "and earlier seasons; circuit of earlier seasons; a car without five clean laps has the pace of "
                   "replay_ex_ante",
    "qualifying_rank": "qualifying", "ex_ante_rank": "qualifying; earlier races",
    "replay_ex_ante": f"{RACE}; pace from qualifying and earlier races; circuit of earlier seasons",
    "replay_ex_ante_seasons": f"{RACE}; pace from qualifying and earlier seasons; circuit of earlier seasons",
    "replay_ex_ante_no_stops": "grid, track status by lap, retirements; pace from qualifying and earlier races; "
                               "circuit of earlier seasons",
    "replay_qualifying": f"{RACE}; pace 0.75 x qualifying gap; circuit of earlier seasons"}
TARGETS = {  # (method, races) -> (Spearman, places off), from issue 3
    ("replay_fitted", "all"): (0.94, 1.0), ("replay_fitted", PEER): (0.93, 1.15), ("replay_half", "all"): (0.92, 1.2),
    ("replay_ex_ante", "all"): (0.87, 1.8)}
LAP_TARGETS = {"laps_random_fifth": 0.42, "laps_last_quarter": 0.58, "laps_later_race": 0.48}


@dataclass(frozen=True)
class ReplayCase:
    """One real race with the inputs of its replays."""

    real: RealRace
    fit: RaceFit
    circuit: CircuitParameters  # fitted on all seasons
    earlier: CircuitParameters  # fitted on earlier seasons
    laps: pd.DataFrame  # staged laps
    losses: pd.DataFrame  # measured stops
    gap_s: np.ndarray  # (N,) real gap to the winner, for cars on the lead lap
    forecast_pct: np.ndarray  # (N,) race pace [% of a lap] from qualifying and earlier races
    forecast_seasons_pct: np.ndarray  # (N,) the same from qualifying and earlier seasons only
    qualifying_pct: np.ndarray
    half_fit: RaceFit | None


def validate(evidence: Evidence, results: pd.DataFrame, qualifying: pd.DataFrame, calendar: pd.DataFrame,
             episodes: int = EPISODES, orders: bool = True) -> pd.DataFrame:
    """Build the rows of `sim.validation`.

    Args:
        evidence: Evidence of all races.
        results, qualifying, calendar: Rows of `race.results` (newest versions), `race.qualifying` (session
            `qualifying`) and `race.calendar`.
        episodes: Simulated races per real race and method; their mean places give the order.
        orders: False skips the replays and gives only the lap times.
    """
    terms = term_values(evidence.fits, evidence.circuit)
    clean = evidence.staged[evidence.staged["clean"] & evidence.staged["weekend"].isin(list(evidence.fits))]
    rows = [lap_errors(clean, evidence.distance, terms, evidence.circuit)]
    if orders:
        rows.append(pd.DataFrame([row for case in replayable(evidence, results, qualifying, calendar)
                                  for row in race_rows(case, episodes)]))
    frame = pd.concat(rows, ignore_index=True)
    return VALIDATION.conform(frame.reindex(columns=VALIDATION.column_names))


def replayable(evidence: Evidence, results: pd.DataFrame, qualifying: pd.DataFrame,
               calendar: pd.DataFrame) -> Iterator[ReplayCase]:
    """Yield the dry races without a red flag since 2019, with the inputs of their replays."""
    staged = evidence.staged
    red_flagged = set(staged.loc[staged["red"], "weekend"])
    all_seasons = {(row.circuit, row.season): circuit_parameters(row._asdict())
                   for row in circuit_rows(evidence, calendar).itertuples()}
    starters = results[results["grid_position"].notna()][["weekend", "driver", "constructor"]].astype(object)
    order = sorted(evidence.race_order, key=lambda weekend: evidence.race_order[weekend])
    entries = qualifying_gaps(qualifying.astype({"weekend": object, "driver": object}), starters, order)
    paces = race_pace(evidence.fits)
    latest, earlier_seasons = (with_form(entries, paces, earlier_seasons_only=only) for only in (False, True))
    terms = term_values(evidence.fits, evidence.circuit)
    place = calendar.set_index("weekend")["circuit"]
    for season in sorted({int(weekend[:4]) for weekend in evidence.fits}):
        if season < FIRST_SEASON or not any(int(weekend[:4]) < season for weekend in evidence.fits):
            continue
        rows = circuit_rows(evidence.before(season), calendar[calendar["season"] == season], pooled_prior)
        earlier = {row.circuit: circuit_parameters(row._asdict()) for row in rows.itertuples()}
        priors = TermPriors(terms, season)
        forecasts = latest.assign(forecast=forecast_pace(latest, season),
                                  forecast_seasons=forecast_pace(earlier_seasons, season))
        for weekend in sorted(w for w in evidence.fits if int(w[:4]) == season and w not in red_flagged):
            laps = staged[staged["weekend"] == weekend]
            classification = results[results["weekend"] == weekend]
            real = real_race(laps, classification, str(place[weekend]), evidence.distance[weekend])
            cars = forecasts[forecasts["weekend"] == weekend].set_index("driver").reindex(list(real.drivers))
            yield ReplayCase(
                real, evidence.fits[weekend], all_seasons[real.circuit, season], earlier[real.circuit], laps,
                evidence.losses[evidence.losses["weekend"] == weekend],
                classification.set_index("driver")["gap_s"].reindex(list(real.drivers)).to_numpy(
                    "float64", na_value=np.nan),
                cars["forecast"].to_numpy(float), cars["forecast_seasons"].to_numpy(float),
                cars["qualifying_pct"].to_numpy(float),
                _half_fit(laps, real.laps, priors.of(evidence.circuit[weekend])))


def race_rows(case: ReplayCase, episodes: int) -> Iterator[dict[str, Any]]:
    """Yield the row of each method for one race."""
    real, fit, half, earlier = case.real, case.fit, case.real.laps // 2, case.earlier
    own, pace = own_circuit(case.circuit, real, fit), pace_of(real, fit)
    percent_s = earlier.base_lap_s / 100
    forecast, gap = case.forecast_pct * percent_s, case.qualifying_pct * 0.75 * percent_s
    yield _row(case, "grid", np.arange(len(real.drivers)))
    yield _row(case, "pace_rank", pace)
    yield _row(case, "replay_fitted", replay(real, own, pace, episodes), own)
    yield _row(case, "replay_fitted_noise_free", replay(real, own, pace, 1, engine=NOISE_FREE), own)
    extra = stop_extra_s(real, own, case.losses)
    yield _row(case, "replay_fitted_lap_1", replay(real, own, pace, episodes, first=1, stop_extra_s=extra), own)
    if case.half_fit is not None:
        circuit, half_pace = own_circuit(earlier, real, case.half_fit), pace_of(real, case.half_fit, forecast)
        yield _row(case, "half_order", _at_line(real, half))
        yield _row(case, "replay_half", replay(real, circuit, half_pace, episodes, first=half), circuit)
    yield _row(case, "qualifying_rank", case.qualifying_pct)
    yield _row(case, "ex_ante_rank", forecast)
    yield _row(case, "replay_ex_ante", replay(real, earlier, forecast, episodes), earlier)
    seasons = case.forecast_seasons_pct * percent_s
    yield _row(case, "replay_ex_ante_seasons", replay(real, earlier, seasons, episodes), earlier)
    yield _row(case, "replay_ex_ante_no_stops", replay(real, earlier, forecast, episodes, stops=False), earlier)
    yield _row(case, "replay_qualifying", replay(real, earlier, gap, episodes), earlier)


def own_circuit(circuit: CircuitParameters, real: RealRace, fit: RaceFit) -> CircuitParameters:
    """Replace the circuit's base lap, trend, tyres and scatter by those fitted on one race."""
    term = dict(zip(TERMS, fit.terms, strict=True))
    burn = circuit.fuel_burn_kg_per_lap * circuit.race_laps / real.laps
    return replace(
        circuit, base_lap_s=_median_pace(fit), fuel_burn_kg_per_lap=burn, race_laps=real.laps,
        track_trend_s_per_lap=term["trend"] + burn * circuit.fuel_effect_s_per_kg, lap_scatter_s=fit.scatter_s,
        compound_offset_s=(term["offset_soft"], 0.0, term["offset_hard"], *circuit.compound_offset_s[3:]),
        degradation_s_per_lap=(term["slope_soft"], term["slope_medium"], term["slope_hard"],
                               *circuit.degradation_s_per_lap[3:]))


def pace_of(real: RealRace, fit: RaceFit, unknown_s: np.ndarray | float = UNKNOWN_PACE_S) -> np.ndarray:
    """(N,) fitted pace against the median car [s/lap]; `unknown_s` for cars without enough clean laps."""
    median, unknown = _median_pace(fit), np.broadcast_to(unknown_s, len(real.drivers))
    return np.array([fit.pace_s[d] - median if fit.laps_of.get(d, 0) >= LEAST_LAPS else unknown[n]
                     for n, d in enumerate(real.drivers)])


def stop_extra_s(real: RealRace, circuit: CircuitParameters, losses: pd.DataFrame) -> np.ndarray:
    """(L, N) loss of each real stop beyond the circuit's [s]; 0 if not measured."""
    extra = np.zeros(real.pit.shape)
    usual = {GREEN: circuit.stop_loss_green_s, VSC: circuit.stop_loss_vsc_s, SC: circuit.stop_loss_sc_s}
    for stop in losses.itertuples():
        if stop.driver in real.drivers and stop.lap <= real.laps:
            lap = stop.lap - 1
            extra[lap, real.drivers.index(stop.driver)] = stop.loss_s - usual.get(int(real.status[lap]), 0.0)
    return extra


def summarise(validation: pd.DataFrame) -> pd.DataFrame:
    """Build the rows of `sim.validation_summary`: means over races for orders, medians for times."""
    peer = validation["weekend"].str.startswith("2019") & ~validation["weekend"].isin(PEER_2019_LEFT_OUT) \
        & validation["spearman"].notna()
    rows = []
    for races, frame in (("all", validation), (PEER, validation[peer])):
        for method, of_method in frame.groupby("method"):
            means = {name: of_method[name].dropna().mean() for name in ("spearman", "places_off", "winner_right")}
            medians = {name: of_method[name].dropna().median() if of_method[name].notna().any() else None
                       for name in ("gap_error_s", "lap_mae_s", "lap_rmse_s", "stop_error_s")}
            errors = {f"{name}_se": of_method[name].dropna().sem() for name in ("spearman", "places_off")}
            order = TARGETS.get((method, races), (None, None))
            rows.append({
                "method": method, "races": races, "n_races": len(of_method),
                "real_inputs": of_method["real_inputs"].iloc[0], **means, **medians, **errors,
                "n_laps": of_method["n_laps"].sum() if of_method["n_laps"].notna().any() else None,
                "target_spearman": order[0], "target_places_off": order[1],
                "target_lap_mae_s": LAP_TARGETS.get(method) if races == "all" else None})
    return VALIDATION_SUMMARY.conform(pd.DataFrame(rows).reindex(columns=VALIDATION_SUMMARY.column_names))


def _row(case: ReplayCase, method: str, result: Replay | np.ndarray,
         circuit: CircuitParameters | None = None) -> dict[str, Any]:
    real = case.real
    order = result.mean_place if isinstance(result, Replay) else result
    row = {"weekend": real.weekend, "method": method, "real_inputs": INPUTS[method],
           "n_finishers": int(real.finishers.sum()), **order_scores(order, real.finish)}
    if isinstance(result, Replay) and circuit is not None:
        row |= {"gap_error_s": gap_error_s(result, case.gap_s), "episodes": len(result.place),
                "engine_version": ENGINE_VERSION, "stop_error_s": stop_error_s(case.losses, circuit)}
        if method in ("replay_half", "replay_ex_ante"):  # the other methods were fitted on these laps
            row |= lap_errors_of(result, real, case.laps)
    return row


def _half_fit(laps: pd.DataFrame, distance: int, prior: Prior | None) -> RaceFit | None:
    first_half = laps[laps["lap"] <= distance // 2]
    clean = first_half[clean_laps(first_half)]
    return fit_race(clean, distance / 2, prior) if len(clean) else None


def _at_line(real: RealRace, lap: int) -> np.ndarray:
    """(N,) session clock at the end of a lap; cars without a time are last."""
    return np.nan_to_num(real.line_s[lap - 1], nan=1e9)


def _median_pace(fit: RaceFit) -> float:
    paces = [p for d, p in fit.pace_s.items() if fit.laps_of[d] >= LEAST_LAPS]
    return float(np.median(paces or list(fit.pace_s.values())))

