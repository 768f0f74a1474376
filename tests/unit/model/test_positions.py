import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from model.config import TransformerConfig
from model.positions import Positions, sinusoids
from model.transformer import Transformer


def positions(**fields: Any) -> Positions:
    vocabulary = {"source_vocabulary_size": 10, "target_vocabulary_size": 10}
    return Positions(TransformerConfig(**vocabulary | {"d_model": 8, "max_positions": 12} | fields))


@pytest.mark.parametrize("d_model", [2, 8, 256])
def test_interleaved_follows_the_paper(d_model: int) -> None:
    """Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) the cosine of the same."""
    table = sinusoids(40, d_model, "sinusoidal")
    assert table.shape == (40, d_model)
    assert table.dtype == torch.float32
    for position in (0, 1, 7, 39):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (2 * i / d_model)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_halves_follow_tensor2tensor() -> None:
    """Wavelengths from 2 pi to 10,000 * 2 pi, all sines before all cosines."""
    d_model = 8
    table = sinusoids(40, d_model, "sinusoidal_halves")
    for position in (0, 1, 7, 39):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (i / (d_model // 2 - 1))
            assert table[position, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, d_model // 2 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_halves_with_the_wavelengths_of_the_paper_are_a_rearrangement() -> None:
    in_turn, halves = sinusoids(40, 8, "sinusoidal"), sinusoids(40, 8, "sinusoidal_paper_halves")
    assert torch.equal(halves, torch.cat([in_turn[:, 0::2], in_turn[:, 1::2]], dim=1))


def test_halves_of_the_smallest_width() -> None:
    table = sinusoids(3, 2, "sinusoidal_halves")
    torch.testing.assert_close(table, torch.tensor([[math.sin(p), math.cos(p)] for p in range(3)]))


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves"])
def test_offset_shifts(kind: str) -> None:
    first, shifted = positions(positions=kind), positions(positions=kind, position_offset=3)
    assert torch.equal(shifted(torch.arange(9)), first(torch.arange(3, 12)))


def test_last_position_is_there_despite_the_offset() -> None:
    for kind in ("sinusoidal", "learned"):
        assert positions(positions=kind, position_offset=2)(torch.tensor([11])).shape == (1, 8)


def test_any_shape() -> None:
    table = positions()
    rows = table(torch.tensor([[4], [2]]))
    assert rows.shape == (2, 1, 8)
    assert torch.equal(rows[1, 0], table(torch.tensor(2)))


def test_learned_are_weights_and_sinusoids_are_not(build: Callable[..., Transformer]) -> None:
    learned = build(positions="learned", position_offset=2)
    assert learned.get_parameter("source_positions.table").shape == (26, 16)
    for kind in ("sinusoidal", "sinusoidal_halves"):
        assert not any("positions" in name for name in build(positions=kind).state_dict())
