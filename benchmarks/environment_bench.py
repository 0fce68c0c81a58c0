"""What the environment costs: `python -m benchmarks.environment_bench`, one core, CPU time.

Steps per second of the vector form (six cars, opponents, features and rewards; making scenarios and scoring apart),
of the single form without and with text, also on seeds that were never judged, milliseconds a decision of the expert
and a reference (oracle search).
"""
from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from f1_pipelines.sim.environment.actions import ACTIONS
from f1_pipelines.sim.environment.commands import Command
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.environment.vector import VectorEnvironment
from f1_pipelines.sim.policies.expert import Expert
from f1_pipelines.sim.scenarios import FAMILIES, Scenario, make_scenario
from f1_pipelines.sim.scoring.reference import reference_of

DRIVING = [k for k, (verb, _) in enumerate(ACTIONS) if verb in ("PIT_NOW", "STAY_OUT", "SET_MODE", "ATTACK_AHEAD")]
PASSES = 9  # over the sprints of the single form: other work on the machine slows some of them


def cpu_s(work: Callable[[], object]) -> float:
    """CPU seconds of a piece of work."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def scenarios(count: int, family: str | None = None) -> list[Scenario]:
    """Scenarios of all families in turn, or of one."""
    names = [family] if family else list(FAMILIES)
    return [make_scenario(names[k % len(names)], k // len(names)) for k in range(count)]


def vector_rows() -> None:
    """Steps per second by batch size, memory, and the cost of what is not a step."""
    made = cpu_s(lambda: scenarios(600)) / 600
    print(f"make a scenario {1e6 * made:.0f} us\n{'episodes':>9} {'prepare us/ep':>14} {'steps/s':>12} {'peak MB':>8}")
    for count in (1, 16, 64, 256, 1024, 4096):
        chosen = (scenarios(min(count, 600)) * (count // 600 + 1))[:count]
        prepare = cpu_s(lambda chosen=chosen: VectorEnvironment(chosen)) / count
        env, rng = VectorEnvironment(chosen), np.random.default_rng(1)
        laps = max(s.laps for s in chosen)
        calls = np.where(rng.random((laps, count)) < 0.7, DRIVING[5], rng.choice(DRIVING, (laps, count)))

        def run(env: VectorEnvironment = env, calls: np.ndarray = calls) -> None:
            env.reset()
            for lap in calls:
                env.step(lap)

        used = statistics.median(cpu_s(run) for _ in range(max(PASSES, 3000 // count)))
        steps = sum(s.laps for s in chosen)
        tracemalloc.start()
        VectorEnvironment(chosen)
        run()
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        print(f"{count:9d} {1e6 * prepare:14.1f} {steps / used:12,.0f} {peak:8.1f}")


def drive_with_text(env: RaceEnvironment, scenario: Scenario) -> None:
    """Drive a whole race without a stop, reading each observation's text; judging follows the flag."""
    assert env.begin(scenario).text
    over = False
    while not over:
        step = env.step("STAY_OUT")
        over = step.done
        assert step.observation.text


def single_rows() -> None:
    """The single form, its text, the expert and the reference."""
    few = scenarios(48)
    env = RaceEnvironment()
    steps, stay = sum(s.laps - 1 for s in few), Command("STAY_OUT")
    passes = []
    for _ in range(PASSES):
        begun = bare = 0.0
        for s in few:
            begun += cpu_s(lambda s=s: env.begin(s))
            bare += cpu_s(lambda s=s: [env.advance(stay) for _ in range(s.laps - 1)])
        passes.append((bare, begun))
    bare, begun = min(passes)
    print(f"single, no observation   {steps / bare:10,.0f} steps/s, the best of {PASSES} passes (median "
          f"{steps / sorted(passes)[PASSES // 2][0]:,.0f}); to begin takes {1e6 * begun / len(few):.0f} us, "
          f"with it {steps / (bare + begun):,.0f}")
    text = 0.0
    for s in few:
        env.begin(s)
        text += cpu_s(lambda s=s: [env.step("STAY_OUT").observation.text for _ in range(s.laps - 1)])
    print(f"single, with text        {steps / text:10,.0f} steps/s")
    fresh = scenarios(600)[300:336]
    found = cpu_s(lambda: [reference_of(s) for s in fresh]) / len(fresh)
    print(f"reference (oracle)       {1e3 * found:10.1f} ms a scenario")
    fresh = scenarios(600)[400:436]
    whole = cpu_s(lambda: [drive_with_text(env, s) for s in fresh])
    print(f"fresh seeds, with text   {sum(s.laps for s in fresh) / whole:10,.0f} steps/s, judging included")
    worst, total, laps = 0.0, 0.0, 0
    for s in few[:18]:
        o, player, over = env.begin(s), Expert(), False
        player.begin(o)
        while not over:
            begin = time.process_time()
            decision = player.decide(o)
            used = time.process_time() - begin
            worst, total, laps = max(worst, used), total + used, laps + 1
            step = env.step(decision.command)
            o, over = step.observation, step.done
    print(f"expert                   {1e3 * total / laps:10.1f} ms a lap (worst {1e3 * worst:.0f})")


def main() -> None:
    """Print all rows."""
    vector_rows()
    single_rows()


if __name__ == "__main__":
    main()
