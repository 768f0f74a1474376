from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from export.quantize import QuantizedEmbedding, QuantizedLinear, quantize
from model.config import TransformerConfig
from model.transformer import Transformer
from service.runtime.saturation import LARGEST_SUM, largest_sum

WIDTHS = st.integers(1, 40)
SEEDS = st.integers(0, 2**32)
LARGEST = 2.5


def linear(width: int, out: int, *, bias: bool = True) -> nn.Linear:
    layer = nn.Linear(width, out, bias=bias)
    with torch.no_grad():
        layer.weight.mul_(torch.rand(out, 1) * 5)  # columns of different sizes, as those of a trained layer
    return layer


def inputs(rows: int, width: int, *, non_negative: bool = False) -> Tensor:
    """Within the range; the ends of it among them."""
    states = (torch.rand(rows, width) * 2 - 1) * LARGEST
    states[0] = LARGEST
    return states.abs() if non_negative else states


def bound(layer: nn.Linear, quantized: QuantizedLinear, states: Tensor) -> Tensor:
    """How far off a product can be: half a level of each input and of each weight, added up."""
    weight = quantized.weight.float() * quantized.weight_scale
    of_weights = states.abs().sum(-1, keepdim=True) * quantized.weight_scale / 2
    of_inputs = weight.abs().sum(0) * quantized.input_scale / 2
    return of_weights + of_inputs + 1e-4


@settings(deadline=None)
@given(width=WIDTHS, out=WIDTHS, rows=st.integers(1, 8), seed=SEEDS, non_negative=st.booleans(), bias=st.booleans())
@torch.inference_mode()
def test_close_to_the_layer(width: int, out: int, rows: int, seed: int, non_negative: bool, bias: bool) -> None:
    torch.manual_seed(seed)
    layer = linear(width, out, bias=bias)
    quantized = QuantizedLinear(layer, LARGEST, non_negative=non_negative)
    states = inputs(rows, width, non_negative=non_negative)
    off = (quantized(states) - layer(states)).abs()
    assert (off <= bound(layer, quantized, states)).all()


@settings(deadline=None)
@given(width=WIDTHS, out=WIDTHS, seed=SEEDS, same_sign=st.booleans())
def test_no_product_can_saturate(width: int, out: int, seed: int, same_sign: bool) -> None:
    torch.manual_seed(seed)
    layer = linear(width, out)
    if same_sign:
        layer.weight.data = layer.weight.data.abs() + 1.0
    weight = QuantizedLinear(layer, LARGEST).weight
    assert largest_sum(weight.numpy()) <= LARGEST_SUM
    used = torch.nn.functional.pad(weight, (0, 0, 0, width % 2)).int().abs().view(-1, 2, out).sum(1).amax(0)
    assert (used >= LARGEST_SUM - 2).all()  # and no level is given away


@torch.inference_mode()
def test_a_percent_off_on_the_whole() -> None:
    torch.manual_seed(0)
    layer = linear(256, 512)
    for non_negative in (False, True):
        states = inputs(64, 256, non_negative=non_negative)
        off = QuantizedLinear(layer, LARGEST, non_negative=non_negative)(states) - layer(states)
        assert off.norm() < 0.01 * layer(states).norm()


@torch.inference_mode()
def test_no_sign_to_keep_is_twice_as_fine() -> None:
    layer = linear(256, 512)
    fine, coarse = (QuantizedLinear(layer, LARGEST, non_negative=each) for each in (True, False))
    assert fine.input_scale == pytest.approx(LARGEST / 255)
    assert coarse.input_scale == pytest.approx(LARGEST / 127)
    states = inputs(64, 256, non_negative=True)
    assert (fine(states) - layer(states)).norm() < (coarse(states) - layer(states)).norm()


@settings(deadline=None)
@given(rows=st.integers(1, 9), seed=SEEDS, non_negative=st.booleans())
@torch.inference_mode()
def test_a_row_does_not_depend_on_the_others(rows: int, seed: int, non_negative: bool) -> None:
    torch.manual_seed(seed)
    quantized = QuantizedLinear(linear(24, 17), LARGEST, non_negative=non_negative)
    states = inputs(rows, 24, non_negative=non_negative)
    together = quantized(states)
    for row in range(rows):
        assert torch.equal(together[row], quantized(states[row]))
    states[1:] *= 1e4
    assert torch.equal(quantized(states)[0], together[0])


@torch.inference_mode()
def test_what_is_beyond_the_range_saturates() -> None:
    quantized = QuantizedLinear(linear(24, 17), LARGEST)
    states = torch.randn(5, 24) * 3 * LARGEST
    within = states.clamp(-128 * quantized.input_scale, 127 * quantized.input_scale)
    assert torch.equal(quantized(states), quantized(within))


@pytest.mark.parametrize("non_negative", [False, True])
@torch.inference_mode()
def test_zero_stays_zero(non_negative: bool) -> None:
    layer = linear(24, 17)
    assert torch.equal(
        QuantizedLinear(layer, LARGEST, non_negative=non_negative)(torch.zeros(3, 24)), layer.bias.expand(3, -1)
    )
    # An input that calibration never saw, and an output column without weights.
    layer.weight[2] = 0.0
    silent = QuantizedLinear(layer, 0.0, non_negative=non_negative)
    assert torch.equal(silent(torch.zeros(3, 24)), layer.bias.expand(3, -1))
    assert silent(torch.full((3, 24), 1e3)).isfinite().all()


@torch.inference_mode()
def test_the_exported_product_is_the_eager_one(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(
        QuantizedLinear(linear(24, 17), LARGEST),
        nn.ReLU(),
        QuantizedLinear(linear(17, 9, bias=False), 4.0, non_negative=True),
    )
    states = inputs(6, 24)
    states[1], states[2] = 0.0, 100 * states[2]
    rows = torch.export.Dim("rows")
    program = torch.onnx.export(
        module,
        (states,),
        input_names=["states"],
        dynamic_shapes=({0: rows},),
        dynamo=True,
        opset_version=20,
        verbose=False,
    )
    assert program is not None
    program.save(tmp_path / "product.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(tmp_path / "product.onnx", options, providers=["CPUExecutionProvider"])
    (together,) = session.run(None, {"states": states.numpy()})
    np.testing.assert_allclose(together, module(states).numpy(), atol=1e-5, rtol=1e-5)
    for row in range(len(states)):
        (alone,) = session.run(None, {"states": states[row : row + 1].numpy()})
        np.testing.assert_array_equal(alone[0], together[row])


@pytest.mark.parametrize(("activation", "gated"), [("relu", False), ("gelu", False), ("relu", True)])
def test_every_layer_of_a_model(activation: str, gated: bool) -> None:
    config = TransformerConfig.model_validate(
        {"source_vocabulary_size": 9, "target_vocabulary_size": 9, "d_model": 8, "heads": 2, "d_ff": 12}
        | {"encoder_layers": 1, "decoder_layers": 1, "activation": activation, "gated": gated}
    )
    model = Transformer(config)
    ranges = {name: 2.0 for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    quantize(model, ranges)
    assert not [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    quantized = {name: module for name, module in model.named_modules() if isinstance(module, QuantizedLinear)}
    assert quantized.keys() == ranges.keys()
    unsigned = {name for name, module in quantized.items() if module.zero_point == 0}
    contracts = {"encoder.0.feed_forward.contract", "decoder.0.feed_forward.contract"}
    assert unsigned == (contracts if activation == "relu" and not gated else set())


@settings(deadline=None)
@given(rows=st.integers(1, 40), width=WIDTHS, seed=SEEDS, factor=st.sampled_from([1.0, 5.5]))
@torch.inference_mode()
def test_each_row_of_an_embedding_is_as_fine_as_bytes_can_be(rows: int, width: int, seed: int, factor: float) -> None:
    torch.manual_seed(seed)
    weight = torch.randn(rows, width) * torch.rand(rows, 1) * 3
    weight[0] = 0.0
    embedding = QuantizedEmbedding(weight, factor)
    ids = torch.randint(rows, (3, 4))
    off = (embedding(ids) / factor - weight[ids]).abs()
    level = weight[ids].abs().amax(dim=-1, keepdim=True) / 127
    assert (off <= 0.501 * level + 1e-12).all()


def test_parts_of_a_large_weight_are_quantized_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = linear(24, 17)
    whole, rows = QuantizedLinear(layer, LARGEST), QuantizedEmbedding(layer.weight.detach(), 2.0)
    monkeypatch.setattr("export.quantize._ROWS", 5)
    parts, other_rows = QuantizedLinear(layer, LARGEST), QuantizedEmbedding(layer.weight.detach(), 2.0)
    for one, other in ((whole, parts), (rows, other_rows)):
        assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


@pytest.mark.parametrize("shared", [True, False])
def test_embeddings_that_are_one_stay_one(shared: bool) -> None:
    sizes = {"source_vocabulary_size": 9, "target_vocabulary_size": 9, "d_model": 8, "heads": 2, "d_ff": 12}
    model = Transformer(TransformerConfig(**sizes, encoder_layers=1, decoder_layers=1, share_embeddings=shared))
    quantize(model, dict.fromkeys([name for name, one in model.named_modules() if isinstance(one, nn.Linear)], 2.0))
    assert isinstance(model.source_embedding, QuantizedEmbedding)
    assert (model.source_embedding is model.target_embedding) is shared


@torch.inference_mode()
def test_a_quantized_model_still_says_about_the_same(random_model: Callable[..., Transformer]) -> None:
    model = random_model(1, 1)
    source, lengths = torch.randint(4, 400, (3, 9)), torch.tensor([9, 4, 7])
    target = torch.randint(4, 400, (3, 6))
    expected = model(source, lengths, target)
    inputs: dict[str, float] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            module.register_forward_pre_hook(
                lambda _, seen, name=name: inputs.update({name: float(seen[0].abs().max())})
            )
    model(source, lengths, target)
    quantize(model, inputs)
    off = model(source, lengths, target) - expected
    assert off.norm() < 0.05 * expected.norm()
