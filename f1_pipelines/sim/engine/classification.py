"""The classification of one race."""
from __future__ import annotations

from f1_pipelines.sim.engine.compiled import Record, Records, compiled
from f1_pipelines.sim.engine.parameters import COMPOUNDS, HARD
from f1_pipelines.sim.engine.state import OUT_S
from f1_pipelines.sim.engine.tables import record

FINISHED, RETIRED, DISQUALIFIED = range(3)
RESULT = record(
    "time_s "  # over the laps completed, NaN for cars that did not reach the flag
    "rank_key",  # by laps, then by time; retired cars by distance; disqualified cars last
    "position laps status", "classified")  # as in `results.Classification`
RAIN_TYRES = sum(1 << c for c in range(HARD + 1, len(COMPOUNDS)))
SLICKS = (1 << (HARD + 1)) - 1


@compiled
def used_one_slick(used: int) -> bool:
    """Whether a car used one slick compound and no rain tyres; `used` has a bit per compound."""
    slicks = used & SLICKS
    return used & RAIN_TYRES == 0 and slicks > 0 and slicks & (slicks - 1) == 0


@compiled
def classify_race(race: Record, lap: int, lines: Records, row: int, cars: Records, episode: int,
                  results: Records) -> None:
    """Classify a finished race; a race under way gets its current order.

    Args:
        race: The race, OF_RACE.
        lap: Laps driven by the longest race of the batch.
        lines: Times at the line of each lap so far [s], (laps + 1, ?, N).
        row: Row of the race in `lines`.
        cars: State of the batch, (E, N) CAR_STATE.
        episode: Row of the race in `cars`.
        results: Filled, (E, N) RESULT, or (1, N).
    """
    done, over, joined = min(lap, race.race_laps), lap >= race.race_laps, lap - len(lines) + 1
    flag = cars[episode, cars[episode, 0].order].elapsed_s  # the winner's time, or the leader's so far
    winner_laps, at = 0, episode % len(results)
    for k in range(cars.shape[1]):
        result = results[at, k]
        _cross_the_line(race, done, over, joined, flag, lines, row, k, cars[episode, k], result)
        winner_laps = max(winner_laps, result.laps)
    for k in range(cars.shape[1]):
        result, ahead = results[at, k], 0
        for other in range(cars.shape[1]):
            key = results[at, other].rank_key
            ahead += key < result.rank_key or (key == result.rank_key and other < k)
        result.position = ahead + 1
        far_enough = result.status == FINISHED or result.laps >= 0.9 * winner_laps
        result.classified = result.status != DISQUALIFIED and far_enough


@compiled
def _cross_the_line(race: Record, done: int, over: bool, joined: int, flag: float, lines: Records, row: int, k: int,
                    car: Record, result: Record) -> None:
    """Laps, time and status of a car. The race ends for it when it first crosses the line after the winner."""
    laps = done
    if over:
        laps = joined
        for at in range(done - joined):
            laps += lines[at, row, k] < flag
    at_flag = lines[laps - joined, row, k]
    retired = at_flag > 0.5 * OUT_S
    if retired:
        laps = car.out_lap - 1 + (car.out_lap == 0)
    disqualified = race.two_compounds and over and not retired and used_one_slick(car.used)
    result.laps, result.time_s = laps, at_flag
    result.status = DISQUALIFIED if disqualified else RETIRED if retired else FINISHED
    # elapsed_s of a retired car tells its distance (within OUT_S less 1e8).
    result.rank_key = 1e8 + (car.elapsed_s - OUT_S) if retired else at_flag - laps * 1e5
    if retired:
        result.time_s = float("nan")
    if disqualified:
        result.rank_key += 1e9
