from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.optim import Optimizers, Schedule
from model.transformer import Transformer

SCHEDULES = st.builds(
    Schedule,
    peak=st.floats(1e-5, 1),
    warmup_steps=st.integers(0, 50),
    decay_steps=st.integers(0, 50),
    total_steps=st.integers(1, 200),
)


@settings(deadline=None)
@given(schedule=SCHEDULES)
def test_rate_rises_stays_and_falls(schedule: Schedule) -> None:
    rates = [schedule.rate(step) for step in range(schedule.total_steps)]
    assert all(0 < rate <= schedule.peak for rate in rates)
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert schedule.rate(schedule.total_steps) == 0


@settings(deadline=None)
@given(schedule=SCHEDULES, more=st.integers(0, 100))
def test_a_longer_run_begins_alike(schedule: Schedule, more: int) -> None:
    longer = Schedule(schedule.peak, schedule.warmup_steps, schedule.decay_steps, schedule.total_steps + more)
    for step in range(max(0, schedule.total_steps - schedule.decay_steps)):
        assert longer.rate(step) == schedule.rate(step)


def test_rate_by_hand() -> None:
    schedule = Schedule(peak=0.8, warmup_steps=4, decay_steps=2, total_steps=8)
    expected = [0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8, 0.4, 0.0]
    assert [schedule.rate(step) for step in range(9)] == pytest.approx(expected)


def optimizers_of(model: Transformer) -> Optimizers:
    return Optimizers(model, rate=2e-3, adam_rate=1e-3, weight_decay=0.1)


def train(model: Transformer, optimizers: Optimizers, first: int, last: int) -> None:
    for step in range(first, last):
        ids = torch.randint(17, (3, 6), generator=torch.Generator().manual_seed(step))
        model(ids, torch.tensor([6, 2, 4]), ids).square().mean().backward()
        optimizers.step(1e-3 * (1 + step))


@pytest.mark.parametrize("fields", [{}, {"positions": "learned", "tie_output": False, "output_bias": True}])
def test_state_round_trip_goes_on_bitwise(build: Callable[..., Transformer], fields: dict[str, object]) -> None:
    model = build(**fields)
    optimizers = optimizers_of(model)
    train(model, optimizers, 0, 3)
    saved = {name: tensor.clone() for name, tensor in optimizers.state().items()}
    other = build(1, **fields)
    other.load_state_dict(model.state_dict())
    resumed = optimizers_of(other)
    resumed.load_state(saved)
    train(model, optimizers, 3, 6)
    train(other, resumed, 3, 6)
    for (name, expected), actual in zip(model.named_parameters(), other.parameters(), strict=True):
        assert torch.equal(actual, expected), name
    states = optimizers.state(), resumed.state()
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_state_names_every_weight(build: Callable[..., Transformer]) -> None:
    model = build()
    optimizers = optimizers_of(model)
    train(model, optimizers, 0, 1)
    assert {key.split("/")[0] for key in optimizers.state()} == dict(model.named_parameters()).keys()


def test_tables_are_not_orthogonalized(build: Callable[..., Transformer]) -> None:
    model = build(positions="learned", tie_output=False)
    optimizers = optimizers_of(model)
    train(model, optimizers, 0, 1)
    by_muon = {key.split("/")[0] for key in optimizers.state() if key.endswith("/momentum_buffer")}
    assert all(name.endswith(".weight") and name.startswith(("encoder.", "decoder.")) for name in by_muon)
    assert "encoder.0.feed_forward.expand.weight" in by_muon
    assert all(model.get_parameter(name).dim() == 2 for name in by_muon)


def test_a_step_clears_the_gradients_and_heeds_the_rate(build: Callable[..., Transformer]) -> None:
    model = build()
    optimizers = optimizers_of(model)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    model(torch.tensor([[3, 4]]), torch.tensor([2]), torch.tensor([[1, 5]])).square().mean().backward()
    optimizers.step(0.0)
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_embedding_of_a_piece_that_is_hardly_read_stays(build: Callable[..., Transformer]) -> None:
    model = build()
    optimizers, table = optimizers_of(model), model.source_embedding.weight
    before = table.detach().clone()
    for _ in range(20):
        table.grad = torch.full_like(table, 1e-8)
        table.grad[1] = 1e-3
        optimizers.step(1e-3)
    moved = (table.detach() - before).abs().mean(dim=1)
    assert moved[0] < moved[1] / 20
