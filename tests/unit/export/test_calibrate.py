import math
import pickle
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from dragoman.tokenizer import Tokenizer
from export.calibrate import COVERED, calibrate, steady
from export.examples import Example
from export.samples import Sample
from export.write import examples_of
from model.transformer import Transformer

PAIRS = 40


@pytest.fixture
def examples(loaded: tuple[Transformer, Tokenizer], samples: list[Sample]) -> list[Example]:
    return examples_of(samples[:PAIRS], [[]] * PAIRS, loaded[1], loaded[0].config.max_positions)


def layers(model: Transformer) -> dict[str, nn.Linear]:
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}


@torch.inference_mode()
def inputs_alone(model: Transformer, examples: list[Example]) -> dict[str, Tensor]:
    """What each layer reads, example by example, so that there is no padding."""
    seen: dict[str, list[Tensor]] = {name: [] for name in layers(model)}
    handles = [
        layer.register_forward_pre_hook(lambda _, inputs, name=name: seen[name].append(inputs[0].abs().flatten()))
        for name, layer in layers(model).items()
    ]
    for source, target in examples:
        model(torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([target]))
    for handle in handles:
        handle.remove()
    return {name: torch.cat(values) for name, values in seen.items()}


def check(model: Transformer, examples: list[Example]) -> None:
    """Compare the ranges of a model with what its layers read without padding."""
    ranges, alone = calibrate(model, examples), inputs_alone(model, examples)
    assert ranges.keys() == alone.keys()
    for name, values in alone.items():
        expected = float(values.sort().values[int(COVERED * values.numel()) - 1])
        assert expected * (1 - 1e-5) <= ranges[name] <= expected * 1.126, name  # rounded up


def test_ranges_are_those_of_the_sentences_alone(
    loaded: tuple[Transformer, Tokenizer], examples: list[Example]
) -> None:
    check(loaded[0], examples)


def test_translations_may_begin_with_the_id_of_padding(random_model: Callable[..., Transformer]) -> None:
    """As those of Marian do; what is read there may be the largest of all."""
    model = random_model(1, 1)
    with torch.no_grad():
        model.target_positions.table[0] = 50.0
    check(model, [Example([5, 6, 2], [0, 7, 8]), Example([9, 2], [0])])


def test_it_does_not_matter_what_is_in_a_batch(
    loaded: tuple[Transformer, Tokenizer], examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = dict(calibrate(loaded[0], examples))
    monkeypatch.setattr("export.examples.BATCH", 7)
    assert dict(calibrate(loaded[0], examples[::-1])) == pytest.approx(expected, rel=1e-4)


def test_the_model_is_left_as_it_was(loaded: tuple[Transformer, Tokenizer], examples: list[Example]) -> None:
    calibrate(loaded[0], examples)
    pickle.dumps(loaded[0])  # which no module can be that keeps a function of calibrate


def test_no_logits_are_computed(loaded: tuple[Transformer, Tokenizer], examples: list[Example]) -> None:
    """With a vocabulary of 256,000 those of a batch are gigabytes."""
    sizes = []
    handle = loaded[0].output.register_forward_hook(lambda _module, _inputs, logits: sizes.append(logits.numel()))
    calibrate(loaded[0], examples)
    handle.remove()
    assert set(sizes) == {0}


@settings(deadline=None)
@given(st.floats(2.0**-20, 2.0**20, width=32))
def test_a_steady_value_is_hardly_larger_and_one_of_few(value: float) -> None:
    [rounded] = steady(torch.tensor([value])).tolist()
    assert value <= rounded <= value * 1.125
    mantissa, _ = math.frexp(rounded)
    assert (mantissa * 16).is_integer()


def test_last_digits_do_not_matter() -> None:
    """As other processors' orders of adding up make them differ: by a millionth."""
    values = torch.rand(2000, generator=torch.Generator().manual_seed(0)) * 10
    noisy = values * (1 + 1e-6 * torch.randn(2000, generator=torch.Generator().manual_seed(1)))
    assert (steady(values) != steady(noisy)).sum() <= 2
    assert (values != noisy).sum() > 1000


def test_nothing_stays_nothing() -> None:
    assert steady(torch.zeros(2)).tolist() == [0.0, 0.0]
