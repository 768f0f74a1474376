"""The two large graphs of a bundle: the encoder, and one step of the decoder."""

import numpy as np
from onnx import TensorProto

from dragoman.bundle import (
    CANDIDATES,
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
    STATES,
    TARGET_CAPACITY,
    Precision,
    cache_names,
    memory_names,
)
from export.argmax import argmax
from export.attention import RowLengths
from export.graph import Graph
from export.network import Network
from export.parameters import Parameters
from export.products import KEY_VALUE_TYPES, OUTPUT_STATES_TYPES, Products
from export.weights import WeightsFile


def encoder_graph(parameters: Parameters, products: Products, precision: Precision, weights: WeightsFile) -> Graph:
    """Build the encoder graph.

    From `SOURCE`, int64 [batch, source], padded, `SOURCE_LENGTHS`, int32 [batch], and `SOURCE_SIZE`, int32, the padded
    length, to `MEMORY` [batch, source, decoder_layers * 2 * heads * head_dim], in the type of the decoder's buffers:
    the keys of a layer, its values, the keys of the next layer, ...

    Args:
        parameters: the parameters of the model.
        products: the products of the precision.
        precision: the precision of the bundle.
        weights: the file for the large constants.
    """
    graph, config = Graph(weights), parameters.config
    network = Network(graph, parameters, products, precision)
    source = graph.input(SOURCE, np.int64, ["batch", "source"])
    lengths = graph.input(SOURCE_LENGTHS, np.int32, ["batch"])
    size = graph.input(SOURCE_SIZE, np.int32, [])
    rows = RowLengths(graph.node("Sub", lengths, graph.constant(np.int32(1))), size)
    states = network.embed("source", source)
    positions, keys = sequence_positions(graph, source) if config.positions == "relative" else ("", "")
    biases = network.biases("encoder", positions, keys, whole=True)
    for layer, bias in enumerate(biases):
        states = network.encoder_layer(states, layer, rows, bias)
    states = network.last(states, "encoder")
    layers = [f"decoder.{layer}.cross_attention.key_value" for layer in range(config.decoder_layers)]
    if precision == "int8":
        one, zero = graph.constant(np.float32(1)), graph.constant(np.int8(0))
        graph.node("QuantizeLinear", products.linear(graph, states, layers), one, zero, name=MEMORY)
    else:
        products.linear(graph, states, layers, name=MEMORY)
    width = config.decoder_layers * 2 * config.decoder_head_count * config.head_dim
    graph.output(MEMORY, KEY_VALUE_TYPES[precision], ["batch", "source", width])
    return graph


def sequence_positions(graph: Graph, ids: str) -> tuple[str, str]:
    """Number the positions of padded ids [batch, length]: int64 [length]; also gives the length, int64."""
    length = graph.node("Squeeze", graph.node("Shape", ids, start=1, end=2))
    zero, one = graph.constant(np.int64(0)), graph.constant(np.int64(1))
    return graph.node("Range", zero, length, one), length


def decoder_graph(
    parameters: Parameters,
    products: Products,
    precision: Precision,
    weights: WeightsFile,
    alignment_layer: int,
    *,
    output: bool = True,
) -> Graph:
    """Build one step of the decoder: caches updated in place, one id per row, and the logits of its choice.

    Args:
        parameters: the parameters of the model.
        products: the products of the precision.
        precision: the precision of the bundle.
        weights: the file for the large constants.
        alignment_layer: the layer whose attention to the source is an output, `ATTENTION_SCORES`, before the softmax:
            its reader knows the number of source tokens.
        output: whether to include the output layer; without it, its input `STATES` replaces ids and logits.
    """
    graph, config = Graph(weights), parameters.config
    network = Network(graph, parameters, products, precision)
    ids = graph.input(IDS, np.int64, ["batch"])
    lengths = graph.input(LENGTHS, np.int32, ["batch"])
    memory_lengths = graph.input(MEMORY_LENGTHS, np.int32, ["batch"])
    target_capacity = graph.input(TARGET_CAPACITY, np.int32, [])
    source_capacity = graph.input(SOURCE_CAPACITY, np.int32, [])
    heads, dtype, layers = network.decoder_heads, KEY_VALUE_TYPES[precision], config.decoder_layers
    own_names = cache_names(layers) if config.decoder_cell == "attention" else []
    for names, capacity in ((own_names, TARGET_CAPACITY), (memory_names(layers), SOURCE_CAPACITY)):
        for name in names:
            graph.input(name, dtype, ["batch", heads.number, capacity, heads.width])
    first = graph.constant([1])
    positions = graph.node("Unsqueeze", lengths, first)
    states = network.embed("target", graph.node("Unsqueeze", ids, first), positions)
    own = RowLengths(lengths, target_capacity)
    source = RowLengths(graph.node("Sub", memory_lengths, graph.constant(np.int32(1))), source_capacity)
    if config.positions == "relative":
        capacity = graph.node("Squeeze", graph.node("Shape", own_names[0], start=2, end=3))
        biases = network.biases("decoder", graph.node("Cast", lengths, to=TensorProto.INT64), capacity, whole=False)
    else:
        biases = [""] * layers
    for layer, bias in enumerate(biases):
        states = network.decoder_step(states, layer, own, source, bias, reveal=layer == alignment_layer)
    states = graph.node("Squeeze", network.last(states, "decoder"), first)
    if not output:
        products.output_states(graph, states, STATES)
        graph.output(STATES, OUTPUT_STATES_TYPES[precision], ["batch", config.d_model])
        return graph
    graph.output(NEXT_IDS, np.int64, ["batch"])
    graph.output(LOGITS, products.dtype, ["batch", config.target_vocabulary_size])
    products.logits(graph, states, LOGITS)
    if precision == "fp16":
        # Half precision is for GPUs, where ArgMax examines many values at a time.
        graph.node("ArgMax", LOGITS, name=NEXT_IDS, axis=-1, keepdims=0)
    else:
        argmax(graph, LOGITS, config.target_vocabulary_size, NEXT_IDS)
    return graph


def output_layer_graph(products: Products, weights: WeightsFile) -> Graph:
    """Build the output layer for one row over some of the target pieces.

    From `STATES` [1, d_model] and the inputs of `Products.candidate_logits` for the pieces `CANDIDATES`, int64
    [candidates], to `LOGITS` [1, candidates] and the id of the largest, `NEXT_IDS`, int64 [1].

    Args:
        products: the products of the precision.
        weights: the file for the large constants.
    """
    graph = Graph(weights)
    products.candidate_logits(graph, STATES, LOGITS)
    candidates = graph.input(CANDIDATES, np.int64, ["candidates"])
    graph.node("Gather", candidates, graph.node("ArgMax", LOGITS, axis=-1, keepdims=0), name=NEXT_IDS, axis=0)
    graph.output(NEXT_IDS, np.int64, [1])
    graph.output(LOGITS, products.dtype, [1, "candidates"])
    return graph
