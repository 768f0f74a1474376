from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from export.graph import Graph
from export.products import ByteProducts
from export.quantize import EMBEDDING_LEVELS, WEIGHT_LEVELS, input_scale, row_levels, weight_levels
from export.weights import WeightsFile
from service.runtime.saturation import LARGEST_SUM, largest_sum
from tests.unit.export.written import parameters, session

Floats = NDArray[np.float32]
WIDTHS = st.integers(1, 40)
SEEDS = st.integers(0, 2**32)
LARGEST = 2.5


class Layer(NamedTuple):
    """A linear layer: weight [out, in], bias [out]."""

    weight: Floats
    bias: Floats | None

    def __call__(self, states: Floats) -> Floats:
        product = states @ self.weight.T
        return product if self.bias is None else product + self.bias


@pytest.fixture
def chance() -> np.random.Generator:
    return np.random.default_rng(0)


def linear(chance: np.random.Generator, width: int, out: int, *, bias: bool = True) -> Layer:
    """Columns of different sizes, as those of a trained layer."""
    weight = chance.uniform(-1, 1, (out, width)) / np.sqrt(width) * chance.uniform(0, 5, (out, 1))
    return Layer(weight.astype(np.float32), chance.uniform(-1, 1, out).astype(np.float32) if bias else None)


def inputs(chance: np.random.Generator, rows: int, width: int, *, non_negative: bool = False) -> Floats:
    """Within the range; the ends of it among them."""
    states = (chance.uniform(-1, 1, (rows, width)) * LARGEST).astype(np.float32)
    states[0] = LARGEST
    return np.abs(states) if non_negative else states


class Product:
    """A layer in bytes, as onnxruntime runs it."""

    def __init__(self, layer: Layer, largest: float = LARGEST, *, non_negative: bool = False) -> None:
        self._session = session(lambda weights: written(weights, layer, largest, non_negative=non_negative))

    def __call__(self, states: Floats) -> Floats:
        [product] = self._session.run(None, {"states": states})
        return product


def written(weights: WeightsFile, layer: Layer, largest: float, *, non_negative: bool) -> Graph:
    arrays = {"layer.weight": layer.weight, **({} if layer.bias is None else {"layer.bias": layer.bias})}
    products = ByteProducts(parameters(arrays), {"layer": largest})
    graph = Graph(weights)
    states = graph.input("states", np.float32, ["rows", layer.weight.shape[1]])
    products.linear(graph, states, ["layer"], non_negative=non_negative, name="product")
    graph.output("product", np.float32, ["rows", len(layer.weight)])
    return graph


def plain(layer: Layer, states: Floats, *, non_negative: bool) -> NDArray[np.float64]:
    """The product of bytes in plain arithmetic."""
    levels, worth = weight_levels(layer.weight)
    scale, zero = input_scale(LARGEST, non_negative=non_negative)
    bytes_of_states = np.clip(np.rint(states / scale) + int(zero), 0, 255) - int(zero)
    product = bytes_of_states @ levels.astype(np.float64) * scale * worth
    return product if layer.bias is None else product + layer.bias


def bound(layer: Layer, states: Floats, *, non_negative: bool) -> Floats:
    """How far off a product can be: half a level of each input and of each weight, added up."""
    levels, worth = weight_levels(layer.weight)
    scale, _ = input_scale(LARGEST, non_negative=non_negative)
    of_weights = np.abs(states).sum(-1, keepdims=True) * worth / 2
    of_inputs = np.abs(levels * worth).sum(0) * scale / 2
    return of_weights + of_inputs + 1e-4


@given(width=WIDTHS, out=WIDTHS, rows=st.integers(1, 8), seed=SEEDS, non_negative=st.booleans(), bias=st.booleans())
def test_close_to_the_layer(width: int, out: int, rows: int, seed: int, non_negative: bool, bias: bool) -> None:
    chance = np.random.default_rng(seed)
    layer = linear(chance, width, out, bias=bias)
    states = inputs(chance, rows, width, non_negative=non_negative)
    product = Product(layer, non_negative=non_negative)(states)
    np.testing.assert_allclose(product, plain(layer, states, non_negative=non_negative), rtol=1e-5, atol=1e-5)
    assert (np.abs(product - layer(states)) <= bound(layer, states, non_negative=non_negative)).all()


@given(width=WIDTHS, out=WIDTHS, seed=SEEDS, same_sign=st.booleans())
def test_no_product_can_saturate(width: int, out: int, seed: int, same_sign: bool) -> None:
    weight = linear(np.random.default_rng(seed), width, out).weight
    levels, _ = weight_levels(np.abs(weight) + 1 if same_sign else weight)
    assert levels.shape == (width, out)
    assert largest_sum(levels) <= LARGEST_SUM
    pairs = np.pad(levels.astype(np.int32), ((0, width % 2), (0, 0))).reshape(-1, 2, out)
    used = np.maximum(pairs.clip(0).sum(1), -pairs.clip(None, 0).sum(1)).max(0)
    assert (used >= LARGEST_SUM - 2).all()  # and no level is given away


@given(width=WIDTHS, out=WIDTHS, seed=SEEDS)
def test_a_weight_is_off_by_half_a_level_at_most(width: int, out: int, seed: int) -> None:
    weight = linear(np.random.default_rng(seed), width, out).weight
    levels, worth = weight_levels(weight)
    assert (levels.dtype, worth.dtype) == (np.int8, np.float32)
    assert (np.abs(levels.T * worth[:, None] - weight) <= 0.501 * worth[:, None]).all()
    assert (worth * WEIGHT_LEVELS <= 2.001 * np.abs(weight).max(1)).all()


@pytest.mark.parametrize("non_negative", [False, True])
def test_a_percent_off_on_the_whole(chance: np.random.Generator, non_negative: bool) -> None:
    layer = linear(chance, 256, 512)
    states = inputs(chance, 64, 256, non_negative=non_negative)
    off = Product(layer, non_negative=non_negative)(states) - layer(states)
    assert np.linalg.norm(off) < 0.01 * np.linalg.norm(layer(states))


def test_no_sign_to_keep_is_twice_as_fine(chance: np.random.Generator) -> None:
    assert input_scale(LARGEST, non_negative=True) == (pytest.approx(LARGEST / 255), 0)
    assert input_scale(LARGEST, non_negative=False) == (pytest.approx(LARGEST / 127), 128)
    layer = linear(chance, 256, 512)
    states = inputs(chance, 64, 256, non_negative=True)
    fine, coarse = (Product(layer, non_negative=each)(states) - layer(states) for each in (True, False))
    assert np.linalg.norm(fine) < np.linalg.norm(coarse)


@given(rows=st.integers(1, 9), seed=SEEDS, non_negative=st.booleans())
def test_a_row_does_not_depend_on_the_others(rows: int, seed: int, non_negative: bool) -> None:
    chance = np.random.default_rng(seed)
    product = Product(linear(chance, 24, 17), non_negative=non_negative)
    states = inputs(chance, rows, 24, non_negative=non_negative)
    together = product(states)
    for row in range(rows):
        np.testing.assert_array_equal(product(states[row : row + 1])[0], together[row])
    states[1:] *= 1e4
    np.testing.assert_array_equal(product(states)[0], together[0])


def test_what_is_beyond_the_range_saturates(chance: np.random.Generator) -> None:
    product = Product(linear(chance, 24, 17))
    states = (chance.standard_normal((5, 24)) * 3 * LARGEST).astype(np.float32)
    scale, _ = input_scale(LARGEST, non_negative=False)
    np.testing.assert_array_equal(product(states), product(states.clip(-128 * scale, 127 * scale)))


@pytest.mark.parametrize("non_negative", [False, True])
def test_zero_stays_zero(chance: np.random.Generator, non_negative: bool) -> None:
    layer = linear(chance, 24, 17)
    zeros = np.zeros((3, 24), np.float32)
    np.testing.assert_array_equal(
        Product(layer, non_negative=non_negative)(zeros), np.broadcast_to(layer.bias, (3, 17))
    )
    # An input that calibration never saw, and an output column without weights.
    layer.weight[2] = 0.0
    silent = Product(layer, 0.0, non_negative=non_negative)
    np.testing.assert_array_equal(silent(zeros), np.broadcast_to(layer.bias, (3, 17)))
    assert np.isfinite(silent(np.full((3, 24), 1e3, np.float32))).all()


@given(rows=st.integers(1, 40), width=WIDTHS, seed=SEEDS)
def test_each_row_of_an_embedding_is_as_fine_as_bytes_can_be(rows: int, width: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    weight = (chance.standard_normal((rows, width)) * chance.uniform(0, 3, (rows, 1))).astype(np.float32)
    weight[0] = 0.0
    levels, worth = row_levels(weight)
    assert (levels.dtype, worth.shape) == (np.int8, (rows, 1))
    level = np.abs(weight).max(axis=1, keepdims=True) / EMBEDDING_LEVELS
    assert (np.abs(levels * worth - weight) <= 0.501 * level + 1e-12).all()


@pytest.mark.parametrize("factor", [1.0, 5.5])
def test_rows_of_bytes_are_looked_up_with_their_factor(chance: np.random.Generator, factor: float) -> None:
    weight = chance.standard_normal((40, 16)).astype(np.float32)

    def write(weights: WeightsFile) -> Graph:
        graph = Graph(weights)
        ids = graph.input("ids", np.int64, ["rows", "length"])
        rows = ByteProducts(parameters({"rows": weight}), {}).embedding(graph, ids, "rows", factor)
        graph.output(rows, np.float32, ["rows", "length", 16])
        return graph

    ids = chance.integers(40, size=(3, 4))
    [rows] = session(write).run(None, {"ids": ids})
    levels, worth = row_levels(weight)
    np.testing.assert_allclose(rows, (levels * worth * factor)[ids], rtol=1e-6)


@pytest.mark.parametrize("quantize", [weight_levels, row_levels])
def test_parts_of_a_large_weight_are_quantized_as_the_whole(
    chance: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    quantize: Callable[[Floats], tuple[NDArray[np.int8], Floats]],
) -> None:
    weight = linear(chance, 24, 17).weight
    whole = quantize(weight)
    monkeypatch.setattr("export.quantize._ROWS", 5)
    for one, other in zip(whole, quantize(weight), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("quantize", [weight_levels, row_levels])
def test_the_type_of_a_checkpoint_does_not_matter(
    chance: np.random.Generator, quantize: Callable[[NDArray[np.floating]], tuple[NDArray[np.int8], Floats]]
) -> None:
    half = linear(chance, 24, 17).weight.astype(np.float16)
    for one, other in zip(quantize(half), quantize(half.astype(np.float32)), strict=True):
        np.testing.assert_array_equal(one, other)
