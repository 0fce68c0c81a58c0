"""Real seasons with their outcomes, for evaluation of predictors."""
import pandas as pd
import pytest

from f1_pipelines.evaluation.targets import with_targets


@pytest.fixture(scope="session")
def races(real, real_features) -> pd.DataFrame:
    return with_targets(real_features, real["results"])
