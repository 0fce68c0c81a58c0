"""Regret: its races equal those of the environment, and its parts add up."""
from __future__ import annotations

import numpy as np
import pytest

from f1_pipelines.engineer.evaluation.regret import regret_of
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.scenarios import FAMILIES, make_scenario
from f1_pipelines.sim.scoring.dimensions import DIMENSIONS, WEIGHTS


def score_of(scenario, outputs) -> dict[str, float]:
    environment, done = RaceEnvironment(), False
    environment.begin(scenario)
    for output in outputs:
        if not done:
            done = environment.step(output).done
    return environment.score.as_dict()


@pytest.mark.parametrize(("family", "policy"), list(zip(FAMILIES, (
    "stay_out", "random", "keyword_radio", "fixed_stop", "expert", "done"), strict=True)))
def test_every_race_of_a_regret_equals_the_environments(family, policy, calls_of):
    scenario = make_scenario(family, 3)
    outputs = calls_of(scenario, policy)
    regret = regret_of(scenario, outputs)
    oracle = [str(command) for command in regret.oracle]
    assert len(regret.values) == scenario.laps + 1 and len(oracle) == scenario.laps
    for lap in range(scenario.laps + 1):
        expected = score_of(scenario, [*outputs[:lap], *oracle[lap:]] if "DONE" not in outputs[:lap] else outputs)
        assert regret.values[lap] == pytest.approx(expected["score"], abs=1e-9)
        assert regret.parts[lap] == pytest.approx([WEIGHTS[name] * expected[name] for name in DIMENSIONS], abs=1e-9)
    assert regret.by_lap.sum() == pytest.approx(regret.total) == pytest.approx(
        score_of(scenario, oracle)["score"] - score_of(scenario, outputs)["score"])


def test_the_oracle_regrets_nothing():
    scenario = make_scenario("late_safety_car", 1)
    oracle = regret_of(scenario, []).oracle
    assert np.abs(regret_of(scenario, oracle).by_lap).max() == 0


def test_an_unparsed_output_stays_out_and_costs_more():
    scenario = make_scenario("late_safety_car", 3)
    idle = ["STAY_OUT"] * scenario.laps
    for unparsed in ("box box", "LET_BY 99", f"HOLD_GAP {scenario.numbers[0]}"):
        regret = regret_of(scenario, [*idle[:3], unparsed, *idle[4:]])
        assert regret.values[-1] == pytest.approx(score_of(scenario, [*idle[:3], unparsed, *idle[4:]])["score"])
        assert regret.values[-1] < regret_of(scenario, idle).values[-1]


def test_regained_score_is_not_lost():
    scenario = make_scenario("dry_strategy_sprint", 1)
    best = [str(command) for command in regret_of(scenario, []).oracle]
    stop = next(lap for lap, call in enumerate(best) if call.startswith("PIT_NOW"))
    late = [*best[:stop], "STAY_OUT", best[stop], *best[stop + 2:]]
    regret = regret_of(scenario, late)
    assert regret.by_lap[stop] > 0.2 > -0.1 > regret.by_lap[stop + 1]  # the missed stop is regained in the next lap
    assert regret.lost.min() >= 0 and regret.lost[stop] < regret.by_lap[stop] / 3
    assert regret.lost.sum() == pytest.approx(regret.values.max() - regret.values[-1])
    assert regret.recovery_lap(stop + 1) > stop + 1


def test_more_calls_than_laps_are_refused():
    scenario = make_scenario("dry_strategy_sprint", 1)
    with pytest.raises(ValueError, match=f"has {scenario.laps} laps; got 99 outputs"):
        regret_of(scenario, ["STAY_OUT"] * 99)
