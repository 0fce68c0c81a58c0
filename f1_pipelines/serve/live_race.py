"""A running race, lap by lap, controlled by a policy or by hand. /simulate returns it; the live page shows it."""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from f1_pipelines.sim.engine.parameters import COMPOUNDS, STATUSES
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.state import RaceState
from f1_pipelines.sim.environment.environment import EpisodeOver, RaceEnvironment, Step
from f1_pipelines.sim.policies.policy import Decision, Policy
from f1_pipelines.sim.scenarios import EGO, ENV_VERSION, Scenario, setup_of
from f1_pipelines.sim.scenarios.opponents import wetness_now

CAR_STATUSES = ("running", "accident", "mechanical", "out of fuel")  # by RaceState.out


@dataclass(frozen=True)
class CarOnLap:
    """One car as it crosses the line."""

    number: int
    driver: str  # driver id in a Grand Prix, else empty
    ours: bool
    position: int
    gap_s: float | None  # to the leader; None for a retired car
    lap_time_s: float | None  # None on the grid and for a retired car
    compound: str  # used in this lap; on the grid, the starting compound
    tyre_age_laps: int
    stops: int
    stopped: bool  # whether it made a pit stop at the end of this lap
    standing: str  # one of CAR_STATUSES


@dataclass(frozen=True)
class Call:
    """The command for a lap, the reason for it and the reply. `command` is the policy's text, valid or not."""

    command: str
    reason: str
    answer: str
    error: str | None  # why the command is invalid
    reward: float


@dataclass(frozen=True)
class Lap:
    """One lap of the race; lap 0 is the grid. `call` is None on the grid and after DONE."""

    lap: int
    laps: int  # race distance
    status: str  # track status in this lap: green, vsc, sc
    rain: float  # intensity, 0 to 1
    wetness: float  # water on the track, 0 to 1
    cars: tuple[CarOnLap, ...]  # by position
    call: Call | None
    score_so_far: float  # sum of the rewards
    next_status: str  # track status in the next lap


@dataclass(frozen=True)
class RaceEnd:
    """The total score, its dimensions and the facts they are computed from."""

    score: float
    dimensions: dict[str, float]
    details: dict[str, Any]


@dataclass
class LiveRace:
    """A race in progress.

    `lap()` drives the next lap with the policy's command, `drive(command)` with yours. Both return a `Lap`. After DONE,
    `lap()` returns the remaining laps one by one. `end` is set once the race is `over`.
    """

    scenario: Scenario
    policy: Policy | None = None
    name: str = "you"  # name of the policy
    env_version: int = ENV_VERSION
    laps: list[Lap] = field(default_factory=list)  # returned so far, the grid first
    end: RaceEnd | None = None

    def __post_init__(self) -> None:
        self._race = prepare(setup_of([self.scenario]))  # to compute wetness; the environment has its own
        self._environment = RaceEnvironment()
        self._observation = self._environment.begin(self.scenario)
        self._driven: deque[Lap] = deque()  # driven, not returned yet
        self._result: RaceEnd | None = None
        self._score = 0.0
        if self.policy is not None:
            self.policy.begin(self._observation)
        state = self._environment.history[0]
        self.laps.append(self._lap(None, state, None))

    @property
    def over(self) -> bool:
        """Whether the last lap has been returned."""
        return self.end is not None

    @property
    def handed_over(self) -> bool:
        """Whether DONE was called: all laps are driven, and `lap()` returns the remaining ones."""
        return self._result is not None and not self.over

    @property
    def briefing(self) -> str:
        """The public facts about the race before the start."""
        return self._observation.briefing

    @property
    def opponents(self) -> list[int]:
        """Car numbers that commands may name."""
        return sorted(self.scenario.numbers[1:])

    def lap(self) -> Lap:
        """Drive the next lap with the policy's command.

        Raises:
            EpisodeOver: The race is over, or there is no policy.
        """
        if self._result is None:
            if self.policy is None:
                raise EpisodeOver("this race has no policy: use drive(command)")
            self._step(self.policy.decide(self._observation))
        return self._next_lap()

    def drive(self, command: str, reason: str = "by hand") -> Lap:
        """Drive the next lap with this command. After an invalid one the car stays out; `call.error` says why.

        Raises:
            EpisodeOver: The race is over, or DONE was called.
        """
        if self.handed_over:
            raise EpisodeOver("DONE was called: no further commands; lap() returns the remaining laps")
        if not self.over:
            self._step(Decision(command, reason))
        return self._next_lap()

    def _step(self, decision: Decision) -> None:
        driven = len(self._environment.history)
        step = self._environment.step(decision.command)
        history = self._environment.history
        for at in range(driven, len(history)):
            call = _call_of(decision, step) if at == driven else None
            self._score += step.reward if at == driven else 0.0
            self._driven.append(self._lap(history[at - 1], history[at], call))
        self._observation = step.observation
        if step.done:
            self._result = race_end(step)

    def _next_lap(self) -> Lap:
        if not self._driven:
            raise EpisodeOver(f"the race is over after {self.scenario.laps} laps")
        self.laps.append(self._driven.popleft())
        if not self._driven:
            self.end = self._result
        return self.laps[-1]

    def _lap(self, before: RaceState | None, after: RaceState, call: Call | None) -> Lap:
        rain_lap = max(after.lap, 1) - 1
        return Lap(
            after.lap, self.scenario.laps, STATUSES[(before or after).status[0]],
            round(float(self.scenario.rain[rain_lap]), 2), round(float(wetness_now(self._race, after)[0]), 2),
            tuple(_car(self.scenario, before, after, k) for k in np.argsort(after.position[0]).tolist()), call,
            round(self._score, 4), STATUSES[after.status[0]])


def race_end(step: Step) -> RaceEnd:
    """Return the score from the final step of a race."""
    details = {name: value for name, value in step.info.items() if name not in ("command", "error")}
    dimensions = details.pop("dimensions")
    return RaceEnd(details.pop("score"), {name: value for name, value in dimensions.items() if name != "score"},
                   details)


def _call_of(decision: Decision, step: Step) -> Call:
    return Call(str(decision.command)[:400], decision.reason, step.observation.answer, step.info.get("error"),
                round(step.reward, 4))


def _car(scenario: Scenario, before: RaceState | None, after: RaceState, k: int) -> CarOnLap:
    running, tyres = not after.out[0, k], before or after  # a stop changes tyres at the end of the lap
    return CarOnLap(
        number=scenario.numbers[k], driver=scenario.drivers[k] if scenario.drivers else "", ours=k == EGO,
        position=int(after.position[0, k]),
        gap_s=round(float(after.elapsed_s[0, k] - after.leader_s[0]), 3) if running else None,
        lap_time_s=round(float(after.elapsed_s[0, k] - before.elapsed_s[0, k]), 3) if running and before else None,
        compound=COMPOUNDS[tyres.compound[0, k]], tyre_age_laps=int(tyres.age_laps[0, k]) + (before is not None),
        stops=int(after.stops[0, k]), stopped=before is not None and bool(after.stops[0, k] > before.stops[0, k]),
        standing=CAR_STATUSES[after.out[0, k]])
