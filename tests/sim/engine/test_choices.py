"""No call is always right."""
from __future__ import annotations

import numpy as np

from f1_pipelines.sim.engine.drive import MODES, RACE, Calls, drive_code
from f1_pipelines.sim.engine.parameters import HARD, MEDIUM, SC, SOFT, VSC
from f1_pipelines.sim.engine.priors import circuit_prior, prior_rows
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.results import DISQUALIFIED, classify
from f1_pipelines.sim.engine.setup import RaceSetup
from f1_pipelines.sim.engine.step import run

STATES, NOISES, LAPS = 160, 8, 12
ACTIONS = [("mode", mode) for mode in range(len(MODES))] + [("pit", c) for c in (SOFT, MEDIUM, HARD)]
OUR = 2  # our car's column


def random_states(rng: np.random.Generator) -> RaceSetup:
    """160 races of six cars with 3 to 12 laps to go, anywhere in a stint, a third of them on a closed track."""
    circuits = tuple(circuit_prior(name) for name in sorted(prior_rows()))
    to_go = rng.integers(3, LAPS + 1, STATES)
    start = rng.random(STATES)
    status = np.where((start < 0.17)[:, None], SC, np.where((start < 0.34)[:, None], VSC, 0))
    status = status * (np.arange(LAPS) < rng.integers(1, 5, (STATES, 1)))
    burn = np.array([c.fuel_burn_kg_per_lap for c in circuits])
    where = rng.integers(0, len(circuits), STATES)
    return RaceSetup(
        circuits, np.arange(STATES), rng.normal(0, 0.4, (STATES, 6)), circuit_of=where, race_laps=to_go, status=status,
        start_gap_s=np.cumsum(rng.uniform(0.4, 6.0, (STATES, 6)), axis=1),
        start_compound=rng.integers(0, 3, (STATES, 6)),
        start_age_laps=rng.integers(0, 18, (STATES, 6)), wear_scale=rng.uniform(1.0, 3.5, STATES),
        start_fuel_kg=(burn[where] * (to_go + rng.uniform(-0.6, 2.0, STATES)))[:, None] + np.zeros(6),
        track_heat_c=rng.uniform(-6, 14, STATES), two_compound_rule=rng.random(STATES) < 0.4)


def test_no_constant_call_is_best_in_most_states():
    states = random_states(np.random.default_rng(40))
    copies = np.repeat(np.arange(STATES), len(ACTIONS) * NOISES)
    action = np.tile(np.repeat(np.arange(len(ACTIONS)), NOISES), STATES)
    seeds = np.tile(np.arange(NOISES), STATES * len(ACTIONS)) + 1000 * copies
    setup = states.take(copies, seeds=seeds)
    modes, pits = np.full((len(copies), 6), RACE), np.full((len(copies), 6), -1)
    modes[:, OUR] = [ACTIONS[a][1] if ACTIONS[a][0] == "mode" else RACE for a in action]
    pits[:, OUR] = [ACTIONS[a][1] if ACTIONS[a][0] == "pit" else -1 for a in action]
    drive = drive_code(mode=modes)
    race = prepare(setup)
    result = classify(race, run(race, lambda race, state: Calls(pit=pits if state.lap == 0 else None, drive=drive)))
    lap_s = np.nan_to_num(result.time_s[:, OUR] / result.laps[:, OUR].clip(1), nan=500.0)
    lost = result.position[:, OUR] + 1e-3 * lap_s  # the place counts, time breaks ties
    best = lost.reshape(STATES, len(ACTIONS), NOISES).mean(axis=2).argmin(axis=1)
    share = np.bincount(best, minlength=len(ACTIONS)) / STATES
    assert share.max() < 0.6, dict(zip(ACTIONS, share.round(2), strict=True))
    stops = share[len(MODES):].sum()
    assert 0.1 < stops < 0.6
    assert (share > 0).sum() >= 6
    assert (result.status[:, OUR] == DISQUALIFIED).any()
