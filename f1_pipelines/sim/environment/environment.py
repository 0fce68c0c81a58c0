"""One race from one pit wall, as text: `reset(seed, family, split)` and `step(command)`."""
from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from f1_pipelines.sim.engine.lap import CALL
from f1_pipelines.sim.engine.parameters import STATUSES
from f1_pipelines.sim.engine.state import RaceState
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
    prepared,
)
from f1_pipelines.sim.scenarios.opponents import step_field
from f1_pipelines.sim.scoring.dimensions import Score
from f1_pipelines.sim.scoring.score import potential, score_race

REWARDS = ("shaped", "terminal")
LONGEST_KEY = 60  # characters of a weekend's key


class EpisodeOver(RuntimeError):
    """No race is in progress: none has begun, or it is over."""


@dataclass(frozen=True)
class Step:
    """The result of a command."""

    observation: Observation
    reward: float
    done: bool
    info: dict[str, Any]


class RaceEnvironment:
    """The race engineer's environment.

    Observation: `Observation`; models read its `text` (at most `prompt.MAX_TOKENS` tokens).
    Actions: one of `commands.VERBS` with its argument, as text or as a parsed `Command`; see `commands.usage()`. Each
        takes one lap. Text that does not parse is counted and explained in `info["error"]`; the car stays out.
    Reward: differences of a potential, which sum to the score in [0, 1]; with `reward="terminal"`, 0 before the flag
        and the score at the flag.
    Start: the grid of a sprint or, with a weekend and a car, of a Grand Prix, before lap 1.
    End: the flag. After DONE, or once the car is out, the environment drives on to the flag without further commands.
    Version: ENV_VERSION, in every observation and in the `info` of every step.
    """

    def __init__(self, reward: str = "shaped", weekends: Callable[[str], GrandPrix] | None = None) -> None:
        """
        Args:
            reward: `shaped` or `terminal`.
            weekends: Looks up the weekend of a `grand_prix` by its key. None: only sprints can be raced.
        """
        if reward not in REWARDS:
            raise ValueError(f"reward must be one of {', '.join(REWARDS)}; got {reward!r}.")
        self._reward, self._weekends = reward, weekends
        self._scenario: Scenario | None = None
        self._score: Score | None = None
        self._history: list[RaceState] = []

    def reset(self, seed: int, family: str, split: str | None = None, circuit: str | None = None,
              weekend: str | None = None, car: str | int | None = None) -> Observation:
        """Begin a race.

        Args:
            seed: Seed of the sprint or the Grand Prix.
            family: Scenario family, or `grand_prix`.
            split: Split that the seed must belong to; None for any. Sprints only.
            circuit: Circuit id; None for the seed's. Sprints only.
            weekend: Key of the weekend, such as 2026-monaco. Grand Prix only.
            car: Our car, by driver id or number. Grand Prix only.

        Raises:
            BadScenario: The arguments do not name a scenario.
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
        """Begin the race of an existing scenario."""
        self._scenario = scenario
        self._race, self._plans, self._state = prepared(scenario)
        self._history, self._wall, self._potential_paid, self._score = [self._state], PitWallState(), 0.0, None
        self._notes = Notes()
        return self._observe()

    def fork(self) -> RaceEnvironment:
        """Copy the race in progress: same state and noise, commands of its own. Takes a few microseconds."""
        twin = copy(self)
        twin._history, twin._wall, twin._notes = list(self._history), deepcopy(self._wall), self._notes.copy()
        return twin

    def step(self, command: str | Command) -> Step:
        """Drive the next lap with a command.

        Raises:
            EpisodeOver: The race is over, or none has begun.
        """
        if self._scenario is None:
            raise EpisodeOver("no race has begun: call reset(seed, family) first.")
        if self._score is not None:
            raise EpisodeOver(f"the race is over after {self._scenario.laps} laps: call reset(seed, family).")
        answer, info, parsed = self._execute(command, answered=True)
        over = self._state.lap >= self._scenario.laps
        observation = self._observe(answer.text if answer else "", answer.facts if answer else None, over)
        if over:
            self._finish(info)
        info.update(command=None if parsed is None else str(parsed), env_version=ENV_VERSION)
        return Step(observation, self._step_reward(over), over, info)

    def advance(self, command: str | Command) -> tuple[float, bool]:
        """Step without observation, answer or notes. Returns reward and done.

        Raises:
            EpisodeOver: The race is over, or none has begun.
        """
        if self._scenario is None or self._score is not None:
            raise EpisodeOver("no race is on: call reset(seed, family) first.")
        self._execute(command, answered=False)
        over = self._state.lap >= self._scenario.laps
        if over:
            self._finish({})
        return self._step_reward(over), over

    def _execute(self, command: str | Command, answered: bool) -> tuple[Answer | None, dict[str, Any], Command | None]:
        """Drive a lap with a command. Returns its answer, `info` with the error if any, and the parsed command."""
        answer: Answer | None = None
        parsed: Command | None = None
        info: dict[str, Any] = {}
        scenario = self.scenario
        try:
            parsed = command if isinstance(command, Command) else parse(command)
            call = self._wall.call(parsed, scenario, self._race, self._state)
            answer = answer_of(parsed, scenario, self._race, self._state) if answered else None
            if answer is not None:
                self._notes.write(self._state.lap + 1, parsed, answer.facts)
        except BadCommand as problem:
            self._wall.illegal += 1
            call, info["error"] = self._wall.on_track(), str(problem)
            parsed, answer = None, Answer(NOT_UNDERSTOOD, {})
        before = self._state
        self._drive(call)
        if answered:
            self._notes.driven(self._wall.mode, self._wall.temp, STATUSES[before.status[0]],
                               self._state.stops[0, EGO] > before.stops[0, EGO])
        if parsed is not None and parsed.verb == "DONE":
            self._wall.left_laps = max(scenario.laps - self._state.lap, 0)
        # Handed over with DONE, or out of the race: no commands are left.
        if self._wall.left_laps or self._state.out[0, EGO]:
            while self._state.lap < scenario.laps:
                self._drive(self._wall.on_track())
        return answer, info, parsed

    def _finish(self, info: dict[str, Any]) -> None:
        self._score, details = score_race(self.scenario, self._race, self._history, self._wall)
        info.update(details, score=self._score.total, dimensions=self._score.as_dict())

    @property
    def scenario(self) -> Scenario:
        """The scenario with its future: for scoring, oracles and tests, never for engineers.

        Raises:
            EpisodeOver: No race has begun.
        """
        if self._scenario is None:
            raise EpisodeOver("no race has begun: call reset(seed, family) first.")
        return self._scenario

    @property
    def score(self) -> Score | None:
        """The score; None until the race is over."""
        return self._score

    @property
    def final_score(self) -> Score:
        """The score of the finished race.

        Raises:
            EpisodeOver: The race is not over.
        """
        if self._score is None:
            raise EpisodeOver("the race is not over yet: step until done, then read its score.")
        return self._score

    @property
    def history(self) -> list[RaceState]:
        """States after each lap so far, lap 0 first: for tables and tests, never for engineers."""
        return self._history

    def _drive(self, call: OnTrack) -> None:
        self._state = step_field(self._race, self._state, self._plans, np.array([call], CALL))
        self._history.append(self._state)

    def _step_reward(self, over: bool) -> float:
        if self._reward == "terminal":
            return self.final_score.total if over else 0.0
        now = self.final_score.total if over else potential(
            self._race, self._state, np.array([self._wall.illegal])).item()
        paid, self._potential_paid = now - self._potential_paid, now
        return paid

    def _observe(self, answer: str = "", facts: dict[str, Any] | None = None, over: bool = False) -> Observation:
        return observe(self.scenario, self._race, self._state, self._wall, answer, facts, over,
                       notes=self._notes.latest())
