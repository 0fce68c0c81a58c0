"""Properties of both models, trained or not."""
import numpy as np
import pandas as pd
import pytest
import torch

from f1_pipelines.models.batch import to_batch
from f1_pipelines.models.config import F1NET, RANKER
from f1_pipelines.models.f1net import drop_to_unknown
from f1_pipelines.models.ranker import in_race
from f1_pipelines.models.trained import TrainedRanker, fresh_model
from f1_pipelines.models.vocabulary import UNKNOWN, Vocabulary


@pytest.fixture(params=[RANKER, F1NET], ids=lambda config: config.model)
def untrained(request, seasons) -> TrainedRanker:
    """A model with random weights and the vocabularies of the seasons."""
    torch.manual_seed(1)
    drivers, constructors = Vocabulary.of(seasons["driver"]), Vocabulary.of(seasons["constructor"])
    model = fresh_model(request.param, drivers, constructors).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(torch.randn_like(weights) * 0.3)  # the linear weights of a new ranker are 0
    return TrainedRanker(model, request.param, drivers, constructors, (2022,), "2022-race-00", "2022-race-11", 12)


@pytest.fixture
def race(seasons) -> pd.DataFrame:
    return seasons[seasons["weekend"] == "2022-race-02"].reset_index(drop=True)


def test_reordering_a_grid_reorders_its_scores(untrained, race):
    shuffled = race.sample(frac=1, random_state=3)
    expected = pd.Series(untrained.scores(race), index=race["driver"])
    scores = pd.Series(untrained.scores(shuffled), index=shuffled["driver"])
    np.testing.assert_allclose(scores[expected.index], expected, rtol=1e-5, atol=1e-6)
    assert expected.nunique() == len(race)

    numeric, driver, constructor, entered = untrained.batch(race).inputs()
    permutation = torch.randperm(len(race), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        unpermuted = untrained.model(numeric, driver, constructor, entered)
        permuted = untrained.model(*(part[:, permutation] for part in (numeric, driver, constructor, entered)))
    torch.testing.assert_close(permuted, unpermuted[:, permutation], rtol=1e-5, atol=1e-6)


def test_an_empty_slot_changes_nothing(untrained, race):
    numeric, driver, constructor, entered = untrained.batch(race).inputs()
    pad = (0, 3)
    wide = (torch.nn.functional.pad(numeric, (0, 0, *pad), value=7.0), torch.nn.functional.pad(driver, pad, value=1),
            torch.nn.functional.pad(constructor, pad, value=1), torch.nn.functional.pad(entered, pad, value=False))
    with torch.inference_mode():
        scores, padded = untrained.model(numeric, driver, constructor, entered), untrained.model(*wide)
    torch.testing.assert_close(padded[:, :-3], scores, rtol=1e-5, atol=1e-6)
    assert (padded[:, -3:] == float("-inf")).all()


@pytest.mark.parametrize("cars", [1, 2, 18, 22, 26])
def test_any_number_of_cars_in_one_batch_or_alone(untrained, planted, cars):
    races = planted({2022: 2}, seed=cars, cars=(min(cars, 24), 20))
    together = untrained.scores(races)
    alone = np.concatenate([untrained.scores(race) for _, race in races.groupby("weekend")])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-6)
    assert np.isfinite(together).all()


def test_unknown_drivers_and_teams_get_finite_scores(untrained, race):
    known = untrained.scores(race)
    scores = untrained.scores(race.assign(driver=[f"new-{name}" for name in race["driver"]], constructor="new-team"))
    assert np.isfinite(scores).all()
    assert (untrained.config is RANKER) == np.allclose(scores, known, atol=1e-6)


@pytest.mark.parametrize("missing", ["all", "half", "one"])
def test_scores_with_unknown_inputs_are_finite(untrained, race, missing):
    features = list(untrained.config.features)
    columns = {"all": features, "half": features[::2], "one": features[:1]}[missing]
    scores = untrained.scores(race.assign(**dict.fromkeys(columns, pd.NA)))
    assert np.isfinite(scores).all()
    inputs_only = race.drop(columns=["official_order", "classified", "started", "season", "race_start"])
    np.testing.assert_allclose(untrained.scores(inputs_only), untrained.scores(race))


def test_our_ranker_standardises_inputs_within_the_race(race, seasons):
    batch = to_batch(race, RANKER.features, Vocabulary(()), Vocabulary(()))
    values = in_race(batch.numeric, batch.entered, as_places=(5,))
    rescaled = in_race(batch.numeric * 3 + 40, batch.entered, as_places=(5,))
    torch.testing.assert_close(rescaled, values, rtol=1e-3, atol=1e-4)
    assert (values[~batch.known] == 0).all()
    known = batch.known[0, :, 0]
    assert values[0, known, 0].mean().item() == pytest.approx(0, abs=1e-5)
    assert values[0, known, 0].std().item() == pytest.approx(1, abs=1e-4)
    equal = in_race(torch.full((1, 20, 2), 0.1), torch.ones(1, 20, dtype=torch.bool))
    assert (equal == 0).all()


def test_an_input_taken_as_places_ignores_the_size_of_gaps():
    numeric = torch.tensor([[[1.0], [2.0], [3.0], [float("nan")], [900.0]]])
    entered = torch.tensor([[True, True, True, True, True]])
    near = in_race(torch.where(numeric > 100, 4.0, numeric), entered, as_places=(0,))
    torch.testing.assert_close(in_race(numeric, entered, as_places=(0,)), near)


def test_batches_sort_races_by_time_and_driver_and_map_back_to_rows(seasons):
    shuffled = seasons.sample(frac=1, random_state=0)
    batch = to_batch(shuffled, ("grid_position",), Vocabulary.of(seasons["driver"]), Vocabulary(()))
    assert list(batch.weekends) == list(dict.fromkeys(seasons.sort_values("race_start")["weekend"]))
    assert batch.entered.sum(dim=1).tolist() == list(seasons.groupby("weekend").size())
    np.testing.assert_array_equal(batch.rows(batch.order), shuffled["official_order"].astype("float64"))
    np.testing.assert_array_equal(batch.rows(batch.driver), Vocabulary.of(seasons["driver"]).rows(shuffled["driver"]))
    assert (batch.constructor == UNKNOWN).all()
    assert batch.known.sum().item() == shuffled["grid_position"].notna().sum()


def test_an_empty_frame_has_no_scores(untrained, race):
    assert untrained.scores(race.head(0)).shape == (0,)


def test_a_driver_entered_twice_and_a_frame_without_features_are_refused(race):
    with pytest.raises(ValueError, match="entered twice"):
        to_batch(pd.concat([race, race.head(1)]), RANKER.features, Vocabulary(()), Vocabulary(()))
    with pytest.raises(KeyError, match="grid_place"):
        to_batch(race.drop(columns="grid_place"), RANKER.features, Vocabulary(()), Vocabulary(()))


def test_one_id_in_ten_is_replaced_by_the_unknown_id():
    rows = torch.ones(100, 100, dtype=torch.long)
    dropped = drop_to_unknown(rows, 0.1, torch.Generator().manual_seed(0))
    assert (dropped == UNKNOWN).float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert (drop_to_unknown(rows, 0.0, torch.Generator()) == rows).all()
