"""Every architecture of the literature as nodes that onnxruntime runs, against plain PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import nn

from dragoman.bundle import Precision, cache_names, memory_names, present_name, state_names
from export.calibrate import calibrate
from export.examples import Example, batches
from export.graphs import decoder_graph, encoder_graph
from export.products import KEY_VALUE_TYPES, ByteProducts, FloatProducts, Products
from model.data import pad
from model.decoding import greedy
from model.transformer import Transformer
from tests.plain_pytorch import parameters_of
from tests.unit.export.written import content, session, taught

Floats = NDArray[np.float32]
Ids = list[list[int]]
SOURCES = [[*range(4, 24), 2], [7, 2], [9, 300, 11, 12, 2], [2]]
MOST_TOKENS = 12
TIE = 4e-3  # of the best two logits: closer together, either may win
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "post-norm": {"norm": "post"},
    **{activation: {"activation": activation} for activation in ("gelu", "gelu_tanh", "gelu_sigmoid", "silu", "tanh")},
    "gated": {"gated": True},
    "gated gelu": {"gated": True, "activation": "gelu_tanh"},
    "rms": {"norm_kind": "rms", "norm_epsilon": 1e-6},
    "halves": {"positions": "sinusoidal_halves", "position_offset": 3},
    "halves of the paper": {"positions": "sinusoidal_paper_halves"},
    "learned": {"positions": "learned", "position_offset": 2},
    "relative": {"positions": "relative", "relative_buckets": 6, "relative_max_distance": 5},
    "a table a layer": {"positions": "relative", "relative_shared": False},
    "embedding norm": {"embedding_norm": True},
    "no scale": {"scale_embedding": False},
    "output bias": {"output_bias": True},
    "tied": {"tie_output": True, "output_bias": True},
    "apart": {"share_embeddings": False, "source_vocabulary_size": 301},
    "apart and tied": {"share_embeddings": False, "tie_output": True, "target_vocabulary_size": 401},
    "no biases": {"bias": False},
    "other heads": {"heads": 4, "decoder_heads": 1, "decoder_d_ff": 24},
    "heads of a width of their own": {"attention_head_dim": 24, "heads": 3},
    "ssru": {"decoder_cell": "ssru"},
    "ssru, without biases": {"decoder_cell": "ssru", "bias": False, "norm_kind": "rms"},
    "firefox": {
        "decoder_cell": "ssru", "norm": "post", "positions": "sinusoidal_halves", "output_bias": True,
        "norm_epsilon": 1e-6, "share_embeddings": False, "source_vocabulary_size": 301,
    },
    "marian": {"norm": "post", "activation": "silu", "positions": "sinusoidal_paper_halves", "output_bias": True},
    "mbart": {"positions": "learned", "position_offset": 2, "embedding_norm": True, "activation": "gelu"},
    "t5": {
        "positions": "relative", "norm_kind": "rms", "bias": False, "scale_attention": False,
        "scale_embedding": False, "attention_head_dim": 8, "heads": 5, "gated": True,
    },
}  # fmt: skip
HALF = ["default", "rms", "relative", "ssru", "t5", "firefox", "marian"]
CONFIGURATIONS = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(["pre", "post"]),
        "norm_kind": st.sampled_from(["layer", "rms"]),
        "activation": st.sampled_from(["relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu", "tanh"]),
        "gated": st.booleans(),
        "bias": st.booleans(),
        "heads": st.sampled_from([1, 2, 4]),
        "decoder_heads": st.sampled_from([None, 1, 4]),
        "attention_head_dim": st.sampled_from([None, 8, 16]),
        "positions": st.sampled_from(["sinusoidal", "sinusoidal_halves", "learned", "relative"]),
        "decoder_cell": st.sampled_from(["attention", "ssru"]),
        "relative_buckets": st.integers(4, 8),
        "relative_max_distance": st.integers(5, 9),
        "relative_shared": st.booleans(),
        "position_offset": st.integers(0, 3),
        "output_bias": st.booleans(),
        "embedding_norm": st.booleans(),
        "scale_embedding": st.booleans(),
        "tie_output": st.booleans(),
        "share_embeddings": st.booleans(),
    }
).filter(lambda fields: (fields["decoder_cell"], fields["positions"]) != ("ssru", "relative"))


class Step(NamedTuple):
    """What the decoder gives for one position of every row.

    Attributes:
        ids: [batch].
        logits: [batch, vocabulary].
    """

    ids: NDArray[np.int64]
    logits: Floats


class Graphs:
    """Encoder and decoder of a model.

    Attributes:
        memory: of sources, [batch, source, width].
    """

    def __init__(self, model: Transformer, products: Products, precision: Precision, sources: Sequence[list[int]]):
        parameters, self._config = parameters_of(model), model.config
        encoder = session(lambda weights: encoder_graph(parameters, products, precision, weights))
        self._decoder = session(lambda weights: decoder_graph(parameters, products, precision, weights, 0))
        self._type = KEY_VALUE_TYPES[precision]
        self._lengths = np.array([len(source) for source in sources], np.int32)
        size = np.array(self._lengths.max())
        feeds = {"source": pad(sources, 0).numpy(), "source_lengths": self._lengths, "source_size": size}
        [self.memory] = encoder.run(None, feeds)

    def decode(self, targets: Ids) -> list[Step]:
        """Run the decoder with the ids of padded targets, position by position."""
        config, rows, capacity = self._config, len(targets), len(targets[0])
        heads, layers = config.decoder_head_count, config.decoder_layers
        parts = self.memory.reshape(rows, -1, 2 * layers, heads, config.head_dim).transpose(2, 0, 3, 1, 4)
        fixed = {
            "memory_lengths": self._lengths,
            "target_capacity": np.array(capacity, np.int32),
            "source_capacity": np.array(self.memory.shape[1], np.int32),
            **dict(zip(memory_names(layers), np.ascontiguousarray(parts), strict=True)),
        }
        if config.decoder_cell == "ssru":
            kept = {name: np.zeros((rows, 1, config.d_model), self.memory.dtype) for name in state_names(layers)}
        else:
            shape = (rows, heads, capacity, config.head_dim)
            kept = {name: np.zeros(shape, self._type) for name in cache_names(layers)}
        steps = []
        for position, ids in enumerate(zip(*targets, strict=True)):
            feeds = {"ids": np.array(ids), "lengths": np.full(rows, position, np.int32), **fixed, **kept}
            presents = [present_name(name) for name in kept]
            next_ids, logits, *values = self._decoder.run(["next_ids", "logits", *presents], feeds)
            kept = dict(zip(kept, values, strict=True))
            steps.append(Step(next_ids, logits.astype(np.float32)))
        return steps


class Plain(NamedTuple):
    """The same in plain PyTorch.

    Attributes:
        memory: as that of `Graphs`.
        chosen: ids of each translation, the end-of-sentence id among them.
        targets: what the decoder reads when it chooses them, padded.
        logits: of which they are chosen, [batch, target, vocabulary].
    """

    memory: Floats
    chosen: Ids
    targets: Ids
    logits: Floats


@torch.inference_mode()
def plain(model: Transformer, sources: Sequence[list[int]]) -> Plain:
    config, source, lengths = model.config, pad(sources, 0), torch.tensor([len(ids) for ids in sources])
    states = model.encode(source, lengths)
    parts = [part.transpose(1, 2).flatten(2) for pair in model.project_memory(states) for part in pair]
    found = greedy(model, sources, max_target_tokens=MOST_TOKENS)
    chosen = [[*ids, config.eos_id][:MOST_TOKENS] for ids in found]
    target = pad([[config.start_id, *ids[:-1]] for ids in chosen], config.pad_id)
    logits = model(source, lengths, target)
    return Plain(torch.cat(parts, -1).numpy(), chosen, target.tolist(), logits.numpy())


def compare(model: Transformer) -> None:
    """Compare memory, logits and greedy ids of a model in fp32."""
    expected = plain(model, SOURCES)
    graphs = Graphs(model, FloatProducts(parameters_of(model), np.float32), "fp32", SOURCES)
    for row, source in enumerate(SOURCES):
        here, there = graphs.memory[row, : len(source)], expected.memory[row, : len(source)]
        np.testing.assert_allclose(here, there, rtol=1e-3, atol=1e-3)
    steps = graphs.decode(expected.targets)
    for row, chosen in enumerate(expected.chosen):
        for step, token, logits in zip(steps, chosen, expected.logits[row], strict=False):
            np.testing.assert_allclose(step.logits[row], logits, rtol=1e-3, atol=1e-3)
            assert step.ids[row] == step.logits[row].argmax()
            second, best = np.sort(logits)[-2:]
            assert step.ids[row] == token or best - second < TIE


def assert_near(graphs: Graphs, expected: Plain, share: float) -> None:
    """Compare memory and logits as a whole, of which this share at most may be off."""
    steps = graphs.decode(expected.targets)
    memory = [(graphs.memory[row, : len(ids)], expected.memory[row, : len(ids)]) for row, ids in enumerate(SOURCES)]
    logits = [
        (step.logits[row], wanted)
        for row, chosen in enumerate(expected.chosen)
        for step, wanted in zip(steps, expected.logits[row, : len(chosen)], strict=False)
    ]
    for pairs in (memory, logits):
        here, there = (np.concatenate([one.ravel() for one in side]) for side in zip(*pairs, strict=True))
        assert np.linalg.norm(here.astype(np.float32) - there) < share * np.linalg.norm(there)


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_it_computes_what_plain_pytorch_does(random_model: Callable[..., Transformer], fields: dict[str, Any]) -> None:
    compare(random_model(2, 2, **fields))


@given(fields=CONFIGURATIONS)
def test_whatever_is_combined(random_model: Callable[..., Transformer], fields: dict[str, Any]) -> None:
    compare(random_model(1, 2, **fields))


@pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)
def test_products_of_bytes_are_a_few_percent_off(
    random_model: Callable[..., Transformer], fields: dict[str, Any]
) -> None:
    """Keys and values stay floats, so that nothing but the products is compared."""
    model = random_model(1, 1, **fields)
    parameters, expected = parameters_of(model), plain(model, SOURCES)
    examples = [Example(*pair) for pair in zip(SOURCES, expected.targets, strict=True)]
    runs = taught(parameters).run(batches(examples, 0))
    ranges = calibrate(runs, (len(SOURCES) * 21, len(SOURCES) * MOST_TOKENS), {})
    assert_near(Graphs(model, ByteProducts(parameters, ranges), "fp32", SOURCES), expected, 0.1)


@pytest.mark.parametrize("fields", [VARIANTS[name] for name in HALF], ids=HALF)
def test_half_precision_is_a_percent_off(random_model: Callable[..., Transformer], fields: dict[str, Any]) -> None:
    model = random_model(1, 1, **fields)
    expected = plain(model, SOURCES)
    graphs = Graphs(model, FloatProducts(parameters_of(model), np.float16), "fp16", SOURCES)
    assert graphs.memory.dtype == np.float16
    assert_near(graphs, expected, 0.01)


@pytest.mark.parametrize(
    ("fields", "unsigned"),
    [({}, 1), ({"gated": True}, 0), ({"activation": "gelu"}, 0)],
    ids=["relu", "gated", "gelu"],
)
@pytest.mark.parametrize("cell", ["attention", "ssru"])
def test_what_a_relu_gives_has_no_sign_to_keep(
    random_model: Callable[..., Transformer], fields: dict[str, Any], cell: str, unsigned: int
) -> None:
    """Of two layers with six products and four; the encoder's memory is quantized to signed bytes."""
    model = random_model(1, 1, decoder_cell=cell, **fields)
    parameters = parameters_of(model)
    products = ByteProducts(parameters, {n: 2.0 for n, one in model.named_modules() if isinstance(one, nn.Linear)})
    for graph, count in (
        (content(lambda weights: encoder_graph(parameters, products, "int8", weights)), 4 + 1),
        (content(lambda weights: decoder_graph(parameters, products, "int8", weights, 0)), 7 if cell != "ssru" else 6),
    ):
        constants = {one.name: numpy_helper.to_array(one) for one in graph.graph.initializer}
        read = [node.input for node in graph.graph.node if node.op_type == "QuantizeLinear"]
        zeros = [int(constants[inputs[2]]) for inputs in read if constants[inputs[2]].dtype == np.uint8]
        assert sorted(zeros) == [0] * unsigned + [128] * (count - unsigned)
