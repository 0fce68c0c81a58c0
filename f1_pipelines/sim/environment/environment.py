"""One sprint, seen from one pit wall: `reset(seed, family, split)` and `step(command)`."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from f1_pipelines.sim.engine import step as drive
from f1_pipelines.sim.environment import inspections
from f1_pipelines.sim.environment.commands import BadCommand, Command, parse
from f1_pipelines.sim.environment.observation import Observation, observe
from f1_pipelines.sim.environment.wall import EGO, OnTrack, Wall
from f1_pipelines.sim.parameters import COMPOUNDS
from f1_pipelines.sim.race import prepare
from f1_pipelines.sim.scenarios import ENV_VERSION, Scenario, make_scenario, plans_of, setup_of
from f1_pipelines.sim.scenarios.opponents import calls_with
from f1_pipelines.sim.scoring.claims import CAR, CLOSED, FUEL, RAIN, STOP, claims_of
from f1_pipelines.sim.scoring.dimensions import Score
from f1_pipelines.sim.scoring.judge import judge, potential
from f1_pipelines.sim.state import RaceState, new_state

REWARDS = ("shaped", "terminal")


class EpisodeOver(RuntimeError):
    """A command after the end, or before the first reset."""


@dataclass(frozen=True)
class Step:
    """What a command brought."""

    observation: Observation
    reward: float
    done: bool
    info: dict[str, Any]


class RaceEnvironment:
    """A race engineer's sprint.

    Observation: `Observation`, whose `text` a model reads (at most 220 tokens).
    Actions: one of 21 commands as text, or a parsed `Command`; see `commands.usage()`. Each takes one lap. What does
        not parse is counted, told in `info["error"]`, and the car stays out.
    Reward: differences of a potential, which add up to the score in [0, 1]; or, with `reward="terminal"`, nothing
        until the flag and then the score.
    Start: the grid, before lap 1. End: the flag; DONE drives to it without further calls, so does a car that is out.
    Version: ENV_VERSION, in every observation and every final `info`.
    """

    def __init__(self, reward: str = "shaped") -> None:
        if reward not in REWARDS:
            raise ValueError(f"reward must be one of {', '.join(REWARDS)}; got {reward!r}.")
        self._reward = reward
        self._scenario: Scenario | None = None

    def reset(self, seed: int, family: str, split: str | None = None, circuit: str | None = None) -> Observation:
        """Begin the sprint of that family and seed; `split`, if given, must be the seed's."""
        return self.begin(make_scenario(family, seed, split, circuit))

    def begin(self, scenario: Scenario) -> Observation:
        """Begin a sprint that was made before."""
        self._scenario, self._plans, self._race = scenario, plans_of([scenario]), prepare(setup_of([scenario]))
        self._state: RaceState = new_state(self._race)
        self._history, self._wall, self._told, self._score = [self._state], Wall(), 0.0, None
        return self._observe()

    def step(self, command: str | Command) -> Step:
        """Call the coming lap.

        Raises:
            EpisodeOver: The race is over, or none has begun.
        """
        if self._scenario is None:
            raise EpisodeOver("no race has begun: call reset(seed, family) first.")
        if self._score is not None:
            raise EpisodeOver(f"the race is over after {self._scenario.laps} laps: call reset(seed, family).")
        answer, info, command = self._take(command, answered=True)
        over = self._state.lap >= self._scenario.laps
        text = "Not a command, car stays out." if "error" in info else answer.text if answer else ""
        observation = self._observe(text, answer.facts if answer else None, over)
        if over:
            self._finish(info)
        info.update(command=None if command is None else str(command), env_version=ENV_VERSION)
        return Step(observation, self._pay(over), over, info)

    def advance(self, command: str | Command) -> tuple[float, bool]:
        """`step` for code that looks at nothing: reward and done, no observation and no answer."""
        if self._scenario is None or self._score is not None:
            raise EpisodeOver("no race is on: call reset(seed, family) first.")
        self._take(command, answered=False)
        over = self._state.lap >= self._scenario.laps
        if over:
            self._finish({})
        return self._pay(over), over

    def _take(self, command: str | Command, answered: bool) -> tuple[inspections.Answer | None, dict[str, Any],
                                                                     Command | None]:
        """Carry out a command: the answer, what went wrong, the command that was understood."""
        answer, info = None, {}
        try:
            command = command if isinstance(command, Command) else parse(command)
            call = self._wall.call(command, self._scenario, self._race, self._state)
            answer = self._answer(command, call) if answered else None
        except BadCommand as problem:
            self._wall.illegal += 1
            call, info["error"] = self._wall.on_track(), str(problem)
            command = None
        self._drive(call)
        if command is not None and command.verb == "DONE":
            self._wall.left_laps = max(self._scenario.laps - self._state.lap, 0)
        if self._wall.left_laps or self._state.out[0, EGO]:  # nobody is left to call, or to be called
            while self._state.lap < self._scenario.laps:
                self._drive(self._wall.on_track())
        return answer, info, command

    def _finish(self, info: dict[str, Any]) -> None:
        self._score, details = judge(self._scenario, self._race, self._history, self._wall)
        info.update(details, score=self._score.total, dimensions=self._score.as_dict())

    @property
    def scenario(self) -> Scenario:
        """The sprint with its future: for scoring, oracles and tests, not for engineers."""
        return self._scenario

    @property
    def score(self) -> Score | None:
        """The score once the race is over."""
        return self._score

    @property
    def history(self) -> list[RaceState]:
        """States after each lap so far: for tables and tests, not for engineers."""
        return self._history

    def _drive(self, call: OnTrack) -> None:
        hold, let = (np.array([car]) if car >= 0 else None for car in (call.hold_gap, call.let_by))
        calls = calls_with(self._race, self._state, self._plans, call.pit, call.drive, hold, let)
        self._state = drive(self._race, self._state, calls)
        self._history.append(self._state)

    def _pay(self, over: bool) -> float:
        if self._reward == "terminal":
            return self._score.total if over else 0.0
        now = self._score.total if over else float(potential(self._race, self._history, self._wall.illegal)[0])
        paid, self._told = now - self._told, now
        return paid

    def _observe(self, answer: str = "", facts: dict[str, Any] | None = None, over: bool = False) -> Observation:
        return observe(self._scenario, self._race, self._state, self._wall, answer, facts, over)

    def _answer(self, command: Command, call: OnTrack) -> inspections.Answer | None:
        """What comes back to the pit wall; asked before the lap is driven."""
        s, race, state = self._scenario, self._race, self._state
        if command.verb == "RECOMMEND_PIT":
            text = f"Driver: coming in for {COMPOUNDS[call.pit]}." if call.pit >= 0 else "Driver: fine, staying out."
            return inspections.Answer(text, {"pit": call.pit})
        asked = {
            "INSPECT_TYRE_DEGRADATION": lambda: inspections.tyre_life(s, race, state),
            "INSPECT_FUEL_MARGIN": lambda: inspections.fuel_margin(s, race, state),
            "CHECK_OPPONENT_STRATEGY": lambda: inspections.opponent(s, s.column(command.car)),
            "REQUEST_FORECAST": lambda: inspections.forecast(s, state),
            "ASSESS_UNDERCUT_WINDOW": lambda: inspections.undercut(s, race, state),
            "REQUEST_INFO": lambda: inspections.information(s, command.word),
            "ESCALATE_TO_PRINCIPAL": lambda: inspections.principal(s),
            "RADIO_DRIVER": lambda: _heard("Driver", command.text, state.lap + 1),
            "DRAFT_PIT_WALL": lambda: _heard("Crew", command.text, state.lap + 1),
            "BRIEF_MEDIA": lambda: inspections.Answer("Statement is out.", {}),
        }.get(command.verb)
        return asked() if asked else None


def _heard(who: str, text: str, lap: int) -> inspections.Answer:
    """The listener repeats what he understood, so that a message that says nothing shows."""
    names = {STOP: "stop", RAIN: "rain", CLOSED: "track closed", CAR: "car", FUEL: "fuel"}
    heard = []
    for claim in claims_of(text, lap):
        words = names.get(claim.kind, "stay out")
        words += f" {COMPOUNDS[claim.compound]}" if claim.compound is not None else ""
        heard.append(words + (f" lap {claim.lap}" if claim.lap is not None else ""))
    return inspections.Answer(f"{who}: copy, {', '.join(heard)}." if heard else f"{who}: say again?", {})
