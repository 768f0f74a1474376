"""The loss of training against PyTorch's own, and its gradients."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from model.config import TransformerConfig
from model.loss import BLOCK_ROWS, Loss
from model.transformer import Transformer


def small_model() -> Transformer:
    torch.manual_seed(1)
    config = TransformerConfig(
        source_vocabulary_size=50, target_vocabulary_size=50, d_model=16, heads=2, d_ff=32, encoder_layers=1
    )
    return Transformer(config)


def batch_of(rows: int, length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows * 1000 + length)
    source, target = (torch.randint(4, 50, (rows, length), generator=generator) for _ in range(2))
    target_out = target.clone()
    target_out[0, length // 2 + 1 :] = 0
    return source, torch.full((rows,), length), target, target_out


def of_pytorch(model: Transformer, batch: tuple[Tensor, Tensor, Tensor, Tensor], smoothing: float) -> Tensor:
    source, lengths, target_in, target_out = batch
    logits = model(source, lengths, target_in).flatten(0, 1).float()
    return F.cross_entropy(logits, target_out.flatten(), ignore_index=0, label_smoothing=smoothing)


def gradients(model: Transformer, loss: Tensor) -> list[Tensor]:
    model.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(1, 9), st.sampled_from([0.0, 0.1, 0.4]))
def test_loss_and_gradients_are_those_of_pytorch(rows: int, length: int, smoothing: float) -> None:
    model, batch = small_model(), batch_of(rows, length)
    loss, expected = Loss(model, smoothing=smoothing)(*batch), of_pytorch(model, batch, smoothing)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    ours, theirs = gradients(model, loss), gradients(model, expected)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


def test_a_batch_of_several_blocks_has_the_loss_of_one() -> None:
    model, batch = small_model(), batch_of(2 * BLOCK_ROWS["cpu"] // 7 + 1, 7)
    loss, expected = Loss(model, smoothing=0.1)(*batch), of_pytorch(model, batch, 0.1)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for mine, other in zip(gradients(model, loss), gradients(model, expected), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


def test_products_are_in_the_type_of_autocast() -> None:
    model, batch = small_model(), batch_of(4, 8)
    with torch.autocast("cpu", torch.bfloat16):
        expected = gradients(model, of_pytorch(model, batch, 0.1))
        loss = Loss(model, smoothing=0.1)(*batch)
    assert loss.dtype == torch.float32
    for mine, other in zip(gradients(model, loss), expected, strict=True):
        assert mine.dtype == torch.float32
        assert (mine - other).norm() <= 0.05 * other.norm()
