"""The real seasons with their outcome, as predictors are judged on them."""
import pandas as pd
import pytest

from f1_pipelines.evaluation.targets import with_targets


@pytest.fixture(scope="session")
def races(real, real_features) -> pd.DataFrame:
    return with_targets(real_features, real["results"])
