"""Small pretrained rankers, and a later season with two new drivers and two new team names."""
from dataclasses import replace

import pandas as pd
import pytest

from f1_pipelines.models.config import F1NET, RANKER
from f1_pipelines.models.continual.fisher import fisher_information
from f1_pipelines.models.continual.update import LearntState
from f1_pipelines.models.training import train


@pytest.fixture(scope="session", params=[RANKER, F1NET], ids=lambda config: config.model)
def pretrained(request, seasons) -> LearntState:
    trained, _ = train(seasons, replace(request.param, epochs=5, lr=3e-3, seasons=None))
    return LearntState(trained, fisher_information(trained, seasons))


@pytest.fixture(scope="session")
def f1net(seasons) -> LearntState:
    trained, _ = train(seasons, replace(F1NET, epochs=5, lr=3e-3, seasons=None))
    return LearntState(trained, fisher_information(trained, seasons))


@pytest.fixture(scope="session")
def known_season(planted) -> pd.DataFrame:
    """Eight races of 2025 with known drivers and teams."""
    return planted({2025: 8}, seed=4)


@pytest.fixture(scope="session")
def new_season(known_season) -> pd.DataFrame:
    """The same races with two new drivers, a new team and a renamed team."""
    return known_season.replace({
        "driver": {"driver-03": "a-newcomer", "driver-17": "z-newcomer"},
        "constructor": {"team-2": "team-2-renamed", "team-9": "a-new-team"}})
