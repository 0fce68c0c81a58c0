"""What the environment server costs: `python -m benchmarks.serve_bench [CLIENTS RACES]`, two minutes on two cores.

A server in a process of its own, and so many WebSocket clients (64) that play so many races (2 000) at once. Every
race is one of 120 that were played here beforehand: a reward that differs in its last bit is a reply of another race.
Server CPU is that of its process; the first time that a race is scored (the search for its best) is shown apart.
"""
from __future__ import annotations

import asyncio
import multiprocessing
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import psutil

from f1_pipelines.serve import F1Action, F1Env
from f1_pipelines.sim.environment.environment import RaceEnvironment
from f1_pipelines.sim.scenarios import FAMILIES

CALLS = ("STAY_OUT", "PIT_NOW hard", "PIT_NOW medium", "SET_MODE push", "SET_MODE tyre_save", "ATTACK_AHEAD",
         "INSPECT_FUEL_MARGIN", "REQUEST_FORECAST", "CHECK_OPPONENT_STRATEGY 1", "no command at all")
SEEDS = 20  # of each family


@dataclass
class Known:
    """A race as it must come back: what is called, what each lap pays."""

    family: str
    seed: int
    commands: list[str]
    rewards: list[float]


@dataclass
class Told:
    """What the clients saw."""

    step_s: list[float] = field(default_factory=list)  # of laps that are not the last
    flag_s: list[float] = field(default_factory=list)  # of last laps
    outcomes: Counter[str] = field(default_factory=Counter)


def known_races() -> list[Known]:
    """The races, played here."""
    races, environment, rng = [], RaceEnvironment(), np.random.default_rng(1)
    for family in FAMILIES:
        for seed in range(SEEDS):
            environment.reset(seed, family)
            race, done = Known(family, seed, [], []), False
            while not done:
                race.commands.append(str(rng.choice(CALLS, p=[0.55, *[0.05] * 9])))
                step = environment.step(race.commands[-1])
                race.rewards.append(step.reward)
                done = step.done
            races.append(race)
    return races


async def play(url: str, races: list[Known], clients: int, text: bool) -> Told:
    """Play all of them by so many clients at once."""
    told, left = Told(), list(reversed(races))

    async def client() -> None:
        async with F1Env(base_url=url) as env:
            while left:
                told.outcomes[await one(env, left.pop())] += 1

    async def one(env: F1Env, race: Known) -> str:
        await env.reset(family=race.family, seed=race.seed, text=text)
        for command, reward in zip(race.commands, race.rewards, strict=True):
            begin = time.perf_counter()
            result = await env.step(F1Action(command=command))
            (told.flag_s if result.done else told.step_s).append(time.perf_counter() - begin)
            if result.reward != reward or result.observation.race.family != race.family:
                return "CROSS-TALK"
        return "as expected" if result.done else "NOT OVER"

    await asyncio.gather(*(client() for _ in range(clients)))
    return told


def serve(ready: multiprocessing.Queue) -> None:
    """The server process."""
    import uvicorn

    from f1_pipelines.serve.app import create_app
    from f1_pipelines.serve.run import config_of, listen
    from f1_pipelines.serve.settings import serve_settings

    limits, reporter = serve_settings(), listen("127.0.0.1", 0)
    server = uvicorn.Server(config_of(create_app(limits), limits))
    ready.put(reporter.getsockname()[1])
    server.run(sockets=[reporter])


def measured(name: str, process: psutil.Process, url: str, races: list[Known], clients: int, text: bool) -> None:
    """Play and print a row."""
    before, begin = process.cpu_times(), time.perf_counter()
    told = asyncio.run(play(url, races, clients, text))
    wall_s, after = time.perf_counter() - begin, process.cpu_times()
    cpu_s = after.user + after.system - before.user - before.system
    steps = sum(len(race.commands) for race in races)
    quick = np.array(told.step_s) * 1e3
    print(f"{name:34} {clients:7d} {len(races):6d} {steps / wall_s:8,.0f} {1e3 * cpu_s / steps:9.2f} "
          f"{steps / cpu_s:11,.0f} {np.median(quick):8.2f} {np.percentile(quick, 99):7.1f} "
          f"{1e3 * np.median(told.flag_s):8.1f} {process.memory_info().rss / 2**20:8.0f}  {dict(told.outcomes)}",
          flush=True)


def main(clients: int = 64, races: int = 2000) -> None:
    """Print the table."""
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    server = context.Process(target=serve, args=(ready,), daemon=True)
    server.start()
    try:
        known = known_races()
        url, process = f"http://127.0.0.1:{ready.get(timeout=60)}", psutil.Process(server.pid)
        print(f"{'environment server, WebSocket':34} {'clients':>7} {'races':>6} {'steps/s':>8} {'CPU ms/st':>9} "
              f"{'steps/CPU s':>11} {'p50 ms':>8} {'p99 ms':>7} {'flag ms':>8} {'MiB':>8}")
        measured("first time, scored anew", process, url, known, 1, False)
        measured("no text, alone", process, url, known, 1, False)
        measured("text, alone", process, url, known, 1, True)
        many = (known * (races // len(known) + 1))[:races]
        for part in range(4):  # memory must not climb from part to part
            measured(f"no text, part {part + 1} of 4", process, url, many[part::4], clients, False)
        measured("text", process, url, many[::4], clients, True)
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
