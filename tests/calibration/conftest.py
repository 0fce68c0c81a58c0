"""Real races of three seasons, measured once, and synthetic laps from known parameters."""
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.calibration.evidence import Evidence, gather
from f1_pipelines.identity.weekends import season_weekends
from f1_pipelines.sources.laps_archive import LapsArchive

SEASONS = (2022, 2023, 2024)


@dataclass(frozen=True)
class RealSeasons:
    laps: pd.DataFrame
    results: pd.DataFrame
    pit_stops: pd.DataFrame
    qualifying: pd.DataFrame
    calendar: pd.DataFrame
    evidence: Evidence


@pytest.fixture(scope="session")
def real(shared, f1db) -> RealSeasons:
    weekends = [w for season in SEASONS for w in season_weekends(season)]
    laps = LapsArchive(shared / "data" / "laps").laps(weekends).tables["race.laps"]
    tables = f1db.results(weekends).tables
    qualifying = f1db.qualifying(weekends).tables["race.qualifying"]
    calendar = f1db.calendar(range(2022, 2027))  # without laps of 2025 and 2026: their rows come from these seasons
    return RealSeasons(
        laps, tables["race.results"], tables["race.pit_stops"], qualifying[qualifying["session"] == "qualifying"],
        calendar, gather(laps, tables["race.results"], tables["race.pit_stops"], calendar))


@dataclass(frozen=True)
class Truth:
    """Parameters of the synthetic race: terms in the order of `lap_model.TERMS`, no traffic (cars are far apart)."""

    trend: float = -0.06
    offsets: tuple[float, float] = (-0.3, 0.25)  # soft, hard
    slopes: tuple[float, float, float] = (0.09, 0.06, 0.03)
    scatter_s: float = 0.25
    stop_s: float = 21.5
    laps: int = 50


@pytest.fixture(scope="session")
def truth() -> Truth:
    return Truth()


@pytest.fixture(scope="session")
def synthetic_laps():
    """Function: truth, weekend, seed, cars -> rows of `race.laps`."""
    return make_laps


def make_laps(truth: Truth, weekend: str = "2024-testland", seed: int = 0, cars: int = 12) -> pd.DataFrame:
    """Rows of `race.laps`: each car stops once, on its own lap; about one lap in 20 has a mistake."""
    rng = np.random.default_rng(seed)
    compounds = ["SOFT", "MEDIUM", "HARD"]
    rows = []
    for car in range(cars):
        pace, stop = 90.0 + 0.15 * car, 15 + 2 * car
        clock, sets = 3600.0 + 12.0 * car, (compounds[car % 3], compounds[(car + 1 + car // 3) % 3])
        for lap in range(1, truth.laps + 1):
            stint = 1 if lap <= stop else 2
            compound, age = sets[stint - 1], lap - 1 if stint == 1 else lap - stop - 1
            k = compounds.index(compound)
            time = (pace + truth.trend * (lap - truth.laps / 2) + (truth.offsets[0], 0.0, truth.offsets[1])[k]
                    + truth.slopes[k] * age + rng.normal(0, truth.scatter_s))
            time += rng.exponential(2.0) if rng.random() < 0.05 else 0.0
            time += truth.stop_s * (0.2 if lap == stop else 0.8) if lap in (stop, stop + 1) else 0.0
            clock += time
            rows.append((weekend, f"driver-{car:02d}", lap, time, compound, age + 1, stint, "1", car + 1, lap == stop,
                         lap == stop + 1, True, clock))
    return pd.DataFrame(rows, columns=[
        "weekend", "driver", "lap", "lap_time_s", "compound", "tyre_age_laps", "stint", "track_status", "position",
        "is_pit_in", "is_pit_out", "is_accurate", "session_time_s"])
