from __future__ import annotations

import pytest

from f1_pipelines.sim.environment.environment import RaceEnvironment


@pytest.fixture
def env() -> RaceEnvironment:
    return RaceEnvironment()
