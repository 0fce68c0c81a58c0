"""Synthetic seasons whose finishing orders follow a planted signal."""
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.features.ranking import CORE_FEATURES, REFERENCE_FEATURES

DRIVERS = [f"driver-{number:02d}" for number in range(24)]


def planted_races(
    seasons: dict[int, int], seed: int = 0, cars: tuple[int, ...] = (20, 19, 22, 18), noise: float = 0.3,
) -> pd.DataFrame:
    """Rows as from `with_targets`, not in order of the result.

    `seasons` maps a season to its number of races. The order is by `qualifying_gap_pct` and `driver_finish_form` (for
    F1Net `delta_to_pole_s` and `mean_last3_finish`, the same numbers) plus noise; all other features are noise, and one
    in ten values is missing.
    """
    rng = np.random.default_rng(seed)
    races = []
    for season, count in seasons.items():
        for number in range(count):
            size = cars[number % len(cars)]
            field = rng.choice(DRIVERS, size, replace=False)
            signal, form = rng.normal(size=size), rng.normal(size=size)
            race = pd.DataFrame({name: rng.normal(size=size) for name in sorted({*CORE_FEATURES, *REFERENCE_FEATURES})})
            race = race.mask(rng.random(race.shape) < 0.1)
            race["qualifying_gap_pct"] = race["delta_to_pole_s"] = signal
            race["driver_finish_form"] = race["mean_last3_finish"] = form
            order = pd.Series(signal + 0.7 * form + noise * rng.normal(size=size)).rank()
            race = race.astype("Float64").assign(
                weekend=f"{season}-race-{number:02d}", season=season, driver=field,
                race_start=pd.Timestamp(season, 1, 1, tz="UTC") + pd.Timedelta(days=7 * number),
                constructor=[f"team-{int(name[-2:]) // 2}" for name in field], official_order=order.astype("Int32"),
                source="planted", stage="grid", started=True, classified=order <= size - rng.integers(0, 4))
            races.append(race.sort_values("driver"))
    return pd.concat(races, ignore_index=True)


@pytest.fixture(scope="session")
def planted() -> Callable[..., pd.DataFrame]:
    return planted_races


@pytest.fixture(scope="session")
def seasons() -> pd.DataFrame:
    """2022 to 2024, 12 races each."""
    return planted_races({2022: 12, 2023: 12, 2024: 12})
