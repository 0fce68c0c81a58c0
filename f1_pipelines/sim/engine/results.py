"""The classification of a race, its consistency checks, and the parts of a lap time."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from f1_pipelines.sim.engine.drive import NO_CALLS, Calls
from f1_pipelines.sim.engine.parameters import COMPOUNDS, HARD
from f1_pipelines.sim.engine.race import Race
from f1_pipelines.sim.engine.state import OUT_S, RUNNING, RaceState
from f1_pipelines.sim.engine.step import drive_lap
from f1_pipelines.sim.engine.weather import DAMP

FINISHED, RETIRED, DISQUALIFIED = range(3)
_RAIN_TYRES = sum(1 << c for c in range(HARD + 1, len(COMPOUNDS)))
_SLICKS = (1 << (HARD + 1)) - 1


@dataclass(frozen=True, eq=False)
class Classification:
    """(E, N) by car column."""

    position: np.ndarray  # 1 .. N: finishers, then retired cars by distance, then disqualified ones
    laps: np.ndarray  # laps completed; lapped cars finish on the leader's last lap
    time_s: np.ndarray  # race time over these laps, NaN for cars that did not reach the flag
    status: np.ndarray  # FINISHED, RETIRED, DISQUALIFIED
    classified: np.ndarray  # bool: finished, or 90 % of the winner's distance and not disqualified


def classify(race: Race, state: RaceState) -> Classification:
    """Classify finished races; a race under way gets its current order."""
    done = np.minimum(state.lap, race.race_laps)
    lines = np.stack(state.line_s)  # (laps + 1, E, N)
    joined = state.lap - len(lines) + 1  # laps driven before the first recorded line
    flag = state.elapsed_s.min(axis=1)  # the winner's, or the leader's so far
    over = (state.lap >= race.race_laps)[None, :, None]
    # The race ends for a car when it first crosses the line after the winner: count the lines before, and that one.
    before = ((lines < flag[:, None]) & (np.arange(joined, state.lap + 1)[:, None, None] < done[:, None])).sum(axis=0)
    laps = np.where(over[0], before + joined, done[:, None])
    at_flag = np.take_along_axis(lines, (laps - joined)[None], axis=0)[0]
    retired = at_flag > 0.5 * OUT_S
    laps = np.where(retired, state.out_lap - 1 + (state.out_lap == 0), laps)
    slicks = sum((state.used >> c) & 1 for c in range(HARD + 1))
    single_compound = (slicks < 2) & (state.used & _RAIN_TYRES == 0) & (state.used & _SLICKS > 0)
    rule = np.broadcast_to(race.setup.two_compound_rule, (race.episodes,)) & ~_wet_races(race)
    disqualified = single_compound & rule[:, None] & over[0] & ~retired
    status = np.where(disqualified, DISQUALIFIED, np.where(retired, RETIRED, FINISHED))
    # By laps, then by time; elapsed_s of a retired car tells its distance (within OUT_S less 1e8).
    rank = np.where(retired, 1e8 + (state.elapsed_s - OUT_S), at_flag - laps * 1e5) + np.where(disqualified, 1e9, 0.0)
    place = np.empty_like(laps)
    np.put_along_axis(place, rank.argsort(axis=1, kind="stable"), np.arange(1, race.cars + 1)[None], axis=1)
    winner_laps = laps.max(axis=1, keepdims=True)
    return Classification(place, laps, np.where(retired, np.nan, at_flag), status,
                          ~disqualified & (~retired | (laps >= 0.9 * winner_laps)))


def _wet_races(race: Race) -> np.ndarray:
    """Whether some lap was wet, so that the two-compound rule does not hold, (E,) bool."""
    driven = np.arange(race.first + 1, race.laps + 1)[:, None] <= race.race_laps
    return np.asarray(((race.wetness > DAMP) & driven).any(axis=0))


def check_race(race: Race, history: list[RaceState]) -> list[str]:
    """List the faults of a recorded batch; none if it is consistent."""
    faults = []
    for before, after in zip(history, history[1:], strict=False):
        if not (np.sort(after.position, axis=1) == np.arange(1, race.cars + 1)).all():
            faults.append(f"lap {after.lap}: positions are not 1..{race.cars}")
        both = after.running & (before.lap < race.race_laps)[:, None]
        if not (np.where(both, after.elapsed_s - before.elapsed_s, 1.0) > 0).all():
            faults.append(f"lap {after.lap}: a lap took no time")
        if not ((after.out != RUNNING) >= (before.out != RUNNING)).all():
            faults.append(f"lap {after.lap}: a retired car drives again")
    end = history[-1]
    if not all((line == state.elapsed_s).all() for line, state in zip(end.line_s, history, strict=True)):
        faults.append("lap times do not sum up to the race time")
    result = classify(race, end)
    if not (np.sort(result.position, axis=1) == np.arange(1, race.cars + 1)).all():
        faults.append(f"the classification is not 1..{race.cars}")
    if (result.laps > race.race_laps[:, None]).any():
        faults.append("a car drove more than the race distance")
    return faults


def explain(race: Race, state: RaceState, calls: Calls = NO_CALLS) -> dict[str, np.ndarray]:
    """Split the coming lap's time into effects by name [s], (E, N) each; their sum is the lap time.

    `held_up` is the cost of following, passing and being passed (in lap 1 of the start, too). In a neutralised episode
    `track_status` holds everything beyond the circuit. Retired cars get zeros.
    """
    after, parts = drive_lap(race, state, calls)
    row = race.row(state.lap + 1)
    setup, shape = race.setup, (race.episodes, race.cars)
    circuit = np.broadcast_to(race.circuit_s[row], shape)
    loss, on_track = parts.pop("dirty_air"), parts.pop("on_track")
    delays: dict[str, np.ndarray] = {name: parts.pop(name) for name in ("incident", "stop") if name in parts}
    parts.pop("track")
    noise = race.noise_s[row]
    clean = {"car": np.broadcast_to(setup.car_pace_s, shape), "driver": np.broadcast_to(setup.driver_pace_s, shape),
             "noise": noise, **parts, "dirty_air": loss}
    slow = (state.status > 0)[:, None]
    effects = {"circuit": circuit, **{name: np.where(slow, 0.0, effect) for name, effect in clean.items()}}
    rest = on_track - state.elapsed_s - sum(effects.values())
    effects["held_up"] = np.where(slow, 0.0, rest)
    effects["track_status"] = np.where(slow, rest, 0.0)
    effects.update(delays)
    drives = after.running & (state.lap < race.race_laps)[:, None]
    return {name: np.where(drives, effect, 0.0) for name, effect in effects.items()}
