"""Position encodings: sinusoidal (three layouts) and learned, with an offset."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model import tables
from model.config import TransformerConfig


def sinusoids(positions: int, d_model: int, kind: str) -> Tensor:
    """Compute the table of `model.tables.sinusoids`, float32 [positions, d_model]."""
    return torch.from_numpy(tables.sinusoids(positions, d_model, kind))


class Positions(nn.Module):
    """A table with one row per position, shifted by the configured offset."""

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
