"""Practice: the model tries calls in the simulator and learns from what became of them, with trl's GRPO trainer.

Notable choices:
- A step plays some races with the current policy, picks moments in them at which calls drawn from the policy differ,
  and values each call by driving on with the policy itself (`values`). Moments at which all calls are alike teach
  nothing and are passed over; how many there were is logged.
- The reward of a call is its final score less the mean of its moment's calls. It is the environment's score: no judge,
  no second model.
- Prompts are those of `Rendering`, so SFT, practice, examination and service read the same tokens.
- Which races a step plays follows from (seed, step) alone, so a run that was killed goes on as if it had not been.
- Of several processes each plays its share of those races and tries its share of the moments, each moment whole.
"""
from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from f1_pipelines.engineer.crew import WrongCrew, crew_on, on_one_device
from f1_pipelines.engineer.engineer import Engineer
from f1_pipelines.engineer.profiles import GrpoSettings, Profile
from f1_pipelines.engineer.progress import SILENT, Curve, Listener, TrainingFailed
from f1_pipelines.engineer.scenes import Scenes
from f1_pipelines.engineer.sft import activation_checkpointing, last_checkpoint
from f1_pipelines.engineer.turns import TRAINED, race_keys
from f1_pipelines.engineer.values import Moment, moments_of, values_of
from f1_pipelines.engineer.watching import Watch
from f1_pipelines.sim.environment.commands import BadCommand, parse
from f1_pipelines.sim.parameters import COMPOUNDS
from f1_pipelines.sim.scenarios import Scenario
from f1_pipelines.sim.scenarios.dice import digest

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from f1_pipelines.engineer.rendering import Rendering

FIRST_RACE = 20_000  # of the train split's count: races that the SFT turns did not come from
POOL = 4_000  # races to practise on, of all families
SAVED_EVERY = 10
EASIEST = "dry_strategy_sprint"  # no rain, no closed track, no rival
DRY = ("soft", "medium", "hard")
WARN_ABOVE = {"parse_failures": 0.05, "clipped": 0.01, "dead_moments": 0.9, "kl_to_sft": 1.0}
WARN_BELOW = {"entropy": 0.005}
DEAD_SHARE = 0.95  # of moments without a difference: nothing can be learnt


class Practice:
    """Plays the races of each step and hands the calls to trl."""

    def __init__(self, rendering: Rendering, scenes: Scenes, told: GrpoSettings, seed: int, longest: int,
                 batch: int, share: slice = slice(None)) -> None:
        self._rendering, self._scenes, self._told, self._seed, self._share = rendering, scenes, told, seed, share
        self._longest, self._batch = longest, batch
        self._pool = race_keys("train", POOL // len(TRAINED), start=FIRST_RACE)
        self.numbers: dict[str, float] = {}  # of the last step, by name

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """trl's `rollout_func`: one sample for each prompt, moments adjacent."""
        started = time.process_time()
        model = trainer.accelerator.unwrap_model(trainer.model)
        engineer = Engineer(model, self._rendering, self._longest, self._batch)
        moments, samples, dead = self._tried(engineer, trainer.state.global_step)
        calls = [[self._rendering.command(ids) for ids in few] for few in samples]
        generating = time.process_time()
        caller = _Timed(engineer)
        ends = values_of(moments, calls, caller)
        scores = np.array([[end["score"] for end in few] for few in ends])
        simulated = time.process_time() - generating - caller.seconds
        flat = [call for few in calls for call in few]
        self.numbers = {
            "score": float(scores.mean()), "dead_moments": dead,
            "spread": float((scores.max(axis=1) - scores.min(axis=1)).mean()),
            "parse_failures": float(np.mean([not _parses(call) for call in flat])),
            "clipped": float(np.mean([len(ids) >= self._longest for few in samples for ids in few])),
            "rollout_s": time.process_time() - started, "simulator_s": simulated,
        }
        rewards = scores + self._shaping(moments, calls, ends)
        rewards -= rewards.mean(axis=1, keepdims=True)
        prompt_ids = [self._rendering.prompt_ids(moment.seen.text) for moment in moments]
        return {"prompt_ids": [ids for ids in prompt_ids for _ in range(self._told.samples)],
                "completion_ids": [ids for few in samples for ids in few], "logprobs": None,
                "gain": rewards.ravel().tolist()}

    def _shaping(self, moments: Sequence[Moment], calls: Sequence[Sequence[str]],
                 ends: Sequence[Sequence[Mapping[str, Any]]]) -> np.ndarray:
        """(moments, samples) what is added to the scores."""
        told, added = self._told, np.zeros((len(moments), self._told.samples))
        if told.two_compounds:
            added += told.two_compounds * np.array([[_used_two(moment.environment.scenario, end) for end in few]
                                                    for moment, few in zip(moments, ends, strict=True)])
        if told.agreement:
            for row, (moment, few) in enumerate(zip(moments, calls, strict=True)):
                best = str(moment.expert_call())
                added[row] += told.agreement * np.array([call == best for call in few])
        return added

    def _tried(self, engineer: Engineer, step: int) -> tuple[list[Moment], list[list[list[int]]], float]:
        """Moments at which drawn calls differ, the token ids drawn, and the share of moments where they did not."""
        told, rng = self._told, np.random.default_rng(digest("practice", self._seed, step))
        pool = [key for key in self._pool if key[0] == EASIEST] if step < told.easy_steps else self._pool
        keys = [pool[k] for k in rng.choice(len(pool), told.races, replace=False)][self._share]
        races = moments_of([self._scenes.scenario(*key) for key in keys], _Timed(engineer))
        laps = [moment for race in races for moment in race]
        chosen = [laps[k] for k in rng.permutation(len(laps))[:told.states * told.looks]]
        prompts = [self._rendering.prompt_ids(moment.seen.text) for moment in chosen]
        drawn = engineer.completions([ids for ids in prompts for _ in range(told.samples)], told.temperature)
        samples = [drawn[k * told.samples:(k + 1) * told.samples] for k in range(len(chosen))]
        differ = [k for k, few in enumerate(samples) if len({tuple(ids) for ids in few}) > 1]
        alike = [k for k in range(len(chosen)) if k not in set(differ)]
        kept = (differ + alike)[:told.states]
        return [chosen[k] for k in kept], [samples[k] for k in kept], len(alike) / len(chosen)


def train_grpo(model: PreTrainedModel, rendering: Rendering, scenes: Scenes, profile: Profile, seed: int, folder: Path,
               device: str = "cpu", listener: Listener = SILENT,
               examine: Callable[[int, Engineer], float] | None = None) -> Curve:
    """Train the model in place, from the SFT policy that it is.

    Args:
        model: With `profile.lora`, wrapped in a fresh adapter.
        rendering: Of its tokenizer.
        scenes: What the races are made of.
        profile: Its `grpo` settings.
        seed: Of races, draws and order.
        folder: Where checkpoints of the run lie; one that is there is gone on from.
        device: cpu, cuda or cuda:1, of this process; with others, each does its share of every step.
        listener: Takes progress.
        examine: Called every `SAVED_EVERY` steps with the step and the engineer as it is; says its score. Of several
            processes, in the main one.

    Raises:
        TrainingFailed: Numbers were not finite, or there was nothing to learn from.
        WrongCrew: So many processes can't share a step.
    """
    import torch
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    crew, curve = crew_on(device), Curve()
    told = _share(profile.grpo, crew.num_processes)
    here = told.states * told.samples
    practice = Practice(rendering, scenes, told, seed, profile.max_new_tokens, profile.generation_batch,
                        slice(crew.process_index, None, crew.num_processes))
    probes = _Probes(rendering, scenes, seed)

    class Examine(TrainerCallback):
        """Puts numbers of ours into trl's log, which a run that is gone on with keeps: those of the practice, drift
        from the SFT policy, and the examination."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 0 and crew.is_main_process:
                curve.add(0, {"kl_to_sft": probes.drift(model)})

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            means = trainer.accelerator.reduce(torch.tensor(
                list(practice.numbers.values()), dtype=torch.float64, device=args.device), "mean").tolist()
            numbers = dict(zip(practice.numbers, means, strict=True))
            if state.global_step % SAVED_EVERY == 0 and crew.is_main_process:
                numbers["kl_to_sft"] = probes.drift(model)
                if examine is not None:
                    numbers["selection_score"] = examine(state.global_step, Engineer(
                        model, rendering, profile.max_new_tokens, profile.generation_batch))
            for name, value in numbers.items():
                trainer._metrics["train"][name].append(value)

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            for limits, sign, where in ((WARN_ABOVE, 1, "above"), (WARN_BELOW, -1, "below")):
                for name, limit in limits.items():
                    if logs and logs.get(name) is not None and sign * (logs[name] - limit) > 0:
                        listener.warn(f"step {state.global_step}: {name} {logs[name]:.3g}, {where} {limit}")

    config = GRPOConfig(
        output_dir=str(folder), max_steps=told.steps, num_generations=here * crew.num_processes,
        learning_rate=told.lr, per_device_train_batch_size=min(told.batch, here),
        gradient_accumulation_steps=max(here // told.batch, 1), lr_scheduler_type="constant_with_warmup",
        warmup_steps=5, temperature=told.temperature, beta=told.beta, loss_type="dr_grpo", scale_rewards="none",
        entropy_coef=told.entropy, max_completion_length=profile.max_new_tokens, max_grad_norm=1.0, adam_beta2=0.98,
        use_cpu=device == "cpu", bf16=profile.bf16, seed=seed, data_seed=seed, logging_steps=1,
        save_strategy="steps", save_steps=SAVED_EVERY, save_total_limit=1, report_to="none", disable_tqdm=True,
        dataloader_pin_memory=False, top_k=0, top_p=1.0, ddp_find_unused_parameters=False,
        **activation_checkpointing(device != "cpu"))
    on_one_device(config, device)
    if crew.is_main_process:
        probes.remember(model)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*rollout_func.*")
        trainer = GRPOTrainer(
            model=model, reward_funcs=[_gain], args=config, processing_class=rendering.tokenizer,
            train_dataset=Dataset.from_list([{"prompt": f"step {k}"} for k in range(told.steps)]),
            rollout_func=practice, callbacks=[Watch(curve, listener, every=5), Examine()])
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=last_checkpoint(folder, config.world_size))
    dead = curve.of("dead_moments")
    if dead and np.mean(dead) > DEAD_SHARE:
        raise TrainingFailed(f"in {np.mean(dead):.0%} of the moments all calls were alike, so there was nothing to "
                             "learn from; raise the temperature or take an earlier SFT checkpoint")
    return curve


def _share(told: GrpoSettings, processes: int) -> GrpoSettings:
    """What each of the processes does in a step."""
    if told.states % processes or told.races < processes:
        raise WrongCrew(f"{told.states} states and {told.races} races a step can't be shared by {processes} processes; "
                        f"set states to a multiple of {processes} and races to {processes} or more, or start fewer")
    return replace(told, states=told.states // processes)


def _gain(completions: Sequence[Any], gain: Sequence[float], **_: Any) -> list[float]:
    """trl's reward function: what `Practice` found."""
    return list(gain)


def _used_two(scenario: Scenario, end: Mapping[str, Any]) -> bool:
    used = {int(scenario.compound[0]), *(compound for _, compound in end["stops"])}
    return scenario.rule and sum(COMPOUNDS[compound] in DRY for compound in used) >= 2


def _parses(call: str) -> bool:
    try:
        parse(call)
    except BadCommand:
        return False
    return True


class _Timed:
    """An engineer as a caller, and the time it took."""

    def __init__(self, engineer: Engineer) -> None:
        self._engineer, self.seconds = engineer, 0.0

    def __call__(self, observations: Sequence[str]) -> list[str]:
        started = time.process_time()
        calls = self._engineer.commands(observations)
        self.seconds += time.process_time() - started
        return calls


class _Probes:
    """Prompts on which the policy is compared with what it was before."""

    COUNT = 48

    def __init__(self, rendering: Rendering, scenes: Scenes, seed: int) -> None:
        self._rendering, self._scenes, self._seed = rendering, scenes, seed

    def remember(self, model: PreTrainedModel) -> None:
        """What is compared with: the policy as it is, without its adapter if it has one."""
        from contextlib import nullcontext

        keys = race_keys("train", -(-self.COUNT // len(TRAINED)), start=FIRST_RACE - 1_000)[:self.COUNT]
        engineer = Engineer(model, self._rendering, 40)
        moments = moments_of([self._scenes.scenario(*key) for key in keys], _Timed(engineer))
        self._prompts = [race[len(race) // 2].seen.text for race in moments]
        with model.disable_adapter() if hasattr(model, "disable_adapter") else nullcontext():
            self._before = self._log_probabilities(model)

    def drift(self, model: PreTrainedModel) -> float:
        """Mean KL of the first token of a call to that of the policy that is remembered [nats]."""
        import torch

        now = self._log_probabilities(model)
        return float((now.exp() * (now - self._before)).sum(dim=1).mean().clamp(min=0.0)) if torch.isfinite(
            now).all() else float("nan")

    def _log_probabilities(self, model: PreTrainedModel) -> Any:
        import torch

        training, rows = model.training, []
        model.eval()
        with torch.inference_mode():
            for text in self._prompts:
                ids = torch.tensor([self._rendering.prompt_ids(text)], device=model.device)
                rows.append(model(input_ids=ids).logits[0, -1].float().log_softmax(dim=0).cpu())
        model.train(training)
        return torch.stack(rows)
