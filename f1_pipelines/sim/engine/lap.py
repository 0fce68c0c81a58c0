"""One lap of one race, as the physics has it: clean laps, traffic, failures, stops, tyres and fuel, the next status.

A stop called in a lap costs all of its time in that lap, the last one included, and the new set runs from the next lap.
Retired cars stay where they are; a race that is over keeps its state.

Simplifications: a lap has one status, that of the leader's lap of the same number, for lapped cars too. Lapped cars
lose time to blue flags but don't hold up those that lap them. All of a stop falls into the lap that ends with it.
"""
from __future__ import annotations

from f1_pipelines.sim.engine import events, tyres
from f1_pipelines.sim.engine.compiled import Record, Records, compiled
from f1_pipelines.sim.engine.drive import LASTING
from f1_pipelines.sim.engine.parameters import GREEN, RED, SC, VSC
from f1_pipelines.sim.engine.state import ACCIDENT, OUT_S, RUNNING, copy_car, copy_race, fill_gaps, sort_by_time
from f1_pipelines.sim.engine.tables import Tables, record
from f1_pipelines.sim.engine.track_status import next_status
from f1_pipelines.sim.engine.traffic import follow, race_on, swap, yield_places

KEEP_DRIVE = -1  # no new drive: the lasting part of the last one holds
CALL = record("", "pit drive hold_gap let_by")  # as in `drive.Calls`, -1 for no call
NO_CALL = (-1, KEEP_DRIVE, -1, -1)
CAR_LAP = record(
    "track compound wear fuel mode temperature fresh cliff weather hold_gap "  # s, parts of a lap in clean air
    "dirty_air incident stop "  # s
    "free_s at_line_s "  # lap in clean air; time at the line after traffic, s since lights out
    "closeness past_cliff off_window_c "  # nearness of the car ahead, 0 to 1; laps of wear, C beyond the limits
    "wear_rate burn_kg settle_c",  # of the lap: laps of wear, kg, temperature that the tyres settle at
    "drive retired punctured pit")  # code; reason or 0; 1 if so; compound changed to, -1 for none


@compiled
def drive_lap(tables: Tables, t: int, lap: int, cars: Records, races: Records, episode: int, calls: Records,
              laps: Records, line: Records, new_cars: Records, new_races: Records) -> None:
    """Drive a lap of one race.

    Args:
        tables: Tables of the batch.
        t: Row of the race in the tables.
        lap: The lap to drive, from 1.
        cars, races: State before the lap, (E, N) and (E,); not changed.
        episode: Row of the race in the states.
        calls: Calls of the race, (E, N) CALL, or (1, N).
        laps: Filled, (E, N) CAR_LAP, or (1, N).
        line: Scratch, (N,) LINE.
        new_cars, new_races: State after the lap, filled.
    """
    for k in range(cars.shape[1]):
        copy_car(cars[episode, k], new_cars[episode, k])
    copy_race(races[episode], new_races[episode])
    race, row, at, call_row = tables.of_race[t], lap - tables.first - 1, episode % len(laps), episode % len(calls)
    if lap > race.race_laps:
        return
    before, standing_start = races[episode], lap == 1 and race.standing_start
    _drive_freely(tables, t, row, standing_start, cars, before, episode, calls, call_row, laps, at)
    _line_up(tables, t, row, episode, cars, before, calls, call_row, laps, at, line)
    _settle(tables, t, row, before, standing_start, line)
    for place in range(len(line)):
        k = line[place].car
        new_cars[episode, place].order = k
        laps[at, k].at_line_s = new_cars[episode, k].elapsed_s = line[place].at_line_s
    accidents, others = _fail_and_stop(tables, t, row, standing_start, cars, before, episode, calls, call_row, laps, at,
                                       new_cars)
    _move_on(tables, t, row, lap, cars, episode, laps, at, line, new_cars)
    sort_by_time(new_cars, episode)
    fill_gaps(new_cars, new_races, episode)
    _next_status(tables, t, row, lap, before, accidents, others, new_races[episode])


@compiled
def _drive_freely(tables: Tables, t: int, row: int, standing_start: bool, cars: Records, before: Record, episode: int,
                  calls: Records, call_row: int, laps: Records, at: int) -> None:
    """Lap times in clean air, the time that other cars cost without holding one up, and what the lap uses up."""
    race, engine, lap_of_race = tables.of_race[t], tables.engine[0], tables.lap_of_race[row, t]
    for k in range(cars.shape[1]):
        car, own, call = cars[episode, k], laps[at, k], calls[call_row, k]
        own.drive = car.drive if call.drive == KEEP_DRIVE else call.drive
        _clean_lap(car, race, lap_of_race, tables.lap_of_car[row, t, k], tables.drives[own.drive], engine, own)
    for k in range(cars.shape[1]):
        car, own = cars[episode, k], laps[at, k]
        own.hold_gap = _pace_in_hand(cars, episode, calls[call_row, k].hold_gap, laps, at, own)
        own.closeness = max(1.0 - car.gap_ahead_s * race.dirty_reach, 0.0)
        own.dirty_air = 0.0 if standing_start else own.closeness * race.dirty_air + (
            race.lapped_loss if car.elapsed_s > before.leader_s + lap_of_race.circuit_s else 0.0)
        tyres.fill_rates(car, race, lap_of_race.wetness, tables.drives[own.drive],
                         tables.status_effects[before.status], engine, own)
    for k in range(cars.shape[1]):
        laps[at, k].free_s += laps[at, k].hold_gap


@compiled
def _fail_and_stop(tables: Tables, t: int, row: int, standing_start: bool, cars: Records, before: Record, episode: int,
                   calls: Records, call_row: int, laps: Records, at: int, new_cars: Records) -> tuple[int, int]:
    """Failures, then stops with their costs. Returns the numbers of accidents and of other retirements."""
    wetness, accidents, others = tables.lap_of_race[row, t].wetness, 0, 0
    for k in range(cars.shape[1]):
        car, own = cars[episode, k], laps[at, k]
        events.fail(car, tables.of_car[t, k], tables.lap_of_car[row, t, k], tables.drives[own.drive],
                    tables.status_effects[before.status], wetness, standing_start, tables.engine[0], own,
                    new_cars[episode, k])
        accidents += own.retired == ACCIDENT
        others += own.retired > ACCIDENT
        own.pit = events.stop_called(car, calls[call_row, k].pit, wetness, own)
    for k in range(cars.shape[1]):
        laps[at, k].stop = events.stop_cost(tables, t, row, episode, k, before, laps, at, new_cars)
    return accidents, others


@compiled
def _move_on(tables: Tables, t: int, row: int, lap: int, cars: Records, episode: int, laps: Records, at: int,
             line: Records, new_cars: Records) -> None:
    """The state of each car after its lap, stop or retirement."""
    for place in range(len(line)):
        k = line[place].car
        car, own, new = cars[episode, k], laps[at, k], new_cars[episode, k]
        new.elapsed_s += own.stop
        tyres.wear_down(car, tables.engine[0], own, new)
        if own.pit >= 0:
            tyres.change(tables.tyres[t, own.pit], tables.lap_of_car[row, t, k], tables.of_race[t], tables.engine[0],
                         own.pit, new)
        new.drive = own.drive & LASTING
        if car.out != RUNNING:
            new.elapsed_s = car.elapsed_s
        elif own.retired != RUNNING:
            new.elapsed_s = OUT_S - 1e6 * lap + 1e3 * place
            new.out, new.out_lap = own.retired, lap


@compiled
def _clean_lap(car: Record, race: Record, lap_of_race: Record, drawn: Record, drive: Record, engine: Record,
               own: Record) -> None:
    """Sum up the effects that make a lap in clean air."""
    own.off_window_c = max(abs(car.temp_c) - engine.temp_window_c, 0.0)
    own.past_cliff = tyres.laps_past_cliff(car, engine)
    own.track = drawn.lap_s
    own.compound = car.offset_s
    own.wear = car.slope_s * car.wear_laps
    own.fuel = car.fuel_kg * race.fuel_effect
    own.mode = drive.pace_s
    own.temperature = own.off_window_c * engine.temp_loss_s_per_c
    own.fresh = car.fresh_s
    own.cliff = tyres.cliff_s(own.past_cliff, engine)
    own.weather = tyres.weather_s(car.compound, lap_of_race.wetness, race)
    own.free_s = (own.track + own.compound + own.wear + own.fuel + own.mode + own.temperature + own.fresh + own.cliff
                  + own.weather)


@compiled
def _pace_in_hand(cars: Records, episode: int, target: int, laps: Records, at: int, own: Record) -> float:
    """Time that a car gives up to be no quicker than the car in column `target` [s]; -1 for none."""
    if target < 0 or cars[episode, target].out != RUNNING:
        return 0.0
    return max(laps[at, target].free_s - own.free_s, 0.0)


@compiled
def _line_up(tables: Tables, t: int, row: int, episode: int, cars: Records, before: Record, calls: Records,
             call_row: int, laps: Records, at: int, line: Records) -> None:
    """Fill the line in order of place, as the cars would cross it on a free track."""
    race = tables.of_race[t]
    for place in range(len(line)):
        entry, k = line[place], cars[episode, place].order
        car, own, drawn = cars[episode, k], laps[at, k], tables.lap_of_car[row, t, k]
        drive = tables.drives[own.drive]
        v = car.elapsed_s * race.gap_ratio + own.free_s + drawn.unseen_s
        entry.attack_s, entry.defence_s = v + (drawn.needed_s + drive.needed_s), v - drive.defence_s
        entry.arrival_s = car.elapsed_s + own.free_s + own.dirty_air
        entry.spacing_s = tables.lap_of_car[row, t, place].follow_s
        entry.car, entry.old_place, entry.lets_by = k, place, calls[call_row, k].let_by
    if before.status != GREEN:
        _behind_safety_car(tables, t, row, episode, cars, before, line)


@compiled
def _settle(tables: Tables, t: int, row: int, before: Record, standing_start: bool, line: Records) -> None:
    """Settle order and times at the line."""
    engine = tables.engine[0]
    if standing_start:
        if before.status == GREEN:
            _start(tables, t, line)
        if before.status == GREEN or before.status == VSC:  # a VSC keeps gaps, but there are none yet
            _start_spacing(tables, t, row, engine, line)
    elif before.status == GREEN:
        race_on(line, engine)
        yield_places(line)
    follow(line)


@compiled
def _start(tables: Tables, t: int, line: Records) -> None:
    """Sort the field in the first corners; the whole field drives in tow, which is a part of the cost of lap 1."""
    for place in range(len(line)):
        line[place].arrival_s += tables.of_race[t].first_lap_loss
    for place in range(1, len(line)):
        at = place
        while at and _starts_behind(tables, t, line[at - 1].car, line[at].car):
            swap(line[at - 1], line[at])
            at -= 1


@compiled
def _starts_behind(tables: Tables, t: int, one: int, other: int) -> bool:
    one_key, other_key = tables.of_car[t, one].start_key, tables.of_car[t, other].start_key
    return bool(one_key > other_key or (one_key == other_key and one > other))


@compiled
def _start_spacing(tables: Tables, t: int, row: int, engine: Record, line: Records) -> None:
    """Stretch the trains of an ordinary lap: the leaders pull away, the back stays together."""
    usual = 0.5 * (engine.follow_gap_min_s + engine.follow_gap_max_s)
    leader = tables.lap_of_car[row, t, 0].follow_s / usual
    for place in range(len(line)):
        train = tables.lap_of_car[row, t, place].follow_s / usual - leader
        back = max(train - 5.0, 0.0)
        line[place].spacing_s = (train - back) * engine.first_lap_gap_front_s + back * engine.first_lap_gap_back_s


@compiled
def _behind_safety_car(tables: Tables, t: int, row: int, episode: int, cars: Records, before: Record,
                       line: Records) -> None:
    """Times and spacing on a closed track: one pace for all, and behind a safety car the field closes up."""
    engine, leader = tables.engine[0], cars[episode, 0].order
    # A neutralised lap is a multiple of a green one, fuel and used tyres included; the leader's fuel stands for all.
    fuel_s = tables.of_race[t].fuel_effect * cars[episode, leader].fuel_kg
    lap_s = tables.lap_of_race[row, t].neutral_s + fuel_s
    last, red = before.status_left == 1, before.status == RED
    kind = last if before.status == VSC else min(before.status_age, tables.slow_ratio.shape[2] - 2) + 1
    gap = engine.red_gap_s if red else 0.0
    if before.status == SC:
        gap = engine.queue_gap_last_s if last else engine.queue_gap_s
    leader_s = cars[episode, leader].elapsed_s + engine.red_stoppage_s
    for place in range(len(line)):
        ratio = tables.slow_ratio[t, 0 if place == 0 or red else 1, int(kind)]
        at_line = leader_s if red else cars[episode, cars[episode, place].order].elapsed_s
        line[place].arrival_s = at_line + lap_s * ratio
        line[place].spacing_s = place * gap


@compiled
def _next_status(tables: Tables, t: int, row: int, lap: int, before: Record, accidents: int, others: int,
                 after: Record) -> None:
    """Set the status of the coming lap: the given one, or one that is drawn."""
    if tables.of_race[t].given_status:
        given = tables.lap_of_race[row + 1, t]
        after.status, after.status_age, after.status_left = given.status, given.status_age, given.status_left
        return
    drawn = tables.lap_of_race[row, t]
    after.status, after.status_age, after.status_left = next_status(
        before.status, before.status_age, before.status_left, accidents, others, tables.status_rates,
        tables.status_factors, t, 0 if lap == 1 and tables.of_race[t].standing_start else 1, drawn.event_u,
        drawn.duration_u)
