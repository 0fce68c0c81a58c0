"""Drift of a policy during its training: KL divergence from the reference policy at fixed prompts."""
from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

from f1_pipelines.engineer.inference.engineer import Engineer
from f1_pipelines.engineer.scenario_sampler import ScenarioSampler
from f1_pipelines.engineer.seed_ranges import kl_probe_races
from f1_pipelines.engineer.training.counterfactual_returns import decision_states

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from f1_pipelines.engineer.prompting.rendering import Rendering


class KlProbes:
    """Prompts from the middle of `COUNT` races at which the policy is compared with the reference policy."""

    COUNT = 48

    def __init__(self, rendering: Rendering, sampler: ScenarioSampler) -> None:
        self._rendering, self._sampler = rendering, sampler

    def set_reference(self, model: PreTrainedModel) -> None:
        """Set the current policy, without its adapter if any, as the reference."""
        engineer = Engineer(model, self._rendering, 40)
        scenarios = [self._sampler.scenario(*key) for key in kl_probe_races(self.COUNT)]
        self._prompts = [race[len(race) // 2].observation.text
                         for race in decision_states(scenarios, engineer.commands)]
        with cast(Any, model).disable_adapter() if hasattr(model, "disable_adapter") else nullcontext():
            self._reference = self._log_probabilities(model)

    def kl(self, model: PreTrainedModel) -> float:
        """Return the mean KL divergence of a completion's first token from the reference [nats]; NaN if not finite."""
        current = self._log_probabilities(model)
        if not current.isfinite().all():
            return float("nan")
        return float((current.exp() * (current - self._reference)).sum(dim=1).mean().clamp(min=0.0))

    def _log_probabilities(self, model: PreTrainedModel) -> torch.Tensor:
        """(prompts, vocabulary) log-probabilities of the first token after each prompt."""
        import torch

        was_training, rows = model.training, []
        model.train(False)
        with torch.inference_mode():
            for text in self._prompts:
                ids = torch.tensor([self._rendering.prompt_ids(text)], device=model.device)
                rows.append(model(input_ids=ids).logits[0, -1].float().log_softmax(dim=0).cpu())
        model.train(was_training)
        return torch.stack(rows)
