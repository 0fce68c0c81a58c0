"""Same seed and calls, same bytes: alone, in a batch, in another process, forked, or with the cars reordered."""
from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from f1_pipelines.sim.engine import noise
from f1_pipelines.sim.engine.parameters import GREEN, RED, SC, VSC
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.results import check_race
from f1_pipelines.sim.engine.step import ENGINE_VERSION, run, step


def assert_same(single, other, episode=0):
    """Assert that two states hold the same bits; `single` is a batch of one, `other` any batch."""
    for one, batch in ((single.cars, other.cars), (single.races, other.races)):
        for name in one.dtype.names:
            assert one[name][0].tobytes() == batch[name][episode].tobytes(), name
    for line, batch in zip(single.line_s, other.line_s, strict=False):  # a batch goes on until its longest race is over
        assert line[0].tobytes() == batch[episode].tobytes()


@pytest.mark.parametrize("episodes", [3, 64, 1000])
def test_a_race_alone_is_the_same_race_in_a_batch(eventful, busy, episodes):
    setup = eventful(episodes)
    batch = run(setup, busy)
    assert batch.out.any()
    for episode in {0, 1, 2, episodes // 2, episodes - 1}:
        laps = int(setup.race_laps[episode])
        alone = setup.take(np.array([episode]), race_laps=laps, rain=setup.rain[episode:episode + 1, :laps])
        assert_same(run(alone, busy), batch, episode)


def test_a_race_with_given_statuses_is_the_same_alone_and_in_a_batch(eventful, busy):
    status = np.zeros((5, 14), dtype=int)
    status[0, 5:8], status[1, 3:4], status[2, 6:7], status[3, 0:2], status[4, 0:2] = SC, VSC, RED, SC, VSC
    setup = eventful(5, status=status, race_laps=14)
    batch = run(setup, busy)
    for episode in range(5):
        assert_same(run(setup.take(np.array([episode])), busy), batch, episode)


RACES = """
import hashlib, numpy as np
from f1_pipelines.sim import CircuitParameters, RaceSetup, run
setup = RaceSetup(circuits=(CircuitParameters(),), seeds=np.arange(40), car_pace_s=np.linspace(-1, 1, 20),
                  rain=np.eye(40, 57, 3) + np.eye(40, 57, 4))
print(hashlib.sha256(np.stack(run(setup).line_s).tobytes()).hexdigest())
"""


def digest(**environment: str) -> str:
    """Hash of forty races on default parameters, from a new process."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", RACES], capture_output=True, text=True, check=True,
                          env={**os.environ, **environment})
    return done.stdout.strip()


def test_another_process_without_vector_instructions_drives_the_same_race():
    """numpy without AVX and compiled code for any x86-64 stand for an older machine, the recorded hash for all others.

    A change that moves the recorded hash moves races: raise ENGINE_VERSION with it.
    """
    dispatched = " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))
    plain = digest(NPY_DISABLE_CPU_FEATURES=dispatched)
    assert plain == digest() == digest(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert (ENGINE_VERSION, plain) == (2, RACES_SHA256)


def test_the_noise_is_the_same_on_every_machine():
    """Recorded on x86-64 (AMD EPYC): a machine on which this fails does not round as IEEE 754 says."""
    u = noise.uniforms(np.arange(50), np.arange(1, 9), np.arange(1, 21)[None], (0, 1))
    draws = np.stack([u[0], noise.heavy_tailed(u[0], 0.4, 1.0, -2.0, 8.0), noise.logistic(u[1])])
    assert hashlib.sha256(draws.tobytes()).hexdigest() == NOISE_SHA256


NOISE_SHA256 = "7707f303323a03d9cc8e0defbd874bc92ed79f29d833ddc986b7b91d20f4242f"
RACES_SHA256 = "8722c583cacacb25381263452e6b660f296b0b054deb4fe43b11934deb5f3260"


def test_draws_are_uniform_and_unrelated():
    u = noise.uniforms(np.arange(20), np.arange(1, 51), np.arange(1, 21)[None], (0, 1, 2))
    assert ((u > 0) & (u < 1)).all()
    assert abs(u.mean() - 0.5) < 0.005
    assert abs(u.std() - 12**-0.5) < 0.003
    pairs = [(u[0], u[1]), (u[:, 1:], u[:, :-1]), (u[:, :, 1:], u[:, :, :-1]), (u[..., 1:], u[..., :-1])]
    assert max(abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) for a, b in pairs) < 0.02
    # No lap of a seed repeats a lap of another seed, as with keys like seed + k * lap.
    assert len(np.unique(u)) == u.size


def test_a_fork_that_gets_the_same_calls_is_the_same_race(eventful, busy):
    race = prepare(eventful(6))
    history = run(race, busy, record=True)
    again = history[7]
    frozen = again.cars.copy(), again.races.copy(), [line.copy() for line in again.line_s]
    other = step(race, again)  # another branch must not change this one
    assert not np.array_equal(other.elapsed_s, history[8].elapsed_s)
    assert np.array_equal(again.cars, frozen[0]) and np.array_equal(again.races, frozen[1])
    assert np.array_equal(again.line_s, frozen[2])
    while again.lap < race.laps:
        again = step(race, again, busy(race, again))
    for episode in range(6):
        assert_same(again.take(np.array([episode])), history[-1], episode)


def test_a_fork_into_another_batch_meets_the_same_noise(eventful, busy):
    setup = eventful(4)
    race = prepare(setup)
    history = run(race, busy, record=True)
    picks = np.array([2, 2, 0, 3, 2])
    fork = prepare(setup.take(picks), first=6)
    state = history[6].take(picks)
    while state.lap < fork.laps:
        state = step(fork, state, busy(fork, state))
    for at, episode in enumerate(picks):
        assert_same(state.take(np.array([at])), history[-1], episode)


def test_cars_in_another_order_drive_the_same_race(eventful):
    setup = eventful(12)
    rng = np.random.default_rng(1)
    shuffle = rng.permutation(8)
    grid = np.broadcast_to(np.arange(1, 9), (12, 8))
    per_car = ("car_pace_s", "start_compound", "start_fuel_kg", "start_age_laps")
    moved = {name: np.asarray(getattr(setup, name))[:, shuffle] for name in per_car}
    other = run(setup.take(np.arange(12), grid=grid[:, shuffle], team=setup.team[shuffle],
                           car_numbers=setup.car_numbers[shuffle], **moved))
    assert np.array_equal(run(setup).elapsed_s[:, shuffle], other.elapsed_s)


def test_lengths_and_grids_of_any_size(eventful, busy):
    for cars, laps in ((2, 4), (22, 20), (26, 6)):
        race = prepare(eventful(5, cars, laps))
        assert check_race(race, run(race, busy, record=True)) == []
    one_lap = prepare(eventful(3, 2, 1, race_laps=1))
    assert check_race(one_lap, run(one_lap, record=True)) == []


def test_a_given_status_lasts_as_long_as_given(eventful):
    status = np.full((1, 14), GREEN)
    status[0, 4:7] = SC
    history = run(eventful(1, status=status, race_laps=14), record=True)
    assert [int(s.status[0]) for s in history[:-1]] == status[0].tolist()
    assert [int(s.status_age[0]) for s in history[4:7]] == [1, 2, 3]
    assert [int(s.status_left[0]) for s in history[4:7]] == [3, 2, 1]
