"""Candidate plans of the expert: stops and driving commands."""
from __future__ import annotations

from typing import Any

import numpy as np

from f1_pipelines.sim.engine.drive import CONSERVE, FUEL_SAVE, MODES, PUSH, RACE, TEMPS, TYRE_SAVE
from f1_pipelines.sim.engine.parameters import COMPOUNDS, HARD, INTER, MEDIUM, SOFT, WET
from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.belief import Belief
from f1_pipelines.sim.policies.sampled_futures import Plan
from f1_pipelines.sim.scenarios.track_events import Closure

DRY = (SOFT, MEDIUM, HARD)
UNLIKELY_RAIN = 0.2
SPARE_LAPS = 0.16  # fuel margin at the flag


def stop_plans(o: Observation, belief: Belief) -> list[Plan]:
    """Candidate stops from the next lap on, with reactions to wetness and track status."""
    mode, length = fuel_mode(o, belief)
    base: dict[str, Any] = {"mode": mode, "mode_laps": length, "temp": TEMPS.index(o.temp)}
    laps = list(range(o.lap, o.laps))
    closing = bool(_open_closures(o, belief))
    wet = not belief.dry or o.wetness > 0.05 or bool(belief.onset)
    if o.weekend and not belief.onset and _chance(o, belief) < UNLIKELY_RAIN:
        wet = False  # in a long race two-stop plans matter more than reactions to unlikely rain
    if o.weekend:
        laps = laps[:4] + laps[4::6 if wet else 3]
    elif wet and len(laps) > 5:
        laps = laps[:3] + laps[3::3]
    reactions: list[dict[str, Any]] = [{}] if not wet else [
        {"to_inter": into, "to_slick": out} for into in (0.12, 0.20, 0.28, 0.36, 9.0)
        for out in ((-9.0, 0.13, 0.19, 0.26) if COMPOUNDS.index(o.own.compound) > HARD else (0.19,))]
    if wet and (o.own.compound in ("inter", "wet") or o.wetness > 0.1):
        reactions = [{**r, "to_wet": level} for r in reactions for level in (0.88, 9.0)]
    plans = [Plan(0, MEDIUM, **base, **r) for r in reactions]
    if wet:
        plans += [Plan(0, SOFT, **base, **r) for r in reactions]
        if o.own.compound != "inter" and (o.wetness > 0.08 or _near_rain(o, belief)):
            plans += [Plan(o.lap, tyre, **base, patience=4, to_slick=out, to_wet=wet) for out in (-9.0, 0.15, 0.2)
                      for tyre, wet in ((INTER, 0.88), (INTER, 9.0), (WET, 9.0))]
            plans += [Plan(o.lap + 1, INTER, **base, patience=4, to_slick=out, to_wet=wet, to_inter=9.0)
                      for out in (-9.0, 0.15, 0.2) for wet in (0.88, 9.0)]
    on_slicks = COMPOUNDS.index(o.own.compound) <= HARD
    for lap in laps if on_slicks or not wet else []:
        for compound in DRY:
            for r in reactions[1:4:2] if wet else reactions:
                plans.append(Plan(lap, compound, False, **base, **r))
                if closing and lap > o.lap:
                    plans.append(Plan(lap, compound, True, **base, **r))
    if o.weekend and not wet:
        plans += _two_stops(o, base)
    return plans


def _two_stops(o: Observation, base: dict[str, Any]) -> list[Plan]:
    """Plans with two stops, on a coarse grid: the next lap plans again."""
    first = [*range(o.lap, min(o.lap + 3, o.laps - 12)), *range(o.lap + 6, o.laps - 12, 8)]
    return [Plan(lap, one, **base, second_stop_lap=later, second_compound=two) for lap in first
            for later in range(lap + 9, o.laps - 3, 9) for one in DRY for two in DRY]


def _open_closures(o: Observation, belief: Belief) -> list[Closure]:
    """Track closures that may still come."""
    return [c for c in o.closures if o.lap <= c.last and (c.often or not belief.closed_lap)]


def _chance(o: Observation, belief: Belief) -> float:
    """Probability of rain by the latest forecast, or the briefing without one."""
    return belief.forecast.chance if belief.forecast is not None else 0.0 if belief.dry else o.rain_chance


def _near_rain(o: Observation, belief: Belief) -> bool:
    forecast = belief.forecast
    return forecast is not None and forecast.chance > 0.5 and o.lap >= forecast.onset_lap - 2


def fuel_mode(o: Observation, belief: Belief) -> tuple[int, int]:
    """Driving mode for the expected fuel, and the laps to hold it."""
    ahead = o.laps - o.lap + 1
    slow = 0.0
    for closure in _open_closures(o, belief):
        share = min((closure.last - o.lap + 1) / (closure.last - closure.first + 1), 1.0) if closure.often else 1.0
        slow += 0.6 * closure.chance * share * (1.2 if closure.kind == "sc" else 0.8)
    short = SPARE_LAPS - belief.fuel_laps - slow
    return (FUEL_SAVE, min(int(np.ceil(short / 0.12)), ahead)) if short > 0 else (RACE, 0)


def driving_options(o: Observation, belief: Belief, plan: Plan) -> list[tuple[Plan, Command | None]]:
    """Plans with the same stops and other driving, each with its first command; None changes nothing."""
    fields = {**plan.__dict__}
    fields.pop("mode"), fields.pop("mode_laps")
    ahead, current, fuel = o.laps - o.lap + 1, MODES.index(o.mode), fuel_mode(o, belief)
    options: list[tuple[Plan, Command | None]] = []
    for length in sorted({0, 1, 2, 3, 4, 6, 9, fuel[1], ahead} if current != RACE else {0}):
        if length <= ahead:
            options.append((Plan(**fields, mode=current, mode_laps=length), None))
    if current != RACE:
        options[0] = (options[0][0], Command("SET_MODE", "race"))
    for mode in (PUSH, CONSERVE, FUEL_SAVE, TYRE_SAVE):
        if mode != current:
            options += [(Plan(**fields, mode=mode, mode_laps=length), Command("SET_MODE", MODES[mode]))
                        for length in sorted({2, 4, 7, fuel[1], ahead}) if 0 < length <= ahead]
    stay = [k for k, (_, command) in enumerate(options) if command is None]
    for temp in range(3):
        if TEMPS[temp] != o.temp and (abs(o.heat_c) > 10 or o.temp != "normal"):
            options += [(Plan(**{**options[k][0].__dict__, "temp": temp}),
                         Command("MANAGE_TYRE_TEMP", TEMPS[temp])) for k in stay]
    ahead_s = min((-c.gap_s for c in o.cars if c.position == o.position - 1), default=99.0)
    behind_s = min((c.gap_s for c in o.cars if c.position == o.position + 1), default=99.0)
    for near, verb, name in ((ahead_s, "ATTACK_AHEAD", "attack"), (behind_s, "DEFEND_POSITION", "defend")):
        if near < 1.3 or (o.lap == 1 and name == "attack" and o.position > 1):
            options += [(Plan(**{**options[k][0].__dict__, name: True}), Command(verb)) for k in stay]
    return options
