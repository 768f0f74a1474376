"""Muon, against torch's own, which multiplies in bfloat16."""

import pytest
import torch
from torch import nn

from model.muon import Muon, orthogonalized

SHAPES = [(8, 8), (8, 32), (32, 8), (8, 8)]


def parameters_of(seed: int) -> list[nn.Parameter]:
    chance = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=chance)) for shape in SHAPES]


def test_steps_are_those_of_torch_but_for_the_rounding_of_bfloat16() -> None:
    ours, theirs, start = parameters_of(1), parameters_of(1), parameters_of(1)
    optimizers = [
        Muon(ours, rate=0.02, weight_decay=0.1),
        torch.optim.Muon(theirs, lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
    ]
    for step in range(3):
        gradients = parameters_of(2 + step)
        for parameters, optimizer in zip((ours, theirs), optimizers, strict=True):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.detach().clone()
            optimizer.step()
    for own, other, before in zip(ours, theirs, start, strict=True):
        moved = (other - before).norm()
        assert (own - other).norm() < 0.02 * moved


def test_a_matrix_without_gradient_stays() -> None:
    [first, *_] = parameters = parameters_of(1)
    before = first.detach().clone()
    Muon(parameters, rate=0.1, weight_decay=0.1).step()
    assert torch.equal(first, before)


@pytest.mark.parametrize("shape", [(2, 8, 8), (3, 8, 32), (3, 32, 8)])
def test_singular_values_come_near_to_1(shape: tuple[int, ...]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    values = torch.linalg.svdvals(orthogonalized(matrices).float())
    assert values.shape == (shape[0], 8)
    assert values.min() > 0.2
    assert values.max() < 1.3
