"""Tables of a race that depend on its seed: noise by lap and car, the start, and how often the track closes."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from f1_pipelines.sim.engine import noise, track_status
from f1_pipelines.sim.engine.parameters import GREEN, RED, SC, VSC, CircuitParameters, EngineParameters

Circuit = Callable[[str], np.ndarray]
START_SCALE = 1.05  # places of scatter per mean place changed
_CHUNK = 1 << 16  # draws per piece: small enough for the caches, large enough for numpy


def lap_draws(engine: EngineParameters, seeds: np.ndarray, first: int, last: int, numbers: np.ndarray,
              circuit: Circuit) -> dict[str, np.ndarray]:
    """Draw all noise by lap and car, in pieces so that the intermediate arrays stay small.

    Args:
        engine: Parameters shared by the batch.
        seeds: Seeds of the episodes, (E,) uint64.
        first, last: Draws the laps `first + 1` to `last`.
        numbers: Car numbers, (E, N): the keys of the draws.
        circuit: Returns a circuit parameter by name, (E, width).

    Returns:
        The tables of `Race` by name, (L, E, N) each.
    """
    E, N = numbers.shape
    early = min(first, 2)  # noise carries over from two laps before, also into a race that is joined under way
    lap = np.arange(first + 1 - early, last + 1)
    b = circuit("pass_per_advantage")
    intercept = -(circuit("pass_intercept") + circuit("pass_circuit")) / b
    names = ("noise_s", "needed_s", "follow_s", "stop_s", "hazard_u", "puncture_u", "cliff_factor")
    out = {name: np.empty((len(lap), E, N)) for name in names}
    scatter, stop = circuit("lap_scatter_s"), circuit("stop_scatter_s")
    step = max(1, _CHUNK // (6 * E * N))
    queue = noise.EPISODE + 2 + np.arange(N)[None]
    for at in range(0, len(lap), step):
        part = slice(at, at + step)
        u = noise.uniforms(seeds, lap[part], numbers, (noise.LAP, noise.PASS, noise.STOP, noise.HAZARD,
                                                       noise.PUNCTURE, noise.CLIFF))
        out["noise_s"][part] = noise.heavy_tailed(u[0], engine.noise_below * scatter, engine.noise_above * scatter,
                                                  engine.noise_best_s, engine.noise_worst_s)
        out["stop_s"][part] = noise.heavy_tailed(u[2], engine.stop_noise_below * stop, engine.stop_noise_above * stop,
                                                 engine.stop_noise_best_s, engine.stop_noise_worst_s)
        out["needed_s"][part] = intercept + noise.logistic(u[1]) * (engine.pass_chance / b)
        out["hazard_u"][part], out["puncture_u"][part] = u[3], u[4]
        out["cliff_factor"][part] = 1.0 + engine.cliff_spread * (2.0 * u[5] - 1.0)
        # A following distance lasts some laps: drawn anew each lap, every car would drift to its largest draw.
        follow = noise.uniforms(seeds, lap[part] // engine.follow_laps, queue, (noise.SLOT,))[0]
        follow = engine.follow_gap_min_s + (engine.follow_gap_max_s - engine.follow_gap_min_s) * follow
        out["follow_s"][part] = np.cumsum(follow, axis=2)  # adds place by place: the same bits in any batch
    # Noise carries over from the two laps before; a large loss is capped.
    cap = engine.noise_carry_cap_s
    carried = np.minimum(np.maximum(out["noise_s"], -cap), cap) * engine.noise_carry
    out["noise_s"][1:] += carried[:-1]
    out["noise_s"][2:] += carried[:-2] * engine.noise_carry
    out["noise_s"] -= engine.noise_centre * scatter  # the base lap is a median: half of the noise lies on either side
    return {name: table[early:] for name, table in out.items()}


def start_scatter(seeds: np.ndarray, numbers: np.ndarray, circuit: Circuit) -> np.ndarray:
    """Places that each car is shifted by before the field is sorted in lap 1, (E, N).

    Twice as far backwards as forwards, with a long tail: some starts fail. The scale was tuned until cars of a full
    grid change as many places as real ones.
    """
    u = noise.uniforms(seeds, np.array([0]), numbers, (noise.PASS,))[0, 0]
    return noise.heavy_tailed(u, 0.55, 1.1, -30.0, 30.0) * (START_SCALE * circuit("first_lap_places"))


def status_trace(status: np.ndarray | None, episodes: int, laps: int) -> np.ndarray | None:
    """Given statuses with laps so far and laps left, one green lap appended, (3, L + 1, E)."""
    if status is None:
        return None
    trace = np.empty((3, laps + 1, episodes), dtype=np.int64)
    trace[0, :laps], trace[0, laps] = np.asarray(status, dtype=np.int64).reshape(-1, laps).T, GREEN
    trace[1:] = track_status.periods(trace[0])
    return trace


def status_tables(circuit: Circuit, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How readily retirements close a circuit (E, 4), and its background chances in lap 1 and later laps (2, E, 4)."""
    E = len(spread)
    factors, rates = np.zeros((E, 4)), np.zeros((2, E, 4))
    pooled = CircuitParameters()
    for status, name in ((VSC, "vsc_per_race"), (SC, "sc_per_race"), (RED, "red_per_race")):
        rate, usual = circuit(name)[:, 0], getattr(pooled, name)
        first = track_status.BACKGROUND_FIRST_LAP[status]
        factors[:, status] = rate / usual
        rates[0, :, status] = first * factors[:, status]
        rates[1, :, status] = (track_status.BACKGROUND[status] * rate - rates[0, :, status]).clip(0.0) / spread[:, 0]
    return factors, rates
