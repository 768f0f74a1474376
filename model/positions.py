"""Position encodings: sinusoidal (three layouts) and learned, with an offset."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import TransformerConfig


def sinusoids(positions: int, d_model: int, kind: str) -> Tensor:
    """Compute the sines and cosines of section 3.5 of arXiv:1706.03762.

    Args:
        positions: rows of the table.
        d_model: width of a row, even.
        kind: "sinusoidal", sines and cosines in turn (the paper); "sinusoidal_halves", all sines then all cosines, with
            the wavelengths of tensor2tensor (also Marian, fairseq, M2M100); "sinusoidal_paper_halves", the same with
            the wavelengths of the paper (Hugging Face's MarianMTModel).

    Returns:
        float32 [positions, d_model].
    """
    half = d_model // 2
    exponent = torch.arange(half, dtype=torch.float64)
    # tensor2tensor divides by half - 1, so that the last wavelength is exactly 10,000.
    exponent = exponent / (half - 1) if kind == "sinusoidal_halves" and half > 1 else exponent * 2 / d_model
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * torch.exp(-math.log(10_000.0) * exponent)
    sine, cosine = angles.sin(), angles.cos()
    in_turn = kind == "sinusoidal"
    table = torch.stack([sine, cosine], dim=2).flatten(1) if in_turn else torch.cat([sine, cosine], dim=1)
    return table.float()


class Positions(nn.Module):
    """A row a position, shifted by the configured offset."""

    table: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.offset = config.position_offset
        rows = config.max_positions + config.position_offset
        if config.positions == "learned":
            self.table = nn.Parameter(torch.randn(rows, config.d_model) * config.d_model**-0.5)
        else:
            self.register_buffer("table", sinusoids(rows, config.d_model, config.positions), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """Look up positions, int [...], counted from 0. Returns [..., d_model]."""
        return F.embedding(positions + self.offset if self.offset else positions, self.table)
