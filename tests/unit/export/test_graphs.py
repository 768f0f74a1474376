"""What the graphs consist of: an operator too many in a layer costs time at every step of every sentence."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from dragoman.bundle import DECODER, ENCODER, Bundle, Precision, cache_names, memory_names
from dragoman.tokenizer import Tokenizer
from export.weights import WeightsFile
from export.write import write_graphs
from model.transformer import Transformer
from service.runtime.host import EncoderSession
from tests.plain_pytorch import parameters_of

PRECISIONS: list[Precision] = ["fp32", "int8"]
# Data that moves for nothing, and control flow.
FORBIDDEN = {"Transpose", "Expand", "If", "Loop", "Scan", "MemcpyFromHost", "MemcpyToHost", "Identity", "Tile", "Where"}
KEY_VALUE = {"fp32": TensorProto.FLOAT, "int8": TensorProto.INT8}
each = pytest.mark.parametrize("precision", PRECISIONS)


class Exported(Protocol):
    """Of the fixture `exported`."""

    bundle: Bundle


class Counts(NamedTuple):
    """Operators of one layer, and of all that is outside of layers."""

    layer: dict[str, int]
    outside: dict[str, int]


# The largest logit in two rounds, see export.argmax.
ARGMAX = {"Reshape": 1, "ReduceMax": 1, "ArgMax": 2, "GatherND": 1, "Gather": 2 + 1, "Mul": 1 + 1, "Add": 1 + 1}
# Rows of bytes and their scales; the factor of an embedding is in the scales.
BYTES_ARGMAX = ARGMAX | {"Gather": 2 + 1 + 1, "Cast": 1}
# fp32 adds the bias of a product by an operator of its own.
PINNED: dict[tuple[str, str], Counts] = {
    ("encoder", "fp32"): Counts(
        layer={"LayerNormalization": 2, "MatMul": 4, "GroupQueryAttention": 1, "Relu": 1, "Add": 4 + 2},
        outside={"Gather": 1, "Mul": 1, "Add": 2, "LayerNormalization": 1, "MatMul": 1}
        | {"Shape": 1, "Slice": 1, "Sub": 1},
    ),
    ("encoder", "int8"): Counts(
        layer={"LayerNormalization": 2, "QuantizeLinear": 4, "MatMulIntegerToFloat": 4}
        | {"GroupQueryAttention": 1, "Relu": 1, "Add": 2},
        outside={"Gather": 1 + 1, "Cast": 1, "Mul": 1, "Add": 1, "LayerNormalization": 1}
        | {"QuantizeLinear": 2, "MatMulIntegerToFloat": 1}  # the encoder memory, too, is quantized
        | {"Shape": 1, "Slice": 1, "Sub": 1},
    ),
    # The slice is the empty tensor of new keys and values that the attention to the source is given.
    ("decoder", "fp32"): Counts(
        layer={"LayerNormalization": 3, "MatMul": 6, "GroupQueryAttention": 2, "Slice": 1, "Relu": 1, "Add": 6 + 3},
        outside={"LayerNormalization": 1, "Gemm": 1} | ARGMAX | {"Unsqueeze": 2, "Squeeze": 1, "Sub": 1},
    ),
    ("decoder", "int8"): Counts(
        layer={"LayerNormalization": 3, "QuantizeLinear": 6, "MatMulIntegerToFloat": 6}
        | {"GroupQueryAttention": 2, "Slice": 1, "Relu": 1, "Add": 3},
        outside={"LayerNormalization": 1}
        | BYTES_ARGMAX
        | {"QuantizeLinear": 1, "QGemm": 1, "ConstantOfShape": 1}
        | {"Unsqueeze": 2, "Squeeze": 1, "Sub": 1},
    ),
}
Graphs = dict[tuple[str, str, int], ModelProto]


@pytest.fixture(scope="module")
def graphs(
    random_model: Callable[..., Transformer],
    exported: Callable[[Precision], Exported],
    tmp_path_factory: pytest.TempPathFactory,
) -> Graphs:
    """By name, precision and number of layers: each graph with one layer and with two."""
    graphs: Graphs = {}
    for precision in PRECISIONS:
        other = tmp_path_factory.mktemp(precision)
        model = random_model(2, 1)
        ranges = {name: 4.0 for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
        with WeightsFile(other) as weights:
            write_graphs(parameters_of(model), precision, other, weights, ranges, alignment_layer=0)
        bundle = exported(precision).bundle  # one encoder layer, two decoder layers
        graphs["encoder", precision, 1], graphs["decoder", precision, 2] = map(
            onnx.load, (bundle.path / ENCODER, bundle.path / DECODER)
        )
        graphs["encoder", precision, 2] = onnx.load(other / "encoder.onnx")
        graphs["decoder", precision, 1] = onnx.load(other / "decoder.onnx")
    return graphs


def operators(graph: ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in graph.graph.node)


def difference(expected: dict[str, int], actual: Counter[str]) -> str:
    """Which operators there are too many or too few of, for people."""
    names = sorted(expected.keys() | actual.keys())
    return "; ".join(f"{n}: {actual[n]}, pinned {expected.get(n, 0)}" for n in names if actual[n] != expected.get(n, 0))


@pytest.mark.parametrize(("name", "precision"), PINNED)
def test_operator_counts(graphs: Graphs, name: str, precision: str) -> None:
    one, two = operators(graphs[name, precision, 1]), operators(graphs[name, precision, 2])
    layer = Counter(two)
    layer.subtract(one)
    outside = Counter(one)
    outside.subtract(layer)
    pinned = PINNED[name, precision]
    assert not difference(pinned.layer, layer), f"{precision} {name} layer: {difference(pinned.layer, layer)}"
    assert not difference(pinned.outside, outside), (
        f"{precision} {name}, outside: {difference(pinned.outside, outside)}"
    )


@pytest.mark.parametrize(("name", "precision"), PINNED)
def test_nothing_moves_data_for_nothing(graphs: Graphs, name: str, precision: str) -> None:
    for layers in (1, 2):
        graph = graphs[name, precision, layers]
        assert not FORBIDDEN & operators(graph).keys()
        assert not graph.functions
        assert {node.domain for node in graph.graph.node} == {"", "com.microsoft"}


@pytest.mark.parametrize(("name", "precision"), PINNED)
def test_nor_what_onnxruntime_makes_of_it(
    exported: Callable[[Precision], Exported], tmp_path: Path, name: str, precision: Precision
) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(
        exported(precision).bundle.path / f"{name}.onnx",
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],  # as service.runtime.host
    )
    optimized = operators(onnx.load(tmp_path / "optimized.onnx", load_external_data=False))
    assert optimized["GroupQueryAttention"]
    assert not FORBIDDEN & optimized.keys()


def attentions(graph: ModelProto) -> list[NodeProto]:
    return [node for node in graph.graph.node if node.op_type == "GroupQueryAttention"]


def attributes(node: NodeProto) -> dict[str, int]:
    return {attribute.name: attribute.i for attribute in node.attribute}


@each
def test_encoder_attention_sees_both_ways(graphs: Graphs, precision: str) -> None:
    for node in attentions(graphs["encoder", precision, 2]):
        assert attributes(node) == {"num_heads": 2, "kv_num_heads": 2, "causal": 0}
        assert len(node.output) == 1


@pytest.fixture(scope="module")
def half(exported: Callable[[Precision], Exported]) -> dict[str, ModelProto]:
    bundle = exported("fp16").bundle
    return {"encoder": onnx.load(bundle.path / ENCODER), "decoder": onnx.load(bundle.path / DECODER)}


def test_encoder_attention_in_half_precision_has_present_outputs(half: dict[str, ModelProto]) -> None:
    """Nobody reads them, but on a GPU the operator refuses to run without them."""
    [node] = attentions(half["encoder"])
    assert len(node.output) == 3
    assert [len(node.output) for node in attentions(half["decoder"])] == [3, 1, 3, 1]  # own and source, twice


def test_attention_scores_in_half_precision_are_computed_once_more(half: dict[str, ModelProto]) -> None:
    """On a GPU the operator cannot give them."""
    assert all("qk_output" not in attributes(node) for node in attentions(half["decoder"]))
    [scores] = [node for node in half["decoder"].graph.node if "attention_scores" in node.output]
    assert scores.op_type == "MatMul"
    shape = (TensorProto.FLOAT16, ["batch", 2, 1, "source_capacity"])
    assert types(half["decoder"].graph.output)["attention_scores"] == shape


def test_attention_scores_are_the_same_in_every_precision(exported: Callable[[Precision], Exported]) -> None:
    """One way to give them is the operator's, the other is a product."""
    rows, chance = 3, np.random.default_rng(0)
    memory = {name: chance.standard_normal((rows, 2, 9, 16)) for name in memory_names(2)}
    caches = {name: np.zeros((rows, 2, 7, 16)) for name in cache_names(2)}
    bundles = [exported(precision).bundle for precision in ("fp32", "fp16")]
    assert bundles[0].manifest.alignment == bundles[1].manifest.alignment
    seen = []
    for bundle, dtype in zip(bundles, (np.float32, np.float16), strict=True):
        session = onnxruntime.InferenceSession(bundle.path / DECODER, providers=["CPUExecutionProvider"])
        feeds = {
            "ids": np.array([1, 5, 9]),
            "lengths": np.zeros(rows, np.int32),
            "memory_lengths": np.array([9, 4, 1], np.int32),
            "target_capacity": np.array(7, np.int32),
            "source_capacity": np.array(9, np.int32),
            **{name: values.astype(dtype) for name, values in (memory | caches).items()},
        }
        [scores] = session.run(["attention_scores"], feeds)
        assert scores.shape == (rows, 2, 1, 9)
        seen.append([scores[row, :, 0, :length] for row, length in enumerate(feeds["memory_lengths"])])
    for exact, half in zip(*seen, strict=True):
        assert np.abs(exact).max() > 0.1
        np.testing.assert_allclose(half, exact, atol=0.02)


def test_in_half_precision_the_largest_logit_is_found_in_one_round(half: dict[str, ModelProto]) -> None:
    """On a GPU the rounds that help a CPU are five launches more, and one of them goes through cuDNN."""
    found = operators(half["decoder"])
    assert found["ArgMax"] == 1
    assert not {"ReduceMax", "GatherND", "Cast"} & found.keys()
    assert found["Reshape"] == 1  # of the query, for the attention scores


@each
def test_decoder_attentions_write_their_own_cache_and_nothing_else(
    graphs: Graphs, exported: Callable[[Precision], Exported], precision: Precision
) -> None:
    """The attention to the source has present outputs only in int8, which demands them; bound to its very inputs.

    One layer gives its scores as well.
    """
    nodes = attentions(graphs["decoder", precision, 2])
    alignment_layer = exported(precision).bundle.manifest.alignment.layer
    for layer in range(2):
        own, source = nodes[2 * layer : 2 * layer + 2]
        assert list(own.input[3:5]) == [f"self_key_{layer}", f"self_value_{layer}"]
        assert list(own.output[1:]) == [f"present_self_key_{layer}", f"present_self_value_{layer}"]
        assert list(source.input[3:5]) == [f"memory_key_{layer}", f"memory_value_{layer}"]
        present = [f"present_memory_key_{layer}", f"present_memory_value_{layer}"]
        present = present if precision == "int8" else []
        scores = [*(present or ["", ""]), "attention_scores"]
        assert list(source.output[1:]) == (scores if layer == alignment_layer else present)
        assert attributes(source).get("qk_output") == (1 if layer == alignment_layer else None)


@each
def test_int8_attends_to_bytes_whose_scale_is_1(graphs: Graphs, precision: str) -> None:
    graph = graphs["decoder", precision, 2].graph
    constants = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in graph.initializer}
    for node in attentions(graphs["decoder", precision, 2]):
        scales = [constants[name] for name in node.input[12:]]
        assert scales == ([[1.0], [1.0]] if precision == "int8" else [])
        assert attributes(node).get("kv_cache_bit_width") == (8 if precision == "int8" else None)


def types(values: Iterable[ValueInfoProto]) -> dict[str, tuple[int, list[str | int]]]:
    """Element type and shape by name, in order."""
    return {
        value.name: (
            value.type.tensor_type.elem_type,
            [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim],
        )
        for value in values
    }


@each
def test_encoder_inputs_and_outputs(graphs: Graphs, precision: str) -> None:
    graph = graphs["encoder", precision, 1].graph
    assert types(graph.input) == {
        "source": (TensorProto.INT64, ["batch", "source"]),
        "source_lengths": (TensorProto.INT32, ["batch"]),
        "source_size": (TensorProto.INT32, []),
    }
    assert types(graph.output) == {"memory": (KEY_VALUE[precision], ["batch", "source", 2 * 2 * 32])}


@each
def test_decoder_inputs_and_outputs(graphs: Graphs, precision: str) -> None:
    graph = graphs["decoder", precision, 2].graph
    own = KEY_VALUE[precision], ["batch", 2, "target_capacity", 16]
    source = KEY_VALUE[precision], ["batch", 2, "source_capacity", 16]
    caches = ["self_key_0", "self_value_0", "self_key_1", "self_value_1"]
    memory = ["memory_key_0", "memory_value_0", "memory_key_1", "memory_value_1"]
    assert types(graph.input) == {
        "ids": (TensorProto.INT64, ["batch"]),
        "lengths": (TensorProto.INT32, ["batch"]),
        "memory_lengths": (TensorProto.INT32, ["batch"]),
        "target_capacity": (TensorProto.INT32, []),
        "source_capacity": (TensorProto.INT32, []),
        **dict.fromkeys(caches, own),
        **dict.fromkeys(memory, source),
    }
    presents = dict.fromkeys((f"present_{name}" for name in caches), own)
    assert types(graph.output) == {
        "next_ids": (TensorProto.INT64, ["batch"]),
        "logits": (TensorProto.FLOAT, ["batch", 400]),
        **presents,
        **(dict.fromkeys((f"present_{name}" for name in memory), source) if precision == "int8" else {}),
        "attention_scores": (TensorProto.FLOAT, ["batch", 2, 1, "source_capacity"]),
    }


@each
def test_graphs_are_valid(exported: Callable[[Precision], Exported], precision: Precision) -> None:
    bundle = exported(precision).bundle
    for file in (bundle.path / ENCODER, bundle.path / DECODER):
        model = onnx.load(file, load_external_data=False)
        onnx.checker.check_model(file, full_check=False)
        assert {entry.domain: entry.version for entry in model.opset_import} == {"": 20, "com.microsoft": 1}


@torch.inference_mode()
def test_encoder_computes_the_memory_of_the_checkpoint(
    exported: Callable[[Precision], Exported], loaded: tuple[Transformer, Tokenizer]
) -> None:
    model, _ = loaded
    sources = [[5, 6, 7, 2], [8, 2], [*range(9, 60), 2]]
    memories = EncoderSession(exported("fp32").bundle).encode(sources)
    for source, memory in zip(sources, memories, strict=True):
        states = model.encode(torch.tensor([source]), torch.tensor([len(source)]))
        expected = torch.cat(
            [part.transpose(1, 2).flatten(2) for pair in model.project_memory(states) for part in pair], -1
        )
        np.testing.assert_allclose(np.asarray(memory, np.float32), expected[0], atol=2e-5)
