"""The operator in place of attention: as a node of a graph that onnxruntime runs, against plain PyTorch."""

import io
from collections.abc import Callable

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from export.operators import OperatorAttendSelf, OperatorAttendSource, RowLengths, int32_scalar, use_operators
from model.attention import AttendSelf, AttendSource
from model.transformer import Transformer

HEADS, D_MODEL, ROWS, LENGTH, CAPACITY = 2, 16, 3, 4, 8


def run(graph: nn.Module, *inputs: Tensor) -> list[Tensor]:
    """Exports a module and runs it with onnxruntime."""
    program = torch.onnx.export(graph, inputs, dynamo=True, verbose=False)
    content = io.BytesIO()
    program.save(content)
    session = onnxruntime.InferenceSession(content.getvalue(), providers=["CPUExecutionProvider"])
    feeds = {
        declared.name: given.detach().numpy() for declared, given in zip(session.get_inputs(), inputs, strict=True)
    }
    return [torch.from_numpy(np.asarray(output)) for output in session.run(None, feeds)]


class Whole(nn.Module):
    def forward(self, packed: Tensor, lengths: Tensor) -> Tensor:
        return OperatorAttendSelf(HEADS)(packed, RowLengths(lengths - 1, int32_scalar(LENGTH)))


class Source(nn.Module):
    def forward(self, query: Tensor, keys: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
        return OperatorAttendSource(HEADS).step(query, keys, values, RowLengths(lengths - 1, int32_scalar(CAPACITY)))


class Biased(nn.Module):
    """Attention of T5: a bias of the scores, which are not scaled."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, packed: Tensor, lengths: Tensor, bias: Tensor) -> Tensor:
        return self.attention(packed, RowLengths(lengths - 1, int32_scalar(LENGTH)), bias)  # type: ignore[no-any-return]


class BiasedStep(Biased):
    def forward(self, packed: Tensor, keys: Tensor, values: Tensor, lengths: Tensor, bias: Tensor) -> Tensor:  # type: ignore[override]
        own = RowLengths(lengths, int32_scalar(CAPACITY))
        return self.attention.step(packed, keys, values, own, bias)[0]  # type: ignore[operator, no-any-return]


@pytest.mark.filterwarnings("ignore")  # of the exporter, to its own developers
def test_whole_sequences_see_both_ways_up_to_their_lengths() -> None:
    torch.manual_seed(0)
    packed, lengths = torch.randn(ROWS, LENGTH, 3 * D_MODEL), torch.tensor([4, 2, 1], dtype=torch.int32)
    [actual] = run(Whole(), packed, lengths)
    expected = AttendSelf(HEADS)(packed, lengths)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(actual[row, :length], expected[row, :length], rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_the_source_is_read_up_to_its_length() -> None:
    torch.manual_seed(0)
    query, lengths = torch.randn(ROWS, 1, D_MODEL), torch.tensor([8, 3, 1], dtype=torch.int32)
    keys, values = (torch.randn(ROWS, HEADS, CAPACITY, D_MODEL // HEADS) for _ in range(2))
    actual, *_ = run(Source(), query, keys, values, lengths)
    torch.testing.assert_close(actual, AttendSource(HEADS).step(query, keys, values, lengths), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_a_bias_of_whole_sequences_and_no_scale() -> None:
    torch.manual_seed(0)
    packed, lengths = torch.randn(ROWS, LENGTH, 3 * D_MODEL), torch.tensor([4, 2, 1], dtype=torch.int32)
    bias = torch.randn(1, HEADS, LENGTH, LENGTH)
    [actual] = run(Biased(OperatorAttendSelf(HEADS, scaled=False)), packed, lengths, bias)
    expected = AttendSelf(HEADS, scaled=False)(packed, lengths, bias)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(actual[row, :length], expected[row, :length], rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_a_step_has_a_bias_for_each_row_and_no_scale() -> None:
    torch.manual_seed(0)
    packed, lengths = torch.randn(ROWS, 1, 3 * D_MODEL), torch.tensor([7, 2, 0], dtype=torch.int32)
    keys, values = (torch.randn(ROWS, HEADS, CAPACITY, D_MODEL // HEADS) for _ in range(2))
    bias = torch.randn(ROWS, HEADS, 1, CAPACITY)
    actual, *_ = run(BiasedStep(OperatorAttendSelf(HEADS, scaled=False)), packed, keys, values, lengths, bias)
    expected, *_ = AttendSelf(HEADS, scaled=False).step(packed, keys, values, lengths, bias)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_every_attention_of_a_model_is_replaced(random_model: Callable[..., Transformer]) -> None:
    model = random_model(2, 3)
    use_operators(model)
    kinds = [type(module) for module in model.modules()]
    assert not {AttendSelf, AttendSource} & set(kinds)
    assert (kinds.count(OperatorAttendSelf), kinds.count(OperatorAttendSource)) == (2 + 3, 3)


def test_what_is_replaced_keeps_its_scale(random_model: Callable[..., Transformer]) -> None:
    model = random_model(1, 1, scale_attention=False)
    use_operators(model)
    kinds = (OperatorAttendSelf, OperatorAttendSource)
    assert [module.scaled for module in model.modules() if isinstance(module, kinds)] == [False] * 3
