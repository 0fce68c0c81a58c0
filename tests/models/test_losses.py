"""Losses match naive implementations and stay finite on edge cases."""
import math

import pytest
import torch
from torch import Tensor

from f1_pipelines.models.listnet import listnet_loss, relevance
from f1_pipelines.models.pairwise import pairwise_loss

SIZES = (1, 19, 20, 22, 2)


def lists(sizes=SIZES, width: int | None = None, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores, order, entered and classified of lists of these sizes; invalid values in empty slots."""
    generator = torch.Generator().manual_seed(seed)
    width = width or max(sizes)
    scores = torch.full((len(sizes), width), float("-inf"), dtype=torch.float64)
    order = torch.full((len(sizes), width), float("nan"), dtype=torch.float64)
    entered = torch.zeros(len(sizes), width, dtype=torch.bool)
    classified = torch.zeros(len(sizes), width, dtype=torch.bool)
    for race, size in enumerate(sizes):
        scores[race, :size] = torch.randn(size, generator=generator, dtype=torch.float64)
        order[race, :size] = torch.randperm(size, generator=generator).double() + 1
        entered[race, :size] = True
        classified[race, :size] = order[race, :size] <= size - 3
    return scores, order, entered, classified


def naive_listnet(scores: list[float], order: list[float], temperature: float, nudge: tuple[int, float]) -> float:
    scores = [score + (nudge[1] if car == nudge[0] else 0.0) for car, score in enumerate(scores)]
    target = [math.exp((len(order) - place) / temperature) for place in order]
    predicted = [math.exp(score / temperature) for score in scores]
    return sum(t / sum(target) * math.log((t / sum(target)) / (p / sum(predicted)))
               for t, p in zip(target, predicted, strict=True))


def naive_pairs(scores: list[float], order: list[float], classified: list[bool], retired: float,
                nudge: tuple[int, float]) -> float:
    scores = [score + (nudge[1] if car == nudge[0] else 0.0) for car, score in enumerate(scores)]
    cars, total = range(len(scores)), 0.0
    for a in cars:
        for b in cars:
            if order[a] < order[b]:
                weight = (1 if classified[a] else retired) * (1 if classified[b] else retired)
                total += weight * math.log1p(math.exp(scores[b] - scores[a]))
    return total / max(1, len(cars) * (len(cars) - 1) / 2)


def losses(scores: Tensor, order: Tensor, entered: Tensor, classified: Tensor) -> dict[str, Tensor]:
    return {"listnet": listnet_loss(scores, relevance(order, entered), entered, 3.4),
            "pairs": pairwise_loss(scores, order, entered, classified, 0.5)}


def test_values_and_gradients_match_a_naive_implementation():
    scores, order, entered, classified = lists()
    scores.requires_grad_()
    naive = {"listnet": lambda s, o, c, nudge: naive_listnet(s, o, 3.4, nudge),
             "pairs": lambda s, o, c, nudge: naive_pairs(s, o, c, 0.5, nudge)}
    for name, loss in losses(scores, order, entered, classified).items():
        (gradient,) = torch.autograd.grad(loss, scores)
        inputs = [[part[race, :size].tolist() for part in (scores, order, classified)]
                  for race, size in enumerate(SIZES)]
        value = sum(naive[name](*race, (0, 0.0)) for race in inputs) / len(SIZES)
        assert loss.item() == pytest.approx(value, rel=1e-9)
        for race, car in ((0, 0), (1, 3), (2, 19), (3, 21), (4, 1)):
            up, down = (naive[name](*inputs[race], (car, step)) for step in (1e-5, -1e-5))
            assert gradient[race, car].item() == pytest.approx((up - down) / 2e-5 / len(SIZES), abs=1e-8)


def test_padding_width_changes_nothing():
    narrow, wide = losses(*lists()), losses(*lists(width=40))
    for name in narrow:
        assert wide[name].item() == pytest.approx(narrow[name].item(), rel=1e-12)


@pytest.mark.parametrize("sizes", [(1,), (0,), (1, 0), (20, 1, 0)])
def test_lists_without_two_cars_are_a_zero_that_gradients_flow_through(sizes):
    scores, order, entered, classified = lists(sizes, width=22)
    scores.requires_grad_()
    for loss in losses(scores, order, entered, classified).values():
        (gradient,) = torch.autograd.grad(loss, scores)
        assert torch.isfinite(loss) and torch.isfinite(gradient).all()
        assert (loss.item() == 0) == (max(sizes) < 2)
        assert (gradient[~entered] == 0).all()


def test_an_empty_batch_has_loss_zero():
    scores, order, entered, classified = lists((), width=20)
    scores.requires_grad_()
    for loss in losses(scores, order, entered, classified).values():
        assert loss.item() == 0
        loss.backward()


def test_all_scores_tied_and_all_retired_stay_finite():
    scores, order, entered, classified = lists((19, 20, 22))
    tied = torch.zeros_like(scores).requires_grad_()
    for name, loss in losses(tied, order, entered, torch.zeros_like(classified)).items():
        (gradient,) = torch.autograd.grad(loss, tied)
        assert torch.isfinite(loss) and torch.isfinite(gradient).all() and gradient.abs().sum() > 0, name
    none_classified = pairwise_loss(tied, order, entered, torch.zeros_like(classified), retired_weight=0.0)
    assert none_classified.item() == 0
    tied_targets = listnet_loss(tied, torch.ones_like(tied), entered, 3.4)
    assert tied_targets.item() == pytest.approx(0, abs=1e-12)


def test_listnet_is_zero_at_its_targets_and_largest_for_the_reverse_order():
    _, order, entered, _ = lists((20, 22))
    targets = relevance(order, entered)
    assert listnet_loss(targets, targets, entered, 3.4).item() == pytest.approx(0, abs=1e-12)
    assert listnet_loss(-targets, targets, entered, 3.4) > listnet_loss(targets * 0, targets, entered, 3.4) > 0.1


def test_the_podium_has_59_percent_of_the_target_at_the_default_temperature():
    targets = relevance(torch.arange(1.0, 21.0)[None], torch.ones(1, 20, dtype=torch.bool))
    assert torch.softmax(targets / 3.4, dim=-1)[0, :3].sum().item() == pytest.approx(0.59, abs=0.005)
