"""The recurrence against its formula, written as one position after the other in float64."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from model.config import TransformerConfig
from model.recurrence import SimpleRecurrence, scan
from model.transformer import Transformer

WIDTH = 6


def config(**fields: object) -> TransformerConfig:
    sizes = {"source_vocabulary_size": 9, "target_vocabulary_size": 9, "d_model": WIDTH, "heads": 2}
    return TransformerConfig.model_validate({**sizes, "decoder_cell": "ssru", **fields})


def recurrence(seed: int = 0) -> SimpleRecurrence:
    torch.manual_seed(seed)
    made = SimpleRecurrence(config())
    torch.nn.init.normal_(made.gate_input.weight)
    torch.nn.init.normal_(made.gate_input.bias)
    return made


def plain_scan(keep: Tensor, admitted: Tensor) -> Tensor:
    state, states = torch.zeros_like(admitted[:, 0]), []
    for kept, new in zip(keep.unbind(1), admitted.unbind(1), strict=True):
        state = kept * state + new
        states.append(state)
    return torch.stack(states, dim=1)


def test_it_is_the_formula() -> None:
    """Of section 3.1 of the paper, with a bias of what the gate lets in, too."""
    ours = recurrence().double()
    states = torch.randn(3, 7, WIDTH, dtype=torch.float64)
    forget, weight = ours.gate_input.weight.chunk(2)
    forget_bias, bias = ours.gate_input.bias.chunk(2)
    cell, expected = torch.zeros(3, WIDTH, dtype=torch.float64), []
    for state in states.unbind(1):
        gate = 1 / (1 + torch.exp(-(state @ forget.T + forget_bias)))
        cell = gate * cell + (1 - gate) * (state @ weight.T + bias)
        expected.append(cell.clamp(min=0))
    torch.testing.assert_close(ours(states), torch.stack(expected, dim=1), atol=1e-6, rtol=1e-5)


@given(rows=st.integers(1, 3), length=st.integers(1, 6), seed=st.integers(0, 99))
def test_gradients_are_those_of_small_differences(rows: int, length: int, seed: int) -> None:
    torch.manual_seed(seed)
    keep = torch.rand(rows, length, 2, dtype=torch.float64, requires_grad=True)
    admitted = torch.randn(rows, length, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(scan, (keep, admitted))


@pytest.mark.parametrize("shape", [(1, 1, 3), (3, 5, 20_000), (2, 2, 40_000)])  # a row at a time, three, none to spare
def test_values_and_gradients_are_those_of_a_plain_loop(shape: tuple[int, int, int]) -> None:
    keep, admitted, gradient = torch.rand(shape), torch.randn(shape), torch.randn(shape)
    results = []
    for function in (scan, plain_scan):
        inputs = keep.clone().requires_grad_(), admitted.clone().requires_grad_()
        states = function(*inputs)
        results.append((states, *torch.autograd.grad(states, inputs, gradient)))
    torch.testing.assert_close(*results)


def test_one_compiled_graph_serves_all_lengths() -> None:
    ours = recurrence()
    compiled = torch.compile(ours, dynamic=True, fullgraph=True, backend="aot_eager")
    for rows, length, stance in ((7, 5, "default"), (2, 3, "fail_on_recompile"), (9, 8, "fail_on_recompile")):
        states = torch.randn(rows, length, WIDTH, requires_grad=True)
        expected = ours(states)
        (wanted,) = torch.autograd.grad(expected.sum(), states)
        with torch.compiler.set_stance(stance):
            update = compiled(states)
        torch.testing.assert_close(update, expected)
        torch.testing.assert_close(torch.autograd.grad(update.sum(), states)[0], wanted)


def test_pytorch_finds_no_fault_in_the_operator() -> None:
    for shape in ((2, 3, 4), (1, 1, 2)):
        inputs = torch.rand(shape, requires_grad=True), torch.randn(shape, requires_grad=True)
        torch.library.opcheck(scan, inputs)


@torch.inference_mode()
def test_steps_are_the_sequence() -> None:
    ours = recurrence()
    states = torch.randn(2, 300, WIDTH)
    state, steps = torch.zeros(2, WIDTH), []
    for position in states.split(1, dim=1):
        update, state = ours.step(position, state)
        steps.append(update)
    torch.testing.assert_close(torch.cat(steps, dim=1), ours(states))


@torch.inference_mode()
def test_in_half_precision_the_state_is_not() -> None:
    ours = recurrence().bfloat16()
    states = torch.randn(2, 1, WIDTH, dtype=torch.bfloat16)
    update, state = ours.step(states, torch.zeros(2, WIDTH))
    assert (update.dtype, state.dtype, ours(states).dtype) == (torch.bfloat16, torch.float32, torch.bfloat16)


def test_it_learns_to_repeat_what_it_reads() -> None:
    """A toy corpus: the loss falls from that of a guess to a fifth of it."""
    torch.manual_seed(0)
    model = Transformer(config(d_model=32, d_ff=64, encoder_layers=1, decoder_layers=1, heads=4))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(150):
        source = torch.randint(3, 9, (32, 5))
        target = torch.cat([torch.full((32, 1), 1), source], dim=1)
        logits = model(source, torch.full((32,), 5), target[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), source.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 5
