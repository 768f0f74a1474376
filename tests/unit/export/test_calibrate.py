import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from dragoman.tokenizer import Tokenizer
from export.calibrate import COVERED, _Values, calibrate, steady
from export.examples import Example, batches
from export.products import Ranges
from export.samples import Sample
from export.teacher import Teacher
from export.write import examples_of
from model.transformer import Transformer
from tests.plain_pytorch import parameters_of
from tests.unit.export.written import taught

PAIRS = 40
Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def examples(loaded: tuple[Transformer, Tokenizer], samples: list[Sample]) -> list[Example]:
    return examples_of(samples[:PAIRS], [[]] * PAIRS, loaded[1], loaded[0].config.max_positions)


@pytest.fixture(scope="module")
def teacher(loaded: tuple[Transformer, Tokenizer]) -> Teacher:
    return taught(parameters_of(loaded[0]))


def ranges_of(teacher: Teacher, examples: Sequence[Example], factors: Mapping[str, Floats] | None = None) -> Ranges:
    source, target = (sum(map(len, side)) for side in zip(*examples, strict=True))
    return calibrate(teacher.run(batches(examples, 0)), (source, target), factors or {})


@torch.inference_mode()
def inputs_alone(model: Transformer, examples: list[Example]) -> dict[str, Floats]:
    """What each layer reads, [positions, in], example by example, so that there is no padding."""
    seen: dict[str, list[Floats]] = {}
    handles = [
        layer.register_forward_pre_hook(
            lambda _, inputs, name=name: seen.setdefault(name, []).append(inputs[0][0].numpy())
        )
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Linear)
    ]
    for source, target in examples:
        model(torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([target]))
    for handle in handles:
        handle.remove()
    return {name: np.concatenate(values) for name, values in seen.items()}


def check(ranges: Ranges, alone: Mapping[str, Floats]) -> None:
    """Compare the ranges of a model with what its layers read without padding."""
    assert ranges.keys() == alone.keys()
    for name, values in alone.items():
        sizes = np.sort(np.abs(values), axis=None).astype(np.float64)
        levels = 127 if (values < 0).any() else 255
        least, most = sizes[int(COVERED * sizes.size) - 1], sizes[-1]
        errors = {size: squared_error(sizes, size, levels) for size in np.geomspace(least, most * 1.125, 40)}
        assert least * (1 - 1e-5) <= ranges[name] <= most * 1.126, name
        assert squared_error(sizes, ranges[name], levels) <= 1.3 * min(errors.values()), name  # ranges are rounded up


def squared_error(sizes: NDArray[np.float64], largest: float, levels: int) -> float:
    """Expect the error of a range: that of values beyond it, and of rounding where a value is not 0."""
    beyond = np.maximum(sizes - largest, 0)
    return float((beyond**2).sum() + np.count_nonzero(sizes) * (largest / levels) ** 2 / 12)


def test_ranges_are_those_of_the_sentences_alone(
    loaded: tuple[Transformer, Tokenizer], teacher: Teacher, examples: list[Example]
) -> None:
    check(ranges_of(teacher, examples), inputs_alone(loaded[0], examples))


@pytest.mark.parametrize("fields", [{}, {"decoder_cell": "ssru"}])
def test_translations_may_begin_with_the_id_of_padding(
    random_model: Callable[..., Transformer], fields: dict[str, str]
) -> None:
    """As those of Marian do; what is read there may be the largest of all."""
    model = random_model(1, 1, positions="learned", **fields)
    with torch.no_grad():
        model.target_positions.table[0] = 50.0
    examples = [Example([5, 6, 2], [0, 7, 8]), Example([9, 2], [0])]
    check(ranges_of(taught(parameters_of(model)), examples), inputs_alone(model, examples))


def test_it_does_not_matter_what_is_in_a_batch(
    teacher: Teacher, examples: list[Example], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ranges_of(teacher, examples)
    monkeypatch.setattr("export.examples.BATCH", 7)
    assert ranges_of(teacher, examples[::-1]) == pytest.approx(expected, rel=1e-4)


def test_what_some_layers_will_read_is_larger_by_factors(
    loaded: tuple[Transformer, Tokenizer], teacher: Teacher, examples: list[Example]
) -> None:
    alone, larger = inputs_alone(loaded[0], examples), "decoder.1.cross_attention.output"
    factors = np.geomspace(0.01, 100, alone[larger].shape[1], dtype=np.float32)
    check(ranges_of(teacher, examples, {larger: factors}), alone | {larger: alone[larger] * factors})


@given(st.floats(2.0**-20, 2.0**20, width=32))
def test_a_steady_value_is_hardly_larger_and_one_of_few(value: float) -> None:
    [rounded] = steady(np.array([value], np.float32)).tolist()
    assert value <= rounded <= value * 1.125
    mantissa, _ = math.frexp(rounded)
    assert (mantissa * 16).is_integer()


def test_last_digits_do_not_matter() -> None:
    """As other processors' orders of adding up make them differ: by a millionth."""
    chance = np.random.default_rng(0)
    values = (chance.random(2000) * 10).astype(np.float32)
    noisy = (values * (1 + 1e-6 * chance.standard_normal(2000))).astype(np.float32)
    assert (steady(values) != steady(noisy)).sum() <= 2
    assert (values != noisy).sum() > 1000


@pytest.mark.parametrize(("shift", "far", "best"), [(0, [15] * 9, 15), (-0.1, [15] * 99, 15), (0, [6], 4.5)])
def test_values_far_beyond_all_others_are_in_the_range_if_they_are_worth_it(
    shift: float, far: list[float], best: float
) -> None:
    """As after a relu; without one, all have half the levels."""
    values = np.maximum(np.random.default_rng(0).standard_normal((2000, 500)), 0).astype(np.float32)
    values[: len(far), 0] = far
    seen = _Values(values.size)
    for part in np.split(values + np.float32(shift), 4):
        seen.add(part)
    assert seen.best_range() == best


def test_nothing_stays_nothing() -> None:
    assert steady(np.zeros(2, np.float32)).tolist() == [0.0, 0.0]
