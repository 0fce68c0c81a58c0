"""Play a race with a policy: laps, decisions, score."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from f1_pipelines.sim.engine.parameters import COMPOUNDS, STATUSES
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.policies.policy import Policy
from f1_pipelines.sim.policies.registry import DEGENERATE, POLICIES
from f1_pipelines.sim.scenarios import ENV_VERSION, Scenario, make_scenario

__all__ = ["DEGENERATE", "POLICIES", "Played", "UnknownPolicy", "as_text", "lap_table", "play", "played", "policy_for"]

OnLap = Callable[[int, int], None]


class UnknownPolicy(ValueError):
    """No policy has this name."""


@dataclass(frozen=True)
class Played:
    """A finished race: `laps` by lap and car, `decisions` by command, `grid` of car numbers from pole."""

    policy: str
    family: str
    seed: int
    split: str
    circuit: str
    env_version: int
    score: dict[str, float]
    info: dict[str, Any]
    laps: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    briefing: str
    grid: list[int]
    weekend: str = ""  # Grand Prix only
    drivers: dict[int, str] = field(default_factory=dict)  # driver ids by car number, Grand Prix only


def policy_for(name: str, scenario: Scenario) -> Policy:
    """A new policy by name. Only the oracle uses the future of the scenario.

    Raises:
        UnknownPolicy: No policy has this name; the message lists the valid ones.
    """
    if name not in POLICIES:
        raise UnknownPolicy(f"unknown policy {str(name)[:40]!r}. Valid: {', '.join(POLICIES)}.")
    return POLICIES[name](scenario)


def play(family: str, seed: int, policy: str | Policy, circuit: str | None = None, split: str | None = None,
         name: str | None = None, on_lap: OnLap | None = None) -> Played:
    """Play a sprint.

    Args:
        family: Scenario family.
        seed: Seed of the sprint.
        policy: A name in `POLICIES`, or a policy.
        circuit: Circuit id; None for the seed's.
        split: Split that the seed must belong to; None for any.
        name: Name to record for a policy that is not in `POLICIES`.
        on_lap: Called after each command with the laps driven and the laps in all.
    """
    scenario = make_scenario(family, seed, split, circuit)
    chosen = policy_for(policy, scenario) if isinstance(policy, str) else policy
    return played(scenario, chosen, policy if isinstance(policy, str) else name or type(policy).__name__, on_lap)


def played(scenario: Scenario, policy: Policy, name: str, on_lap: OnLap | None = None) -> Played:
    """Play the race of an existing scenario. `on_lap` is called with the laps driven and the laps in all."""
    environment = RaceEnvironment()
    observation = environment.begin(scenario)
    policy.begin(observation)
    decisions, over, info = [], False, {}
    while not over:
        decision = policy.decide(observation)
        step = environment.step(decision.command)
        decisions.append({
            "lap": observation.lap, "command": str(decision.command)[:200], "reason": decision.reason,
            "reward": step.reward, "error": step.info.get("error"), "answer": step.observation.answer,
            "observation": observation.text})
        observation, over, info = step.observation, step.done, step.info
        if on_lap:
            on_lap(min(observation.lap, scenario.laps), scenario.laps)
    return Played(name, scenario.family, scenario.seed, scenario.split, scenario.circuit.circuit, ENV_VERSION,
                  environment.final_score.as_dict(), info, lap_table(environment), decisions, observation.briefing,
                  [scenario.numbers[column] for column in environment.history[0].position[0].argsort()],
                  scenario.weekend, dict(zip(scenario.numbers, scenario.drivers, strict=False)))


def lap_table(environment: RaceEnvironment) -> list[dict[str, Any]]:
    """One row per lap and car, for tables and plots."""
    scenario, rows = environment.scenario, []
    history = environment.history
    for before, after in zip(history, history[1:], strict=False):
        for k, number in enumerate(scenario.numbers):
            if before.out[0, k]:
                continue
            running = not after.out[0, k]
            rows.append({
                "lap": after.lap, "car": number, "ours": k == 0,
                "position": int(after.position[0, k]) if running else None,
                "lap_time_s": round(float(after.elapsed_s[0, k] - before.elapsed_s[0, k]), 3) if running else None,
                "gap_s": round(float(after.elapsed_s[0, k] - after.leader_s[0]), 3) if running else None,
                "compound": COMPOUNDS[before.compound[0, k]], "tyre_age_laps": int(before.age_laps[0, k]) + 1,
                "stopped": bool(after.stops[0, k] > before.stops[0, k]), "status": STATUSES[before.status[0]],
                "rain": round(float(scenario.rain[before.lap]), 2)})
    return rows


def as_text(race: Played) -> str:
    """Format a race for a terminal: a line per lap with the running order (ours in brackets), then the decisions."""
    ours = next(row["car"] for row in race.laps if row["ours"])
    title = f"{race.family} {race.weekend} {race.drivers[ours]} seed {race.seed}" if race.weekend else \
        f"{race.family} seed {race.seed} ({race.split})"
    lines = [f"{title}, {race.circuit}, {race.policy}, env {race.env_version}",
             race.briefing, "", f"{'lap':>3} {'track':6}{'rain':>5}  {'tyre':10}{'lap s':>8}  order"]
    for lap in dict.fromkeys(row["lap"] for row in race.laps):
        rows = [row for row in race.laps if row["lap"] == lap]
        ours = next((row for row in rows if row["ours"]), None)
        order = [f"[{r['car']}]" if r["ours"] else str(r["car"]) for r in sorted(
            (r for r in rows if r["position"]), key=lambda r: r["position"])]
        tyre = f"{ours['compound']} {ours['tyre_age_laps']}" + ("*" if ours["stopped"] else "") if ours else "out"
        time_s = f"{ours['lap_time_s']:8.2f}" if ours and ours["lap_time_s"] else f"{'-':>8}"
        lines.append(f"{lap:3d} {rows[0]['status']:6}{rows[0]['rain']:5.2f}  {tyre:10}{time_s}  {' '.join(order)}")
    lines += ["", *(f"{d['lap']:3d} {d['command']:40} {d['reason']}" + (f"  > {d['answer']}" if d["answer"] else "")
                    for d in race.decisions)]
    parts = ", ".join(f"{name} {value:.2f}" for name, value in race.score.items())
    return "\n".join([*lines, "", f"P{race.info['position']} (best possible P{race.info['best_position']}): {parts}"])
