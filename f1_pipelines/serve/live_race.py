"""A race while it runs, lap by lap, called by a policy or by a person: what /simulate tells and the live page shows."""
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
from f1_pipelines.sim.scenarios import ENV_VERSION, Scenario, setup_of
from f1_pipelines.sim.scenarios.opponents import wetness_now

OURS = 0  # car column
CAR_STATUSES = ("running", "accident", "mechanical", "out of fuel")  # by RaceState.out


@dataclass(frozen=True)
class CarOnLap:
    """One car at the line. What a car that stopped has no more is None."""

    number: int
    driver: str  # of a Grand Prix, else empty
    ours: bool
    position: int
    gap_s: float | None  # to the leader
    lap_time_s: float | None  # None on the grid
    compound: str  # that this lap was driven on; on the grid, that it starts on
    tyre_age_laps: int
    stops: int
    stopped: bool  # at the end of this lap
    standing: str  # one of STANDINGS


@dataclass(frozen=True)
class Call:
    """What our pit wall called for a lap, why, and what came of it. `command` is as it was said, parsed or not."""

    command: str
    reason: str
    answer: str
    error: str | None  # why it is no command
    reward: float


@dataclass(frozen=True)
class Lap:
    """One lap of the race; lap 0 is the grid. `call` is None on the grid and once the driver was left alone."""

    lap: int
    laps: int
    status: str  # of the track in this lap: green, vsc, sc
    rain: float
    wetness: float
    cars: tuple[CarOnLap, ...]  # by position
    call: Call | None
    score_so_far: float  # sum of the rewards
    next_status: str  # of the coming lap


@dataclass(frozen=True)
class RaceEnd:
    """The score in all, its six dimensions, and what it rests on."""

    score: float
    dimensions: dict[str, float]
    details: dict[str, Any]


@dataclass
class LiveRace:
    """A scenario, its environment and who calls it.

    `lap()` lets the policy call and returns the lap; `drive(command)` calls it by hand, whoever called before. Both
    return one `Lap`; after DONE the laps that are left come one by one from `lap()`. `end` is there once `over`.
    """

    scenario: Scenario
    policy: Policy | None = None
    name: str = "you"  # of who calls
    env_version: int = ENV_VERSION
    laps: list[Lap] = field(default_factory=list)  # shown so far, the grid first
    end: RaceEnd | None = None

    def __post_init__(self) -> None:
        self._race = prepare(setup_of([self.scenario]))  # for its water: the environment keeps its own
        self._environment = RaceEnvironment()
        self._observation = self._environment.begin(self.scenario)
        self._ahead: deque[Lap] = deque()
        self._finish: RaceEnd | None = None
        self._score = 0.0
        if self.policy is not None:
            self.policy.begin(self._observation)
        state = self._environment.history[0]
        self.laps.append(self._lap(None, state, None))

    @property
    def over(self) -> bool:
        """Whether the flag has been shown."""
        return self.end is not None

    @property
    def handed_over(self) -> bool:
        """Whether the driver was left alone: the laps to the flag are driven, `lap()` shows them."""
        return self._finish is not None and not self.over

    @property
    def briefing(self) -> str:
        """What everybody knows of this race before it begins."""
        return self._observation.briefing

    @property
    def text(self) -> str:
        """The observation before the coming lap as a model reads it."""
        return self._observation.text

    @property
    def opponents(self) -> list[int]:
        """Car numbers that commands may name."""
        return sorted(self.scenario.numbers[1:])

    def lap(self) -> Lap:
        """The next lap, called by the policy.

        Raises:
            EpisodeOver: The flag has been shown, or nobody but `drive` calls.
        """
        if self._finish is None:
            if self.policy is None:
                raise EpisodeOver("nobody sits on the pit wall: call this lap with drive(command)")
            self._call(self.policy.decide(self._observation))
        return self._show()

    def drive(self, command: str, reason: str = "by hand") -> Lap:
        """The next lap, called by hand. Text that is no command keeps the car out; `call.error` says why.

        Raises:
            EpisodeOver: The flag has been shown, or the race was handed to the driver.
        """
        if self.handed_over:
            raise EpisodeOver("the driver has the race to the flag: no further calls, lap() shows what is left")
        if not self.over:
            self._call(Decision(command, reason))
        return self._show()

    def _call(self, decision: Decision) -> None:
        driven = len(self._environment.history)
        step = self._environment.step(decision.command)
        history = self._environment.history
        for at in range(driven, len(history)):
            call = _call_of(decision, step) if at == driven else None
            self._score += step.reward if at == driven else 0.0
            self._ahead.append(self._lap(history[at - 1], history[at], call))
        self._observation = step.observation
        if step.done:
            self._finish = race_end(step)

    def _show(self) -> Lap:
        if not self._ahead:
            raise EpisodeOver(f"the race is over after {self.scenario.laps} laps")
        self.laps.append(self._ahead.popleft())
        if not self._ahead:
            self.end = self._finish
        return self.laps[-1]

    def _lap(self, before: RaceState | None, after: RaceState, call: Call | None) -> Lap:
        weather = max(after.lap, 1) - 1
        return Lap(
            after.lap, self.scenario.laps, STATUSES[(before or after).status[0]],
            round(float(self.scenario.rain[weather]), 2), round(float(wetness_now(self._race, after)[0]), 2),
            tuple(_car(self.scenario, before, after, k) for k in np.argsort(after.position[0]).tolist()), call,
            round(self._score, 4), STATUSES[after.status[0]])


def race_end(step: Step) -> RaceEnd:
    """The score of the step that ended a race."""
    details = {name: value for name, value in step.info.items() if name not in ("command", "error")}
    dimensions = details.pop("dimensions")
    return RaceEnd(details.pop("score"), {name: value for name, value in dimensions.items() if name != "score"},
                   details)


def _call_of(decision: Decision, step: Step) -> Call:
    return Call(str(decision.command)[:400], decision.reason, step.observation.answer, step.info.get("error"),
                round(step.reward, 4))


def _car(scenario: Scenario, before: RaceState | None, after: RaceState, k: int) -> CarOnLap:
    running, on = not after.out[0, k], before or after
    return CarOnLap(
        number=scenario.numbers[k], driver=scenario.drivers[k] if scenario.drivers else "", ours=k == OURS,
        position=int(after.position[0, k]),
        gap_s=round(float(after.elapsed_s[0, k] - after.leader_s[0, 0]), 3) if running else None,
        lap_time_s=round(float(after.elapsed_s[0, k] - before.elapsed_s[0, k]), 3) if running and before else None,
        compound=COMPOUNDS[on.compound[0, k]], tyre_age_laps=int(on.age_laps[0, k]) + (before is not None),
        stops=int(after.stops[0, k]), stopped=before is not None and bool(after.stops[0, k] > before.stops[0, k]),
        standing=CAR_STATUSES[after.out[0, k]])
