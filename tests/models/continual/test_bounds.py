"""The stored mean Spearman of a link stays within -1 and 1 for any number of races."""
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.models.continual.chain import mean_spearman


@pytest.mark.parametrize("races", [1, 3, 7, 10, 21, 24, 49, 103])
@pytest.mark.parametrize("sign", [1, -1])
def test_perfect_and_reversed_races_have_a_mean_of_exactly_one(races, sign):
    rng = np.random.default_rng(races)
    rows = pd.concat([pd.DataFrame({"weekend": f"2025-{race}", "official_order": rng.permutation(cars) + 1})
                      for race, cars in enumerate(rng.choice([2, 3, 10, 19, 20, 22], races))], ignore_index=True)
    ranker = SimpleNamespace(scores=lambda race: -sign * race["official_order"].to_numpy("float32"))
    assert mean_spearman(ranker, rows.astype({"official_order": "Int32"})) == sign
