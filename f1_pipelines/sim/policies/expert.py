"""The expert: plans anew each lap over futures sampled from its belief.

It sees observations only, never the scenario or the race. Each lap has one command, for which a stop, a question, a
message and a change of driving compete.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from f1_pipelines.sim.engine.hashing import stable_hash
from f1_pipelines.sim.engine.parameters import COMPOUNDS, HARD, INTER, CircuitParameters
from f1_pipelines.sim.environment.commands import STAY, Command
from f1_pipelines.sim.environment.observation import Observation
from f1_pipelines.sim.policies.belief import Belief, rain_now
from f1_pipelines.sim.policies.candidates import driving_options, stop_plans
from f1_pipelines.sim.policies.policy import Decision
from f1_pipelines.sim.policies.sampled_futures import Outcomes, Plan, SampledFutures
from f1_pipelines.sim.policies.sampling import sample
from f1_pipelines.sim.policies.successive_halving import evaluate_plans
from f1_pipelines.sim.scenarios.scenario import MAX_LAPS

FUTURES = 96
# Of a Grand Prix: futures; those that prefilter plans; plans that pass, stopping now or later each; those for driving.
RACE_FUTURES, PREFILTER_FUTURES, PREFILTER_PLANS, DRIVING_FUTURES = 24, 4, 6, 8
STOP_NOW_S = 0.25  # minimum gain of a stop over waiting
ANNOUNCED_BONUS_S = 2.5  # bonus of a stop as announced
DRIVE_GAIN_S, URGENT_DRIVE_GAIN_S = 0.4, 4.0  # minimum gain of a change of driving; gain that precedes questions
ANNOUNCE_FIRST_S = 2.0  # a stop that gains less over the next lap is announced first
ANSWER_FACTS = {"REQUEST_FORECAST": "rain", "INSPECT_FUEL_MARGIN": "fuel_margin_laps",
                "INSPECT_TYRE_DEGRADATION": "tyre_laps_left"}  # fact that identifies the answer to each question
RADIOED_STOP = re.compile(r"box lap (\d+) for (\w+)s\b")
TOPICS = {"rain": re.compile("rain on lap"), "rival": re.compile(r"car \d+ is"), "stay": re.compile("stay out"),
          "closed": re.compile("(safety car|vsc) is out")}  # topics of messages, by their text
MIN_AGREEMENT = 0.7  # share of futures that must agree on a stop to announce it


@dataclass
class StopEvaluation:
    """The best plan of stops, and what the alternatives cost."""

    plan: Plan
    now: int  # compound to change to in the next lap, -1 for none
    wait_s: float  # cost of waiting minus cost of stopping now; inf if either is missing
    next_lap: int  # most frequent lap of the next stop, 0 for none
    next_compound: int  # its compound
    agreement: float  # share of futures with this stop
    costs_s: dict[str, float]  # cost of stopping now for each compound, and of waiting


class Expert:
    """A race engineer that simulates candidate plans in sampled futures."""

    def __init__(self, futures: int = FUTURES, circuits: Mapping[str, CircuitParameters] | None = None) -> None:
        """
        Args:
            futures: Number of futures sampled in each lap of a sprint.
            circuits: Public parameters by circuit id; the embedded priors apply to circuits that are missing.
        """
        self._futures, self._circuits = futures, circuits

    def begin(self, observation: Observation) -> None:
        """Start a race."""
        self._belief = Belief.of(observation, self._circuits)
        self._count = min(self._futures, RACE_FUTURES) if observation.weekend else self._futures
        self._last: Observation | None = None
        self._announced: set[str] = set()
        self._announced_stop: tuple[int, int] | None = None
        self._asked_on: dict[str, int] = {}

    def see(self, o: Observation) -> None:
        """Update the belief with an observation. The commands so far, noted in it, may be another policy's."""
        self._belief.see(o, self._last)
        self._last = o
        self._asked_on |= {verb: o.lap - 1 for verb, fact in ANSWER_FACTS.items() if fact in o.facts and not o.done}
        for note in o.notes:
            if note.startswith(f"L{o.lap - 1} told"):
                self._read_note(note.lower())

    def _read_note(self, words: str) -> None:
        """Record what a noted message has announced."""
        stop = RADIOED_STOP.search(words)
        if stop and stop[2] in COMPOUNDS:
            self._announced_stop = (int(stop[1]), COMPOUNDS.index(stop[2]))
        self._announced |= {topic for topic, mark in TOPICS.items() if mark.search(words)}

    def decide(self, o: Observation) -> Decision:
        """The command of the next lap."""
        self.see(o)
        rng = np.random.default_rng(stable_hash(
            "expert", o.family, o.circuit, o.number, o.lap, *(c.gap_s for c in o.cars)))
        futures = sample(o, self._belief, self._count, rng)
        best = self._stops(o, futures)
        self._costs_s = dict(best.costs_s)
        decision = self._call(o, futures, best)
        if _verb(decision) in ("REQUEST_FORECAST", "INSPECT_FUEL_MARGIN", "INSPECT_TYRE_DEGRADATION"):
            self._asked_on[_verb(decision)] = o.lap
        least = min(self._costs_s.values(), default=0.0)
        return replace(decision, costs_s={name: cost - least for name, cost in self._costs_s.items()})

    def _call(self, o: Observation, futures: SampledFutures, best: StopEvaluation) -> Decision:
        """Choose the command of the lap."""
        question = self._must_ask(o, best)
        if question is not None and _verb(question) == "REQUEST_FORECAST" and o.wetness < 0.05:
            return question  # before any stop that the forecast could change
        if best.now >= 0 and best.wait_s > STOP_NOW_S:
            known = self._announced_stop
            announced = known is not None and known[1] == best.now and abs(known[0] - o.lap) <= 1
            if not announced and best.wait_s < ANNOUNCE_FIRST_S and o.status == "green" and o.laps - o.lap > 2:
                self._announced_stop = (o.lap + 1, best.now)
                return _radio(f"Box lap {o.lap + 1} for {COMPOUNDS[best.now]}s",
                              f"A stop now gains {best.wait_s:.1f} s only: better to prepare the driver first.")
            return self._stop(o, best)
        soon = best.next_lap == o.lap + 1 and best.agreement >= MIN_AGREEMENT and self._announced_stop is None
        if soon and (message := self._message(o, best)) is not None:
            return message
        if question is not None and o.lap <= 3 and o.status == "green" and o.wetness == 0:
            return question
        gain, drive, words = self._driving(o, futures, best.plan)
        if drive is not None and gain > URGENT_DRIVE_GAIN_S:
            return Decision(drive, words)
        if question is not None:
            return question
        if (message := self._message(o, best)) is not None:
            return message
        pushing = drive is not None and drive.word in ("push", "race")
        asks = self._may_ask(o, best)
        if pushing and asks is not None and _verb(asks) == "INSPECT_FUEL_MARGIN":
            return asks
        if drive is not None and gain > DRIVE_GAIN_S:
            return Decision(drive, words)
        return asks or Decision(STAY, self._plan_in_words(o, best))

    # Stops ------------------------------------------------------------------------------------------------------

    def _stops(self, o: Observation, futures: SampledFutures) -> StopEvaluation:
        candidates = stop_plans(o, self._belief)
        if o.weekend:
            candidates = _prefilter(futures, candidates, o.lap)
        survivors, outcomes = evaluate_plans(futures, candidates, lambda part: _stops_now(part, o.lap),
                                             lambda part: self._mean_s(o, part))
        mean, now = self._mean_s(o, outcomes), _stops_now(outcomes, o.lap)
        top = int(mean.argmin())
        stopping, waiting = mean[now >= 0], mean[now < 0]
        wait = float(waiting.min() - stopping.min()) if len(stopping) and len(waiting) else np.inf
        stops = outcomes.stop_lap[top] * 8 + outcomes.stop_compound[top]
        values, counts = np.unique(stops, return_counts=True)
        often = int(values[counts.argmax()])
        lap, compound = (often + 1) // 8, (often + 1) % 8 - 1
        costs = {str(Command("PIT_NOW", COMPOUNDS[tyre])): float(mean[now == tyre].min()) for tyre in {*now[now >= 0]}}
        if len(waiting):
            costs[str(STAY)] = float(waiting.min())
        plan, agreement = candidates[survivors[top]], float(counts.max() / len(stops))
        return StopEvaluation(plan, int(now[top]), wait, lap, compound, agreement, costs)

    def _mean_s(self, o: Observation, outcomes: Outcomes) -> np.ndarray:
        """(K,) mean cost of each plan [s], less a bonus for stops as announced."""
        mean = outcomes.cost_s.mean(axis=1)
        if self._announced_stop is None or o.lap > self._announced_stop[0] + 1:
            return mean
        lap, compound = self._announced_stop
        as_announced = (np.abs(outcomes.stop_lap - lap) <= 1) & (outcomes.stop_compound == compound)
        return mean - ANNOUNCED_BONUS_S * max(o.laps / MAX_LAPS, 1.0) * as_announced.mean(axis=1)

    def _stop(self, o: Observation, best: StopEvaluation) -> Decision:
        name = COMPOUNDS[best.now]
        why = "track is closed" if o.status != "green" else "water calls for it" if best.now >= INTER or \
            COMPOUNDS.index(o.own.compound) >= INTER else "best lap in the sampled futures"
        gain = "" if not np.isfinite(best.wait_s) else f", {best.wait_s:.1f} s better than waiting"
        return Decision(Command("PIT_NOW", name), f"Stop for {name}: {why}{gain}.")

    # Driving ----------------------------------------------------------------------------------------------------

    def _driving(self, o: Observation, futures: SampledFutures, plan: Plan) -> tuple[float, Command | None, str]:
        """Gain of the best change of driving [s], its command and the reason."""
        if o.status != "green":
            return 0.0, None, ""
        options = driving_options(o, self._belief, plan)
        futures = futures.head(DRIVING_FUTURES) if o.weekend else futures
        verbs = list(dict.fromkeys(command for _, command in options))
        kinds = np.array([verbs.index(command) for _, command in options])
        survivors, outcomes = evaluate_plans(futures, [p for p, _ in options], lambda _: kinds,
                                             lambda part: part.cost_s.mean(axis=1))
        costs, options = outcomes.cost_s.mean(axis=1), [options[k] for k in survivors]
        top = int(costs.argmin())
        command = options[top][1]
        carrying_on = min(cost for cost, (_, other) in zip(costs, options, strict=True) if other is None)
        gain = float(carrying_on - costs[top])
        staying = self._costs_s.get(str(STAY), 0.0)
        for cost, (_, other) in zip(costs, options, strict=True):
            if other is not None:
                cost_s = staying + float(cost - carrying_on)
                self._costs_s[str(other)] = min(cost_s, self._costs_s.get(str(other), cost_s))
        return gain, command, f"{command}: {gain:.1f} s better than carrying on in the sampled futures."

    # Questions --------------------------------------------------------------------------------------------------

    def _must_ask(self, o: Observation, best: StopEvaluation) -> Decision | None:
        belief = self._belief
        fuel = "INSPECT_FUEL_MARGIN" not in self._asked_on
        if fuel and (o.rain_chance < 0.5 or "REQUEST_FORECAST" in self._asked_on):
            return Decision(Command("INSPECT_FUEL_MARGIN"), "The tank may be short, and saving is cheapest early.")
        if o.rain_chance and not belief.dry and not belief.onset:
            asked_on, forecast = self._asked_on.get("REQUEST_FORECAST"), belief.forecast
            if asked_on is None:
                return Decision(Command("REQUEST_FORECAST"), "Rain decides this race and its lap is not known.")
            likely = forecast is not None and forecast.chance > 0.2
            if forecast and not belief.exact and o.lap > asked_on and (
                    o.lap >= forecast.onset_lap - 2 if likely else o.lap == forecast.onset_lap - 1):
                return Decision(Command("REQUEST_FORECAST"), "The radar shows by now whether it begins.")
        return None

    def _may_ask(self, o: Observation, best: StopEvaluation) -> Decision | None:
        belief, left = self._belief, self._belief.left_laps(o)
        to_go = o.laps - o.lap + 1
        if belief.onset and "REQUEST_FORECAST" in self._asked_on and rain_now(o) and to_go > 3 \
                and self._asked_on["REQUEST_FORECAST"] <= belief.onset:
            return Decision(Command("REQUEST_FORECAST"), "How long the rain lasts decides the next change.")
        fresh = belief.tyre_left is None and o.lap - self._asked_on.get("INSPECT_TYRE_DEGRADATION", -9) > 2
        if fresh and COMPOUNDS.index(o.own.compound) <= HARD and left < 5 and left < to_go + 1.5 and to_go > 2:
            return Decision(Command("INSPECT_TYRE_DEGRADATION"), "The end of this set decides when to stop.")
        if o.lap > 0.6 * o.laps and to_go > 2 and -0.1 < belief.fuel_laps < 0.4 and o.status == "green" \
                and o.lap - self._asked_on.get("INSPECT_FUEL_MARGIN", 0) > 4:
            return Decision(Command("INSPECT_FUEL_MARGIN"), "The margin is thin and was last read a while ago.")
        return None

    # Messages ---------------------------------------------------------------------------------------------------

    def _message(self, o: Observation, best: StopEvaluation) -> Decision | None:
        if o.status in ("sc", "vsc") and "closed" not in self._announced:
            self._announced.add("closed")
            word = "Safety car" if o.status == "sc" else "VSC"
            return _radio(f"{word} is out, keep the delta", "The driver has to know that the track is closed.")
        forecast, words, why = self._belief.forecast, [], []
        likely = forecast is not None and forecast.chance > 0.5 and not self._belief.onset and not self._belief.dry
        onset = forecast.onset_lap if forecast is not None else 0
        if "rain" not in self._announced and (rain_now(o) or (likely and onset - 2 <= o.lap <= onset)):
            words.append(f"rain on lap {o.lap if rain_now(o) else onset}")
            why.append("rain is due")
        if best.next_lap == o.lap + 1 and best.agreement >= MIN_AGREEMENT:
            known = self._announced_stop
            if known is None or known[1] != best.next_compound or abs(known[0] - best.next_lap) > 1:
                words.append(f"box lap {best.next_lap} for {COMPOUNDS[best.next_compound]}s")
                why.append("the stop is close")
        if words:
            if why[0] == "rain is due":
                self._announced.add("rain")
            if why[-1] == "the stop is close":
                self._announced_stop = (best.next_lap, best.next_compound)
            return _radio(", ".join(words).capitalize(), f"The driver has to know: {' and '.join(why)}.")
        if o.rival and "rival" not in self._announced and o.lap > 2:
            rival = next(c for c in o.cars if c.number == o.rival)
            if rival.running:
                self._announced.add("rival")
                side = "behind" if rival.gap_s > 0 else "ahead"
                text = f"Car {o.rival} is {abs(rival.gap_s):.1f} s {side}"
                return _radio(text, "The title is decided against that car.")
        no_stop = not best.next_lap and best.agreement >= MIN_AGREEMENT and o.own.stops == 0
        if no_stop and "stay" not in self._announced and 2 <= o.laps - o.lap <= 6 \
                and (self._belief.dry or self._belief.onset == 0) and o.wetness < 0.05:
            self._announced.add("stay")
            return _radio("Stay out, no stop", "No stop pays any more, so the driver can plan for the flag.")
        return None

    def _plan_in_words(self, o: Observation, best: StopEvaluation) -> str:
        plan = best.plan
        if plan.stop_lap > o.lap:
            when = " or under a closed track" if plan.closed else ""
            return f"Stay out; the stop is planned for lap {plan.stop_lap} on {COMPOUNDS[plan.compound]}{when}."
        return "Stay out; no stop pays in the sampled futures."


def _stops_now(outcomes: Outcomes, lap: int) -> np.ndarray:
    """(K,) compound of a stop in lap `lap`, -1 for none. All futures agree on the next lap."""
    return np.where(outcomes.stop_lap[:, 0] == lap, outcomes.stop_compound[:, 0], -1)


def _prefilter(futures: SampledFutures, candidates: list[Plan], lap: int) -> list[Plan]:
    """Keep the best of each kind of plan, driven without other cars, among stops now and among later stops."""
    cost = futures.head(PREFILTER_FUTURES).alone().outcomes(candidates).cost_s.mean(axis=1)
    best_by_stops: dict[tuple[int, ...], Plan] = {}
    for k in cost.argsort(kind="stable"):
        plan = candidates[k]
        key = (plan.stop_lap == lap, plan.stop_lap // 4, plan.compound, plan.second_stop_lap > 0, plan.closed)
        if sum(old[0] == key[0] for old in best_by_stops) < PREFILTER_PLANS:
            best_by_stops.setdefault(key, plan)
    return list(best_by_stops.values())


def _radio(text: str, reason: str) -> Decision:
    return Decision(Command("RADIO_DRIVER", text=text), reason)


def _verb(decision: Decision) -> str:
    """The verb of one of the expert's decisions, whose commands are always parsed."""
    return cast("Command", decision.command).verb
