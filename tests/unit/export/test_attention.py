"""The operator in place of attention: as a node of a graph that onnxruntime runs, against plain PyTorch."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.bundle import ATTENTION_SCORES, Precision
from export.attention import Heads, RowLengths, attend_step, attend_whole
from export.graph import Graph
from export.weights import WeightsFile
from model.attention import AttendSelf, AttendSource, split_heads
from tests.unit.export.written import session

HEADS, WIDTH, ROWS, LENGTH, CAPACITY = 2, 8, 3, 4, 9
D_MODEL = HEADS * WIDTH
either_scale = pytest.mark.parametrize("scaled", [True, False])
either_bias = pytest.mark.parametrize("biased", [True, False])


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


def declare(graph: Graph, inputs: dict[str, Tensor]) -> None:
    for name, given in inputs.items():
        graph.input(name, given.numpy().dtype.type, list(given.shape))


def row_lengths(graph: Graph, last: Tensor, size: int) -> RowLengths:
    return RowLengths(graph.constant(last.numpy(), np.int32), graph.constant(np.int32(size)))


def whole(packed: Tensor, lengths: Tensor, bias: Tensor | None, *, scaled: bool, causal: bool, half: bool) -> Tensor:
    """Runs attention over whole sequences."""
    inputs = {"packed": packed, **({} if bias is None else {"bias": bias})}

    def write(weights: WeightsFile) -> Graph:
        graph = Graph(weights)
        declare(graph, inputs)
        rows, heads = row_lengths(graph, lengths - 1, LENGTH), Heads(HEADS, WIDTH, scaled)
        name = "" if bias is None else "bias"
        attended = attend_whole(graph, "packed", rows, heads, causal=causal, bias=name, half=half)
        graph.output(attended, packed.numpy().dtype.type, [None] * 3)
        return graph

    [attended] = session(write).run(None, {name: given.numpy() for name, given in inputs.items()})
    return torch.from_numpy(attended)


def step(
    query: Tensor, keys: Tensor, values: Tensor, last: Tensor, bias: Tensor | None = None, *,
    scaled: bool, own: bool, precision: Precision = "fp32", reveal: bool = False,
) -> dict[str, Tensor]:  # fmt: skip
    """Runs attention from one position a row; its outputs by name."""
    inputs = {"query": query, "keys": keys, "values": values, **({} if bias is None else {"bias": bias})}

    def write(weights: WeightsFile) -> Graph:
        graph = Graph(weights)
        declare(graph, inputs)
        rows, heads = row_lengths(graph, last, CAPACITY), Heads(HEADS, WIDTH, scaled)
        name = "" if bias is None else "bias"
        attended = attend_step(
            graph, "query", ("keys", "values"), rows, heads, precision, own=own, bias=name, reveal=reveal
        )
        graph.output(attended, query.numpy().dtype.type, [None] * 3)
        return graph

    opened = session(write)
    names = [output.name for output in opened.get_outputs()]
    results = opened.run(names, {name: given.numpy() for name, given in inputs.items()})
    return {name: torch.from_numpy(result) for name, result in zip(names, results, strict=True)}


def random_cache() -> tuple[Tensor, Tensor]:
    keys, values = (torch.randn(ROWS, HEADS, CAPACITY, WIDTH) for _ in range(2))
    return keys, values


def random_bytes() -> tuple[Tensor, Tensor]:
    keys, values = (torch.randint(-128, 128, (ROWS, HEADS, CAPACITY, WIDTH), dtype=torch.int8) for _ in range(2))
    return keys, values


def assert_close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


@either_scale
@either_bias
@pytest.mark.parametrize("half", [False, True])
def test_whole_sequences_see_both_ways_up_to_their_lengths(scaled: bool, biased: bool, half: bool) -> None:
    packed, lengths = torch.randn(ROWS, LENGTH, 3 * D_MODEL), torch.tensor([4, 2, 1])
    bias = torch.randn(1, HEADS, LENGTH, LENGTH) if biased else None
    actual = whole(packed, lengths, bias, scaled=scaled, causal=False, half=half)
    expected = AttendSelf(HEADS, scaled=scaled)(packed, lengths, bias)
    for row, length in enumerate(lengths.tolist()):
        assert_close(actual[row, :length], expected[row, :length])


@either_scale
@either_bias
def test_whole_targets_see_what_is_before_them(scaled: bool, biased: bool) -> None:
    packed, lengths = torch.randn(ROWS, LENGTH, 3 * D_MODEL), torch.full((ROWS,), LENGTH)
    bias = torch.randn(1, HEADS, LENGTH, LENGTH) if biased else None
    actual = whole(packed, lengths, bias, scaled=scaled, causal=True, half=False)
    assert_close(actual, AttendSelf(HEADS, scaled=scaled)(packed, None, bias))


@either_scale
@either_bias
def test_a_step_has_a_bias_for_each_row_and_writes_its_key_and_value(scaled: bool, biased: bool) -> None:
    packed, lengths = torch.randn(ROWS, 1, 3 * D_MODEL), torch.tensor([7, 2, 0])
    keys, values = random_cache()
    bias = torch.randn(ROWS, HEADS, 1, CAPACITY) if biased else None
    actual = step(packed, keys, values, lengths, bias, scaled=scaled, own=True)
    attended, *buffers = AttendSelf(HEADS, scaled=scaled).step(packed, keys.clone(), values.clone(), lengths, bias)
    assert_close(actual["query_attended"], attended)
    for name, expected in zip(("present_keys", "present_values"), buffers, strict=True):
        for row, length in enumerate(lengths.tolist()):
            assert torch.equal(actual[name][row, :, : length + 1], expected[row, :, : length + 1])


@either_scale
def test_the_source_is_read_up_to_its_length(scaled: bool) -> None:
    query, lengths = torch.randn(ROWS, 1, D_MODEL), torch.tensor([CAPACITY, 3, 1])
    keys, values = random_cache()
    actual = step(query, keys, values, lengths - 1, scaled=scaled, own=False)
    assert actual.keys() == {"query_attended"}
    assert_close(actual["query_attended"], AttendSource(HEADS, scaled=scaled).step(query, keys, values, lengths))


@either_bias
def test_a_step_rounds_its_key_and_value_to_bytes(biased: bool) -> None:
    packed, lengths = torch.randn(ROWS, 1, 3 * D_MODEL), torch.tensor([7, 2, 0])
    packed[..., :D_MODEL] *= 0.02
    packed[..., D_MODEL:] *= 60
    keys, values = random_bytes()
    bias = torch.randn(ROWS, HEADS, 1, CAPACITY) if biased else None
    actual = step(packed, keys, values, lengths, bias, scaled=True, own=True, precision="int8")
    packed[..., D_MODEL:] = packed[..., D_MODEL:].round().clamp(-128, 127)
    attended, *buffers = AttendSelf(HEADS).step(packed, keys.float(), values.float(), lengths, bias)
    torch.testing.assert_close(actual["query_attended"], attended, rtol=1e-4, atol=1e-3)
    for name, expected in zip(("present_keys", "present_values"), buffers, strict=True):
        for row, length in enumerate(lengths.tolist()):
            assert torch.equal(actual[name][row, :, : length + 1], expected[row, :, : length + 1].to(torch.int8))


@either_scale
def test_a_source_in_bytes_is_read_up_to_its_length_and_stays(scaled: bool) -> None:
    query, lengths = torch.randn(ROWS, 1, D_MODEL) * 0.02, torch.tensor([CAPACITY, 3, 1])
    keys, values = random_bytes()
    actual = step(query, keys, values, lengths - 1, scaled=scaled, own=False, precision="int8")
    expected = AttendSource(HEADS, scaled=scaled).step(query, keys.float(), values.float(), lengths)
    torch.testing.assert_close(actual["query_attended"], expected, rtol=1e-4, atol=1e-3)
    for row, length in enumerate(lengths.tolist()):
        assert torch.equal(actual["present_keys"][row, :, :length], keys[row, :, :length])
        assert torch.equal(actual["present_values"][row, :, :length], values[row, :, :length])


@either_scale
@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_the_scores_that_are_revealed_are_those_before_the_softmax(precision: Precision, scaled: bool) -> None:
    query, lengths = torch.randn(ROWS, 1, D_MODEL), torch.tensor([CAPACITY, 3, 1])
    keys, values = random_bytes() if precision == "int8" else random_cache()
    if precision == "fp16":
        query, keys, values = query.half(), keys.half(), values.half()
    actual = step(query, keys, values, lengths - 1, scaled=scaled, own=False, precision=precision, reveal=True)
    scores = actual[ATTENTION_SCORES].float()
    expected = split_heads(query.float(), HEADS) @ keys.float().transpose(-1, -2)
    expected = expected * WIDTH**-0.5 if scaled else expected
    assert scores.shape == (ROWS, HEADS, 1, CAPACITY)
    for row, length in enumerate(lengths.tolist()):
        off = 0.02 if precision == "fp16" else 1e-3
        torch.testing.assert_close(scores[row, ..., :length], expected[row, ..., :length], rtol=1e-5, atol=off)
