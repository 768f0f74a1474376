"""Relative positions, against the T5 of transformers."""

from typing import Any

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from model.config import TransformerConfig
from model.relative import DistanceBias, NoBias, new_bias
from model.tables import buckets

HEADS, LAYERS, LENGTH = 3, 2, 11


def config(**fields: Any) -> TransformerConfig:
    sizes = {"source_vocabulary_size": 9, "target_vocabulary_size": 9, "positions": "relative"}
    return TransformerConfig.model_validate({**sizes, "relative_buckets": 6, "relative_max_distance": 8, **fields})


def theirs(table: torch.Tensor, *, causal: bool) -> T5Attention:
    """Attention of T5 with a table [buckets, heads]."""
    numbers = {"relative_attention_num_buckets": 6, "relative_attention_max_distance": 8}
    attention = T5Attention(T5Config(num_heads=HEADS, is_decoder=causal, **numbers), True, layer_idx=0)
    attention.relative_attention_bias.weight = torch.nn.Parameter(table)
    return attention


@given(count=st.integers(4, 70), max_distance=st.integers(3, 300), causal=st.booleans())
def test_buckets_are_those_of_t5(count: int, max_distance: int, causal: bool) -> None:
    assume(max_distance > count // 2)
    distances = torch.arange(-2 * max_distance, 2 * max_distance + 1)
    expected = T5Attention._relative_position_bucket(distances, not causal, count, max_distance)  # noqa: SLF001
    actual = torch.from_numpy(buckets(distances.numpy(), count, max_distance, causal=causal))
    assert torch.equal(actual, expected)
    assert actual.min() >= 0
    assert actual.max() < count
    # What `DistanceBias` relies on: no table goes on behind the last distance.
    beyond = distances.abs() >= max_distance
    assert torch.equal(actual[beyond], actual[distances.clamp(-max_distance, max_distance) + 2 * max_distance][beyond])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@torch.no_grad()
def test_the_bias_of_whole_sequences_is_that_of_t5(causal: bool, shared: bool) -> None:
    bias = DistanceBias(config(relative_shared=shared), HEADS, LAYERS, causal=causal)
    tables = bias.table.view(-1, 6, HEADS).expand(LAYERS, -1, -1)
    for actual, table in zip(bias.of_sequences(torch.zeros(4, LENGTH)), tables, strict=True):
        expected = theirs(table, causal=causal).compute_bias(LENGTH, LENGTH)
        seen = torch.ones(LENGTH, LENGTH, dtype=torch.bool)
        seen = seen.tril() if causal else seen
        assert actual is not None
        assert actual.shape == expected.shape
        assert torch.equal(actual[..., seen], expected[..., seen])


@torch.no_grad()
def test_a_step_has_the_row_of_its_own_position() -> None:
    bias = DistanceBias(config(), HEADS, LAYERS, causal=True)
    [whole, _] = bias.of_sequences(torch.zeros(1, LENGTH))
    lengths = torch.tensor([4, 0, 10], dtype=torch.int32)
    cache = torch.zeros(3, HEADS, LENGTH, 5)
    [step, other] = bias.of_step(lengths, [(cache, cache)] * LAYERS)
    assert step is other  # of all layers, computed once
    assert step is not None
    assert whole is not None
    assert step.shape == (3, HEADS, 1, LENGTH)
    for row, length in enumerate(lengths.tolist()):
        assert torch.equal(step[row, :, 0, : length + 1], whole[0, :, length, : length + 1])


def test_models_without_relative_positions_add_nothing() -> None:
    bias = new_bias(config(positions="learned"), HEADS, LAYERS, causal=True)
    assert isinstance(bias, NoBias)
    assert bias.of_sequences(torch.zeros(1, 3)) == [None, None]
    assert bias.of_step(torch.zeros(1), []) == [None, None]
