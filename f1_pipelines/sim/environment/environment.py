"""One race, seen from one pit wall: `reset(seed, family, split)` and `step(command)`."""
from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from f1_pipelines.sim.engine.parameters import STATUSES
from f1_pipelines.sim.engine.race import prepare
from f1_pipelines.sim.engine.state import RaceState, new_state
from f1_pipelines.sim.engine.step import step as drive
from f1_pipelines.sim.environment.answers import NOT_UNDERSTOOD, answer_of
from f1_pipelines.sim.environment.commands import BadCommand, Command, parse
from f1_pipelines.sim.environment.inspections import Answer
from f1_pipelines.sim.environment.notes import Notes
from f1_pipelines.sim.environment.observation import Observation, observe
from f1_pipelines.sim.environment.pit_wall import OnTrack, PitWallState
from f1_pipelines.sim.scenarios import (
    EGO,
    ENV_VERSION,
    GRAND_PRIX,
    BadScenario,
    GrandPrix,
    Scenario,
    make_grand_prix,
    make_scenario,
    plans_of,
    setup_of,
)
from f1_pipelines.sim.scenarios.opponents import calls_with
from f1_pipelines.sim.scoring.dimensions import Score
from f1_pipelines.sim.scoring.score import potential, score_race

REWARDS = ("shaped", "terminal")
LONGEST_KEY = 60  # characters of a weekend


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
    """A race engineer's race.

    Observation: `Observation`, whose `text` a model reads (at most 220 tokens).
    Actions: one of 21 commands as text, or a parsed `Command`; see `commands.usage()`. Each takes one lap. What does
        not parse is counted and explained in `info["error"]`; the car stays out.
    Reward: differences of a potential, which add up to the score in [0, 1]; or, with `reward="terminal"`, nothing
        until the flag and then the score.
    Start: the grid, before lap 1, of a sprint or, with a weekend and a car, of a Grand Prix. End: the flag; DONE drives
        to it without further calls, so does a car that is out.
    Version: ENV_VERSION, in every observation and every final `info`.
    """

    def __init__(self, reward: str = "shaped", weekends: Callable[[str], GrandPrix] | None = None) -> None:
        """
        Args:
            reward: `shaped` or `terminal`.
            weekends: Finds the weekend of a `grand_prix` by its key. None: no race of that kind can be made.
        """
        if reward not in REWARDS:
            raise ValueError(f"reward must be one of {', '.join(REWARDS)}; got {reward!r}.")
        self._reward, self._weekends = reward, weekends
        self._scenario: Scenario | None = None
        self._score: Score | None = None
        self._history: list[RaceState] = []

    def reset(self, seed: int, family: str, split: str | None = None, circuit: str | None = None,
              weekend: str | None = None, car: str | int | None = None) -> Observation:
        """Begin the sprint of that family and seed; `split`, if given, must be the seed's.

        A `grand_prix` wants the weekend instead, and the car we sit behind by driver id or number.
        """
        if family != GRAND_PRIX:
            if weekend is not None or car is not None:
                raise BadScenario(f"weekend and car belong to grand_prix; {str(family)[:40]} is drawn from its seed.")
            return self.begin(make_scenario(family, seed, split, circuit))
        if self._weekends is None or weekend is None or car is None:
            raise BadScenario("a grand_prix is rebuilt from a weekend: RaceEnvironment(weekends=stored_weekend) of "
                              "f1_pipelines.weekend_scenarios, then reset(seed, 'grand_prix', weekend='2026-monaco', "
                              "car='leclerc').")
        if not isinstance(weekend, str) or len(weekend) > LONGEST_KEY:
            raise BadScenario(f"a weekend reads season-slug, like 2026-monaco; got {str(weekend)[:40]!r}.")
        if split is not None or circuit is not None:
            raise BadScenario("a grand_prix is of no split and runs where its weekend did: no split, no circuit.")
        return self.begin(make_grand_prix(self._weekends(weekend), car, seed))

    def begin(self, scenario: Scenario) -> Observation:
        """Begin a sprint that was made before."""
        self._scenario, self._plans, self._race = scenario, plans_of([scenario]), prepare(setup_of([scenario]))
        self._state: RaceState = new_state(self._race)
        self._history, self._wall, self._potential_paid, self._score = [self._state], PitWallState(), 0.0, None
        self._notes = Notes()
        return self._observe()

    def fork(self) -> RaceEnvironment:
        """The same race from here on, driven apart: same state, same noise, its own calls. A few microseconds."""
        twin = copy(self)
        twin._history, twin._wall, twin._notes = list(self._history), deepcopy(self._wall), self._notes.copy()
        return twin

    def step(self, command: str | Command) -> Step:
        """Call the coming lap.

        Raises:
            EpisodeOver: The race is over, or none has begun.
        """
        if self._scenario is None:
            raise EpisodeOver("no race has begun: call reset(seed, family) first.")
        if self._score is not None:
            raise EpisodeOver(f"the race is over after {self._scenario.laps} laps: call reset(seed, family).")
        answer, info, understood = self._take(command, answered=True)
        over = self._state.lap >= self._scenario.laps
        observation = self._observe(answer.text if answer else "", answer.facts if answer else None, over)
        if over:
            self._finish(info)
        info.update(command=None if understood is None else str(understood), env_version=ENV_VERSION)
        return Step(observation, self._pay(over), over, info)

    def advance(self, command: str | Command) -> tuple[float, bool]:
        """`step` for code that looks at nothing: reward and done, no observation, no answer and no notes."""
        if self._scenario is None or self._score is not None:
            raise EpisodeOver("no race is on: call reset(seed, family) first.")
        self._take(command, answered=False)
        over = self._state.lap >= self._scenario.laps
        if over:
            self._finish({})
        return self._pay(over), over

    def _take(self, command: str | Command, answered: bool) -> tuple[Answer | None, dict[str, Any], Command | None]:
        """Carry out a command: the answer, what went wrong, the command that was understood."""
        answer: Answer | None = None
        understood: Command | None = None
        info: dict[str, Any] = {}
        scenario = self.scenario
        try:
            understood = command if isinstance(command, Command) else parse(command)
            call = self._wall.call(understood, scenario, self._race, self._state)
            answer = answer_of(understood, scenario, self._race, self._state) if answered else None
            if answer is not None:
                self._notes.write(self._state.lap + 1, understood, answer.facts)
        except BadCommand as problem:
            self._wall.illegal += 1
            call, info["error"] = self._wall.on_track(), str(problem)
            understood, answer = None, Answer(NOT_UNDERSTOOD, {})
        before = self._state
        self._drive(call)
        if answered:
            self._notes.driven(self._wall.mode, self._wall.temp, STATUSES[before.status[0]],
                               self._state.stops[0, EGO] > before.stops[0, EGO])
        if understood is not None and understood.verb == "DONE":
            self._wall.left_laps = max(scenario.laps - self._state.lap, 0)
        # Nobody is left to call, or to be called.
        if self._wall.left_laps or (self._state.any_out and self._state.out[0, EGO]):
            while self._state.lap < scenario.laps:
                self._drive(self._wall.on_track())
        return answer, info, understood

    def _finish(self, info: dict[str, Any]) -> None:
        self._score, details = score_race(self.scenario, self._race, self._history, self._wall)
        info.update(details, score=self._score.total, dimensions=self._score.as_dict())

    @property
    def scenario(self) -> Scenario:
        """The sprint with its future: for scoring, oracles and tests, not for engineers.

        Raises:
            EpisodeOver: No race has begun.
        """
        if self._scenario is None:
            raise EpisodeOver("no race has begun: call reset(seed, family) first.")
        return self._scenario

    @property
    def score(self) -> Score | None:
        """The score once the race is over."""
        return self._score

    @property
    def final_score(self) -> Score:
        """The score of a race that is over.

        Raises:
            EpisodeOver: It is not over yet.
        """
        if self._score is None:
            raise EpisodeOver("the race is not over yet: step until done, then read its score.")
        return self._score

    @property
    def history(self) -> list[RaceState]:
        """States after each lap so far: for tables and tests, not for engineers."""
        return self._history

    def _drive(self, call: OnTrack) -> None:
        hold = None if call.hold_gap < 0 else np.array([call.hold_gap])
        let = None if call.let_by < 0 else np.array([call.let_by])
        calls = calls_with(self._race, self._state, self._plans, call.pit, call.drive, hold, let)
        self._state = drive(self._race, self._state, calls)
        self._history.append(self._state)

    def _pay(self, over: bool) -> float:
        if self._reward == "terminal":
            return self.final_score.total if over else 0.0
        now = self.final_score.total if over else potential(self._race, self._history, self._wall.illegal).item()
        paid, self._potential_paid = now - self._potential_paid, now
        return paid

    def _observe(self, answer: str = "", facts: dict[str, Any] | None = None, over: bool = False) -> Observation:
        return observe(self.scenario, self._race, self._state, self._wall, answer, facts, over,
                       notes=self._notes.latest())
