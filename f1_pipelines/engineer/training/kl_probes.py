"""How far GRPO has moved the policy from the SFT policy it started from."""
from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import KL_PROBES_START, TRAINED_FAMILIES, race_keys
from f1_pipelines.engineer.training.counterfactual_returns import decision_states

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from f1_pipelines.engineer.prompting.rendering import Rendering


class KlProbes:
    """Fixed prompts on which the policy is compared with the SFT policy."""

    COUNT = 48

    def __init__(self, rendering: Rendering, sampler: ScenarioSampler) -> None:
        self._rendering, self._sampler = rendering, sampler

    def remember(self, model: PreTrainedModel) -> None:
        """Store the SFT policy's probabilities: the model as it is, without its adapter if it has one."""
        keys = race_keys("train", -(-self.COUNT // len(TRAINED_FAMILIES)), start=KL_PROBES_START)[:self.COUNT]
        engineer = Engineer(model, self._rendering, 40)
        races = decision_states([self._sampler.scenario(*key) for key in keys], engineer.commands)
        self._prompts = [states[len(states) // 2].seen.text for states in races]
        with cast("Any", model).disable_adapter() if hasattr(model, "disable_adapter") else nullcontext():
            self._before = self._log_probabilities(model)

    def kl_to_sft(self, model: PreTrainedModel) -> float:
        """Mean KL divergence of the first token of a command [nats]; NaN if the model's output is not finite."""
        import torch

        now = self._log_probabilities(model)
        return float((now.exp() * (now - self._before)).sum(dim=1).mean().clamp(min=0.0)) if torch.isfinite(
            now).all() else float("nan")

    def _log_probabilities(self, model: PreTrainedModel) -> Tensor:
        """(prompts, vocabulary) of the first token."""
        import torch

        training, rows = model.training, []
        model.eval()
        with torch.inference_mode():
            for text in self._prompts:
                ids = torch.tensor([self._rendering.prompt_ids(text)], device=model.device)
                rows.append(model(input_ids=ids).logits[0, -1].float().log_softmax(dim=0).cpu())
        model.train(training)
        return torch.stack(rows)
