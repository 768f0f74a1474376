import pytest
import torch
import torch.nn.functional as F
from torch import nn

from model.config import TransformerConfig
from model.norms import RMSNorm, new_norm

WIDTH = 16


def config(norm_kind: str) -> TransformerConfig:
    sizes = {"source_vocabulary_size": 9, "target_vocabulary_size": 9, "d_model": WIDTH}
    return TransformerConfig.model_validate({**sizes, "norm_kind": norm_kind, "norm_epsilon": 0.1})


@torch.no_grad()
def test_it_is_that_of_pytorch() -> None:
    norm = RMSNorm(WIDTH, 0.1)
    norm.weight.normal_()
    states = torch.randn(3, 5, WIDTH)
    torch.testing.assert_close(norm(states), F.rms_norm(states, (WIDTH,), norm.weight, 0.1))


@torch.no_grad()
def test_half_precision_is_squared_in_fp32() -> None:
    norm = RMSNorm(WIDTH, 1e-6).half()
    states = torch.full((1, WIDTH), 1_000.0, dtype=torch.float16)  # whose squares no half can hold
    assert torch.equal(norm(states), torch.ones_like(states))


@pytest.mark.parametrize(("kind", "expected"), [("layer", nn.LayerNorm), ("rms", RMSNorm)])
@torch.no_grad()
def test_a_new_norm_is_as_configured(kind: str, expected: type) -> None:
    norm = new_norm(config(kind))
    assert type(norm) is expected
    tiny = torch.full((1, WIDTH), 1e-3)
    tiny[0, ::2] = -1e-3
    torch.testing.assert_close(norm(tiny), tiny / 0.1**0.5, rtol=1e-4, atol=0)
