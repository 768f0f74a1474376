"""Keys and values that fit signed bytes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dragoman.bundle import Precision
from dragoman.tokenizer import Tokenizer
from export.examples import Example, batches
from export.graphs import encoder_graph
from export.key_values import measure_factors, scale_to_bytes
from export.parameters import Parameters
from export.products import ByteProducts
from export.samples import Sample
from export.write import examples_of, scale_and_calibrate
from model.transformer import Transformer
from tests.plain_pytorch import parameters_of
from tests.unit.export.written import module, session, taught

PAIRS, LARGEST = 40, 127
Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def examples(loaded: tuple[Transformer, Tokenizer], samples: list[Sample]) -> list[Example]:
    return examples_of(samples[:PAIRS], [[]] * PAIRS, loaded[1], loaded[0].config.max_positions)


def scale(parameters: Parameters, examples: Sequence[Example]) -> Mapping[str, Floats]:
    """Scale the weights of a model; gives by what the inputs of some layers are larger now."""
    width = parameters.config.decoder_head_count * parameters.config.head_dim
    return scale_to_bytes(parameters, measure_factors(taught(parameters).run(batches(examples, 0)), width))


@pytest.fixture(scope="module")
def scaled(loaded: tuple[Transformer, Tokenizer], examples: list[Example]) -> Parameters:
    parameters = parameters_of(loaded[0])
    scale(parameters, examples)
    return parameters


@pytest.mark.parametrize("attention", ["self_attention.query_key_value", "cross_attention.key_value"])
@torch.inference_mode()
def test_each_channel_uses_all_levels(scaled: Parameters, examples: list[Example], attention: str) -> None:
    model, width = module(scaled), 2 * scaled.config.d_model
    for layer in range(scaled.config.decoder_layers):
        seen: list[torch.Tensor] = []
        made = model.get_submodule(f"decoder.{layer}.{attention}")
        made.register_forward_hook(lambda _module, _inputs, output, seen=seen: seen.append(output.flatten(0, -2)))
        for source, lengths, target, _ in (map(torch.from_numpy, batch) for batch in batches(examples, 0)):
            model(source, lengths, target)
        largest = torch.cat(seen)[:, -width:].abs().amax(dim=0)
        assert (largest <= LARGEST * 1.001).all()
        assert (largest >= LARGEST / 1.126).all()


@torch.inference_mode()
def test_the_model_computes_the_same(loaded: tuple[Transformer, Tokenizer], scaled: Parameters) -> None:
    given = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]]), torch.tensor([4, 2]), torch.tensor([[1, 9, 4]] * 2)
    torch.testing.assert_close(module(scaled)(*given), loaded[0](*given), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "fields",
    [
        {"bias": False, "attention_head_dim": 24, "positions": "relative", "scale_attention": False},
        {"decoder_cell": "ssru"},
        {"norm": "post", "decoder_heads": 4},
    ],
    ids=["no biases and heads of a width of their own", "a recurrence has no keys", "post-norm"],
)
@torch.inference_mode()
def test_another_model_computes_the_same(
    random_model: Callable[..., Transformer], examples: list[Example], fields: dict[str, object]
) -> None:
    model = random_model(1, 2, **fields)
    parameters = parameters_of(model)
    larger = scale(parameters, examples)
    attentions = {name.removesuffix(".output") for name in larger}
    own = set() if model.config.decoder_cell == "ssru" else {f"decoder.{layer}.self_attention" for layer in range(2)}
    assert attentions == own | {f"decoder.{layer}.cross_attention" for layer in range(2)}
    given = torch.tensor([[5, 6, 7, 2]]), torch.tensor([4]), torch.tensor([[1, 9, 4]])
    torch.testing.assert_close(module(parameters)(*given), model(*given), rtol=1e-3, atol=1e-3)


def test_inputs_of_output_projections_are_larger_by_what_is_told(
    loaded: tuple[Transformer, Tokenizer], examples: list[Example]
) -> None:
    parameters = parameters_of(loaded[0])
    [before] = taught(parameters).run(batches(examples, 0))
    larger = scale(parameters, examples)
    [after] = taught(parameters).run(batches(examples, 0))
    for name, values in after.read.items():
        expected = before.read[name] * larger[name] if name in larger else before.read[name]
        np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_a_channel_that_is_always_zero_stays_finite(
    random_model: Callable[..., Transformer], examples: list[Example]
) -> None:
    model = random_model(1, 1)
    layer = model.get_submodule("decoder.0.cross_attention.key_value")
    with torch.no_grad():
        layer.weight[3], layer.bias[3] = 0.0, 0.0
    parameters = parameters_of(model)
    scale(parameters, examples)
    assert all(weight.isfinite().all() for weight in module(parameters).state_dict().values())


def test_bytes_round_to_even_and_saturate(loaded: tuple[Transformer, Tokenizer], examples: list[Example]) -> None:
    """The encoder in bytes, with a memory in floats and in bytes."""
    parameters = parameters_of(loaded[0])
    ranges = scale_and_calibrate(parameters, taught(parameters), examples)
    parameters.scale_outputs("decoder.1.cross_attention.key_value", np.full(64, 1e3, np.float32))
    source = np.array([[5, 6, 7, 2], [8, 2, 0, 0]])
    feeds = {"source": source, "source_lengths": np.array([4, 2], np.int32), "source_size": np.array(4, np.int32)}

    def memory(precision: Precision) -> Floats:
        products = ByteProducts(parameters, ranges)
        opened = session(lambda weights: encoder_graph(parameters, products, precision, weights))
        [made] = opened.run(None, feeds)
        return made

    exact, rounded = memory("fp32"), memory("int8")
    assert (exact.dtype, rounded.dtype) == (np.float32, np.int8)
    assert np.abs(exact[..., :64]).max() < LARGEST < np.abs(exact[..., 64:]).max()
    np.testing.assert_array_equal(rounded, np.rint(exact).clip(-128, 127))
