"""The simplest possible fit on the sample's laps recovers the parameters they were driven with."""
from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.identity.line_ups import embedded_weekends
from f1_pipelines.sim import EngineParameters
from f1_pipelines.sources.sample import true_parameters

MIN_LAPS = 350  # clear laps in free air for a fit of a race
MIN_STOPS = 10  # under green; fewer say little, because a stuck wheel nut costs ten seconds
SLICKS = ("SOFT", "MEDIUM", "HARD")
ENGINE = EngineParameters()


@pytest.fixture(scope="module")
def fits(all_tables) -> pd.DataFrame:
    """By weekend: fitted and true slope of the compound with most laps, base lap and green stop loss."""
    rows = []
    for key, laps in all_tables["race.laps"].groupby("weekend"):
        if not laps["compound"].isin(SLICKS).all() or (laps["track_status"] == "5").any():
            continue
        staged, truth = _staged(laps), true_parameters(embedded_weekends()[key])
        if staged["free"].sum() >= MIN_LAPS:
            compound, slope, base = _fit(staged[staged["free"]], truth.race_laps)
            rows.append({
                "weekend": key, "slope": slope, "true_slope": truth.degradation_s_per_lap[SLICKS.index(compound)],
                "base": base, "true_base": truth.base_lap_s, "stop": _stop_loss(staged),
                "true_stop": truth.stop_loss_green_s})
    assert len(rows) > 30
    return pd.DataFrame(rows).set_index("weekend")


def test_true_parameters_are_one_per_circuit_and_season_and_not_the_priors():
    from f1_pipelines.sim import circuit_prior
    bahrain = true_parameters(embedded_weekends()["2024-bahrain"])
    assert bahrain == true_parameters(embedded_weekends()["2024-bahrain"])
    assert bahrain.provenance == "sample"
    assert bahrain.base_lap_s != true_parameters(embedded_weekends()["2025-bahrain"]).base_lap_s
    assert bahrain.degradation_s_per_lap != circuit_prior("bahrain", 2024).degradation_s_per_lap


def test_stop_losses_come_back(fits):
    error = (fits["stop"] - fits["true_stop"]).dropna()
    assert len(error) > 30
    # A race has about fifteen green stops, and one in ten loses seconds: a single median may be 2 s off.
    assert abs(error.median()) < 0.5 and error.abs().median() < 0.8, error
    assert fits["stop"].corr(fits["true_stop"]) > 0.9


def test_degradation_comes_back_in_sign_and_size(fits):
    assert (fits["slope"] > 0).all()
    error = fits["slope"] - fits["true_slope"]
    assert error.abs().max() < 0.03 and abs(error.mean()) < 0.005, error
    assert fits["slope"].corr(fits["true_slope"]) > 0.85


def test_base_pace_comes_back(fits):
    error = fits["base"] - fits["true_base"]  # the fit gives mean laps, which are slower than the true median
    assert error.abs().max() < 1.0 and abs(error.mean()) < 0.4, error


def _staged(laps: pd.DataFrame) -> pd.DataFrame:
    """Laps with wear and fuel counted as in the engine (less behind a safety car), and whether they are `free`: green,
    undisturbed, and no car within three seconds."""
    plain = laps.sort_values(["driver", "lap"], ignore_index=True)
    plain = plain.astype({"lap_time_s": float, "session_time_s": float, "tyre_age_laps": int, "lap": int})
    sc, vsc = plain["track_status"] == "4", plain["track_status"].str.contains("6")
    wear = pd.Series(np.where(sc, ENGINE.wear_sc, np.where(vsc, ENGINE.wear_vsc, 1.0)))
    fuel = pd.Series(np.where(sc, ENGINE.fuel_sc, np.where(vsc, ENGINE.fuel_vsc, 1.0)))
    gap = plain.sort_values("session_time_s")["session_time_s"].diff().reindex(plain.index)
    slow = sc | vsc
    clear = ~slow & ~slow.groupby(plain["driver"]).shift(fill_value=False) & plain["is_accurate"].astype(bool)
    alone = ~(gap.groupby(plain["driver"]).shift() < 3.0)
    return plain.assign(
        wear_laps=wear.groupby([plain["driver"], plain["stint"]]).cumsum() - wear,
        fuel_laps=fuel.groupby(plain["driver"]).cumsum() - fuel, clear=clear,
        free=clear & alone & (plain["lap"] > 2) & (plain["tyre_age_laps"] > 2))


def _fit(free: pd.DataFrame, distance: int) -> tuple[str, float, float]:
    """Least squares in free air: driver, trend, offset and slope by compound; repeated without outliers.

    Returns:
        The compound with most laps, its slope [s/lap], and the median car's lap at half distance on a new set [s].
    """
    for _ in range(3):
        drivers, compounds = sorted(free["driver"].unique()), free["compound"].value_counts().index.tolist()
        columns = [free["driver"].eq(name) for name in drivers] + [free["fuel_laps"] - distance / 2]
        columns += [free["compound"].eq(name) for name in compounds[1:]]
        columns += [free["compound"].eq(name) * free["wear_laps"] for name in compounds]
        x = np.column_stack([np.asarray(column, dtype=float) for column in columns])
        coef = np.linalg.lstsq(x, free["lap_time_s"].to_numpy(), rcond=None)[0]
        rest = np.abs(free["lap_time_s"].to_numpy() - x @ coef)
        free = free[rest < 3.0 * 1.4826 * np.median(rest)]
    return compounds[0], float(coef[-len(compounds)]), float(np.median(coef[:len(drivers)]))


def _stop_loss(laps: pd.DataFrame) -> float:
    """Median over green stops of in-lap plus out-lap, less the medians of the clear laps before and after [s]."""
    losses = []
    for _, car in laps.groupby("driver"):
        time, clear = car["lap_time_s"].to_numpy(), car["clear"].to_numpy()
        green = (car["track_status"] == "1").to_numpy()
        for n in np.flatnonzero(car["is_pit_in"].to_numpy()):
            before = [m for m in range(max(n - 4, 0), n) if clear[m]]
            after = [m for m in range(n + 2, min(n + 6, len(time))) if clear[m]]
            if green[n:n + 2].all() and n + 1 < len(time) and len(before) > 1 and len(after) > 1:
                losses.append(time[n] + time[n + 1] - np.median(time[before]) - np.median(time[after]))
    return float(np.median(losses)) if len(losses) >= MIN_STOPS else float("nan")
