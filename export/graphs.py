"""The two graphs of a bundle, as torch modules and as ONNX files."""

from collections.abc import Callable
from pathlib import Path

import onnx_ir
import torch
from torch import Tensor, nn

from dragoman.bundle import (
    IDS,
    LENGTHS,
    LOGITS,
    MEMORY,
    MEMORY_LENGTHS,
    NEXT_IDS,
    SOURCE,
    SOURCE_CAPACITY,
    SOURCE_LENGTHS,
    SOURCE_SIZE,
    TARGET_CAPACITY,
    cache_names,
    memory_names,
    present_name,
)
from export.attention_scores import reveal
from export.operators import RowLengths, int32_scalar
from export.weights import WeightsFile
from model.attention import KeyValue
from model.layers import Cache
from model.transformer import Transformer

OPSET = 20


class EncoderGraph(nn.Module):
    """Padded source ids and lengths to the encoder memory of every decoder layer."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model
        self.memory_projection: nn.Module = model.memory_projection()

    def forward(self, source: Tensor, source_lengths: Tensor, source_size: Tensor) -> Tensor:
        """Run the encoder.

        Args:
            source: int64 [batch, source], padded.
            source_lengths: int32 [batch].
            source_size: int32 scalar, the padded length.

        Returns:
            [batch, source, decoder_layers * 2 * heads * head_dim]: a layer's keys, its values, the next
            layer's keys, ... of the type of the decoder's buffers.
        """
        rows = RowLengths(source_lengths - 1, source_size)
        return self.memory_projection(self.model.encode(source, rows))  # type: ignore[arg-type,no-any-return]


class DecoderGraph(nn.Module):
    """One step of all rows: caches updated in place, one id a row out, and the logits that it was chosen from."""

    def __init__(self, model: Transformer, choose: Callable[[Tensor], Tensor]) -> None:
        """Make a graph of a model.

        Args:
            model: whose decoder.
            choose: logits [batch, vocabulary] to the index of the largest, int64 [batch].
        """
        super().__init__()
        self.model = model
        self.choose = choose

    def forward(
        self,
        ids: Tensor,
        lengths: Tensor,
        memory_lengths: Tensor,
        target_capacity: Tensor,
        source_capacity: Tensor,
        caches: list[Cache],
        memory: list[KeyValue],
    ) -> tuple[Tensor, Tensor, list[Cache]]:
        """Run the decoder.

        Args:
            ids: int64 [batch], the last token of each row.
            lengths: int32 [batch], tokens decoded before it.
            memory_lengths: int32 [batch], source tokens of each row.
            target_capacity: int32 scalar, positions of a cache.
            source_capacity: int32 scalar, positions of a memory buffer.
            caches: a layer's own keys and values, each [batch, heads, target_capacity, head_dim].
            memory: a layer's keys and values of the source, each [batch, heads, source_capacity, head_dim].

        Returns:
            The next ids, int64 [batch], the logits [batch, vocabulary] they are the largest of, and the caches.
        """
        states = self.model.embed_target(ids[:, None], lengths[:, None])
        own = RowLengths(lengths, target_capacity)
        source = RowLengths(memory_lengths - 1, source_capacity)
        biases = self.model.decoder_bias.of_step(lengths, caches)
        states, caches = self.model.decode_step(states, own, caches, memory, source, biases)  # type: ignore[arg-type]
        logits = self.model.output(states)
        return self.choose(logits), logits, caches


def write_encoder(graph: EncoderGraph, file: Path, weights: WeightsFile) -> None:
    """Export the encoder, dynamic in batch and length, its weights apart."""
    batch, size = torch.export.Dim("batch"), torch.export.Dim("source")
    source = torch.tensor([[5, 6, 2], [7, 2, 0]])
    lengths = torch.tensor([3, 2], dtype=torch.int32)
    program = torch.onnx.export(
        graph,
        (source, lengths, int32_scalar(3)),
        input_names=[SOURCE, SOURCE_LENGTHS, SOURCE_SIZE],
        output_names=[MEMORY],
        dynamic_shapes=({0: batch, 1: size}, {0: batch}, None),
        dynamo=True,
        opset_version=OPSET,
        verbose=False,
    )
    _save(program, file, weights)


def write_decoder(
    graph: DecoderGraph, file: Path, weights: WeightsFile, dtype: torch.dtype, alignment_layer: int
) -> None:
    """Export the decoder step, dynamic in rows and capacities.

    Args:
        graph: what to export.
        file: to write.
        weights: beside it.
        dtype: of keys and values.
        alignment_layer: whose attention to the source is an output too, see `export.attention_scores`.
    """
    config = graph.model.config
    batch = torch.export.Dim("batch")
    target, source = torch.export.Dim("target_capacity"), torch.export.Dim("source_capacity")
    shape = (2, config.decoder_head_count, 7, config.head_dim)
    caches = [(torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)) for _ in graph.model.decoder]
    shape = (2, config.decoder_head_count, 9, config.head_dim)
    memory = [(torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)) for _ in graph.model.decoder]
    lengths = torch.tensor([1, 3], dtype=torch.int32)
    layers = config.decoder_layers
    program = torch.onnx.export(
        graph,
        (torch.tensor([1, 5]), lengths, lengths + 1, int32_scalar(7), int32_scalar(9), caches, memory),
        input_names=[
            IDS, LENGTHS, MEMORY_LENGTHS, TARGET_CAPACITY, SOURCE_CAPACITY, *cache_names(layers), *memory_names(layers),
        ],
        output_names=[NEXT_IDS, LOGITS, *map(present_name, cache_names(layers))],
        dynamic_shapes=(
            {0: batch}, {0: batch}, {0: batch}, None, None,
            [({0: batch, 2: target}, {0: batch, 2: target})] * layers,
            [({0: batch, 2: source}, {0: batch, 2: source})] * layers,
        ),
        dynamo=True,
        opset_version=OPSET,
        verbose=False,
    )  # fmt: skip
    _save(program, file, weights, alignment_layer)


def _save(
    program: torch.onnx.ONNXProgram | None, file: Path, weights: WeightsFile, alignment_layer: int | None = None
) -> None:
    if program is None:  # torch gives None only for its older, non-dynamo exporter
        raise AssertionError("torch.onnx.export returned no program")
    _tidy(program)
    if alignment_layer is not None:
        reveal(program.model.graph, alignment_layer)
    weights.take(program.model.graph)
    onnx_ir.save(program.model, file)


def _tidy(program: torch.onnx.ONNXProgram) -> None:
    """Take away what the exporter leaves: paths of this machine's source files, and outputs that nobody reads."""
    graph = program.model.graph
    for node in graph:
        node.metadata_props.clear()
        if "k_quant_type" in node.attributes:
            # Of bytes, the operator wants its buffers as outputs even where it writes nothing.
            _name_present(graph, node)
        if _wants_present(node):
            continue
        # The operator would fill whole buffers for them at each run.
        while len(node.outputs) > 1 and not (node.outputs[-1].uses() or node.outputs[-1].is_graph_output()):
            node.resize_outputs(len(node.outputs) - 1)


def _wants_present(node: onnx_ir.Node) -> bool:
    """Tell whether it is attention over whole sequences in half precision: on a GPU that needs these outputs."""
    whole = node.op_type == "GroupQueryAttention" and node.inputs[3] is None
    return whole and node.outputs[0].dtype == onnx_ir.DataType.FLOAT16


def _name_present(graph: onnx_ir.Graph, node: onnx_ir.Node) -> None:
    """Make outputs of the graph of an attention's present keys and values."""
    for past, present in zip(node.inputs[3:5], node.outputs[1:3], strict=True):
        if past is not None and past.name is not None and not present.is_graph_output():
            present.name = present_name(past.name)
            graph.outputs.append(present)
