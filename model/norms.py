"""Normalization of the states of a position: by mean and variance with a bias, or by the root mean square alone."""

import torch
from torch import Tensor, nn

from model.config import TransformerConfig


class RMSNorm(nn.Module):
    """Divides by the root mean square (arXiv:1910.07467), computed in fp32; has neither mean nor bias, as in T5."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, states: Tensor) -> Tensor:
        """Normalize states [..., width]; keeps the shape and the type."""
        wide = states.float()
        normal = wide / (wide.pow(2).mean(dim=-1, keepdim=True) + self.epsilon).sqrt()
        return normal.to(states.dtype) * self.weight


def new_norm(config: TransformerConfig) -> nn.LayerNorm | RMSNorm:
    """Make a norm of the configured kind and the model's width."""
    if config.norm_kind == "rms":
        return RMSNorm(config.d_model, config.norm_epsilon)
    return nn.LayerNorm(config.d_model, eps=config.norm_epsilon)
