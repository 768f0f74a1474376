"""Dropout: which elements it drops, and when."""

import pytest
import torch

from model.dropout import Dropout


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5, 0.9])
def test_the_share_is_dropped_and_the_mean_stays(share: float) -> None:
    torch.manual_seed(1)
    out = Dropout(share)(torch.ones(1000, 1001))
    assert out.unique().tolist() == pytest.approx([0.0, 1 / (1 - share)], rel=1e-3)
    assert (out == 0).float().mean().item() == pytest.approx(share, abs=0.002)
    assert out.mean().item() == pytest.approx(1, abs=0.01)


def test_nothing_is_dropped_in_evaluation_or_without_a_share() -> None:
    states = torch.randn(3, 5)
    assert Dropout(0.5).eval()(states) is states
    assert Dropout(0.0)(states) is states


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(2)
    dropped = Dropout(0.25)(torch.ones(400_003)) == 0
    both = (dropped[1:] & dropped[:-1]).float().mean().item()
    assert both == pytest.approx(0.0625, abs=0.003)


def test_the_same_seed_drops_the_same() -> None:
    torch.manual_seed(3)
    first = Dropout(0.3)(torch.ones(7, 9))
    torch.manual_seed(3)
    assert torch.equal(first, Dropout(0.3)(torch.ones(7, 9)))


def test_the_gradient_goes_through_the_elements_that_stay() -> None:
    torch.manual_seed(4)
    states = torch.ones(50, requires_grad=True)
    out = Dropout(0.5)(states)
    out.sum().backward()  # type: ignore[no-untyped-call]
    assert states.grad is not None
    assert torch.equal(states.grad, out.detach())
