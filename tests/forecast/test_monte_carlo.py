"""Simulated races work for any field size, are reproducible, and put faster cars ahead."""
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from f1_pipelines.forecast.monte_carlo import FieldPace, RaceField, circuit_for, learn_pace, simulate
from f1_pipelines.identity.weekends import weekend
from f1_pipelines.sim import circuit_prior

MONZA = weekend("2025-italy")
PACE = FieldPace(0.35)


def field(cars: int, start: np.ndarray | None = None, name: str = "a") -> RaceField:
    scores = np.linspace(2.0, -2.0, cars) if cars > 1 else np.zeros(1)
    return RaceField(name, scores, np.arange(1.0, cars + 1) if start is None else start,
                     tuple(f"team-{n // 2}" for n in range(cars)), tuple(f"driver-{n:02d}" for n in range(cars)))


@pytest.fixture(scope="module")
def circuit():
    return replace(circuit_for(MONZA, {}), race_laps=12, cliff_laps=(60.0,) * 5)


@pytest.mark.parametrize("cars", [1, 2, 3, 19, 22, 26])
def test_every_simulated_race_is_a_permutation_of_places(circuit, cars):
    places = simulate(field(cars), MONZA, circuit, PACE, races=30)
    assert (np.sort(places, axis=1) == np.arange(1, cars + 1)).all()


def test_the_same_name_gives_the_same_races_for_any_batch_size(circuit, monkeypatch):
    expected = simulate(field(6), MONZA, circuit, PACE, races=60)
    monkeypatch.setattr("f1_pipelines.forecast.monte_carlo.BATCH", 17)
    assert (simulate(field(6), MONZA, circuit, PACE, races=60) == expected).all()
    assert (simulate(field(6, name="b"), MONZA, circuit, PACE, races=60) != expected).any()


def test_a_higher_score_and_a_better_grid_slot_finish_further_ahead(circuit):
    places = simulate(field(10), MONZA, circuit, PACE, races=200).mean(axis=0)
    assert places[0] < places[4] < places[9]
    reverse = simulate(field(10, np.arange(10.0, 0.0, -1.0)), MONZA, circuit, PACE, races=200).mean(axis=0)
    assert reverse[0] > places[0]
    even = simulate(field(10), MONZA, circuit, FieldPace(0.0), races=200).mean(axis=0)
    assert places[0] < even[0]


def test_an_unknown_grid_is_sampled_from_the_scores(circuit):
    unknown = simulate(field(10, np.full(10, np.nan)), MONZA, circuit, PACE, races=200).mean(axis=0)
    assert unknown[0] < unknown[9]
    one_missing = simulate(field(10, np.array([np.nan, *range(1, 10)])), MONZA, circuit, PACE, races=200).mean(axis=0)
    assert one_missing[0] > unknown[0], "a car without a slot starts last"


def test_the_pace_per_score_is_recovered_from_the_gaps_at_the_flag():
    rng, rows, results = np.random.default_rng(0), [], []
    for race in range(12):
        score = rng.normal(size=20)
        time_s = 5400 * (1 + (-0.4 * score + 0.05 * rng.normal(size=20)) / 100)
        order = time_s.argsort().argsort() + 1
        drivers = [f"driver-{n:02d}" for n in range(20)]
        rows.append(pd.DataFrame({"weekend": f"w{race:02d}", "driver": drivers, "score": score}))
        results.append(pd.DataFrame({
            "weekend": f"w{race:02d}", "driver": drivers, "official_order": order, "finish_position": order,
            "status": "finished", "points": 0.0, "laps": 57, "race_time_s": time_s, "gap_s": time_s - time_s.min(),
            "gap_laps": np.nan, "fastest_lap_s": 90.0}))
    frame = pd.concat(rows, ignore_index=True)
    pace = learn_pace(frame, frame["score"].to_numpy(), pd.concat(results, ignore_index=True))
    assert pace.pct_per_score == pytest.approx(0.4, abs=0.02)
    one_race = frame[frame["weekend"] == "w00"]
    with pytest.raises(ValueError, match=r"20 cars have a gap at the flag \(needs 100\)"):
        learn_pace(one_race, one_race["score"].to_numpy(), results[0])


def test_a_fitted_circuit_comes_before_its_prior_and_has_the_distance_of_the_weekend():
    fitted = replace(circuit_prior("monza", 2025), base_lap_s=70.0, provenance="fitted", race_laps=30)
    circuit = circuit_for(MONZA, {"monza": fitted})
    assert (circuit.provenance, circuit.base_lap_s) == ("fitted", 70.0)
    assert circuit.race_laps == circuit_for(MONZA, {}).race_laps == 53
    assert circuit.fuel_burn_kg_per_lap * 53 == pytest.approx(fitted.fuel_burn_kg_per_lap * 30)
    assert circuit_for(MONZA, {}).provenance == "circuit_prior"
