"""The parts of an ONNX file that a server checks before it runs the graph: the nodes, and the constants they read.

The file is read with protobuf and the few fields that are needed, since serving does without the package `onnx`.
"""

import math
from collections.abc import Mapping
from mmap import mmap
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from dragoman.bundle import WEIGHTS
from dragoman.errors import BundleError

FLOAT: Final = 1
UINT8: Final = 2
INT8: Final = 3
FLOAT16: Final = 10
_PACKAGE: Final = "dragoman.onnx_file"
# Names, numbers and types of onnx.proto. A message that is only tested for presence is read as bytes.
_MESSAGES: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "Model": {"graph": (7, "Graph"), "functions": (25, "bytes[]")},
    "Graph": {
        "node": (1, "Node[]"),
        "initializer": (5, "Tensor[]"),
        "input": (11, "Value[]"),
        "sparse_initializer": (15, "bytes[]"),
    },
    "Value": {"name": (1, "string")},
    "Node": {"input": (1, "string[]"), "op_type": (4, "string"), "attribute": (5, "Attribute[]")},
    "Attribute": {
        "t": (5, "Tensor"),
        "g": (6, "bytes"),
        "tensors": (10, "Tensor[]"),
        "graphs": (11, "bytes[]"),
        "sparse_tensor": (22, "bytes"),
        "sparse_tensors": (23, "bytes[]"),
    },
    "Tensor": {
        "dims": (1, "int64[]"),
        "data_type": (2, "int32"),
        "name": (8, "string"),
        "raw_data": (9, "bytes"),
        "external_data": (13, "Entry[]"),
        "data_location": (14, "int32"),
    },
    "Entry": {"key": (1, "string"), "value": (2, "string")},
}


Content = bytes | mmap | memoryview


class Constant(NamedTuple):
    """A constant of a graph.

    Attributes:
        data_type: ONNX's number for the type of its numbers.
        shape: its dimensions.
        content: its numbers, little-endian; empty where the file has them in another form.
        place: offset of the numbers in the weights file; None where they are in the graph's own file.
    """

    data_type: int
    shape: tuple[int, ...]
    content: Content
    place: int | None

    def bytes_of(self) -> NDArray[np.int8] | None:
        """Read the numbers of a constant of type INT8, in its shape; None where `content` has not one byte for each."""
        if len(self.content) != math.prod(self.shape):
            return None
        return np.frombuffer(self.content, np.int8).reshape(self.shape)


class Node(NamedTuple):
    """One operation of a graph.

    Attributes:
        operator: its name, without the domain.
        inputs: names of its inputs; empty for an input that is left out.
    """

    operator: str
    inputs: tuple[str, ...]


class Graph:
    """Nodes and constants of a file that needs no other file than the weights file."""

    def __init__(self, content: bytes, file: Path, weights: Content = b"") -> None:
        """Read a file.

        Args:
            weights: content of the file `WEIGHTS` in the same folder, the only other file that may hold constants.

        Raises:
            BundleError: it is no ONNX file, or parts of it are in other files or in graphs within the graph.
        """
        model = CLASSES["Model"]()
        try:
            model.ParseFromString(content)
        except DecodeError as error:
            raise BundleError(f"{file}: it is no ONNX file") from error
        if not model.HasField("graph"):
            raise BundleError(f"{file}: it is no ONNX file: it has no graph")
        graph = model.graph
        attributes = [attribute for node in graph.node for attribute in node.attribute]
        tensors = [tensor for attribute in attributes for tensor in (attribute.t, *attribute.tensors)]
        if any(tensor.external_data or tensor.data_location for tensor in tensors):
            raise BundleError(f"{file}: some of its attributes are in another file")
        inner = any(attribute.g or attribute.graphs for attribute in attributes)
        sparse = any(attribute.sparse_tensor or attribute.sparse_tensors for attribute in attributes)
        if model.functions or graph.sparse_initializer or inner or sparse:
            raise BundleError(f"{file}: functions, graphs within graphs and sparse weights are not served")
        view = memoryview(weights)
        self.constants = {tensor.name: _constant(tensor, view, file) for tensor in graph.initializer}
        self.defaults = self.constants.keys() & {value.name for value in graph.input}  # that a run may replace
        self.nodes = [Node(node.op_type, tuple(node.input)) for node in graph.node]


def _constant(tensor: Any, weights: memoryview, file: Path) -> Constant:
    """Find the numbers of a constant, in the graph's own file or in that of the weights.

    Raises:
        BundleError: the graph places them in another file, or beyond the end of the weights file.
    """
    kind, shape = tensor.data_type, tuple(tensor.dims)
    if not (tensor.external_data or tensor.data_location):
        return Constant(kind, shape, tensor.raw_data, None)
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if (location := entries.get("location")) != WEIGHTS:
        raise BundleError(f"{file}: {tensor.name}: weights lie in the graph or in {WEIGHTS}, not in {location!r:.80}")
    try:
        start, size = (int(entries[key]) for key in ("offset", "length"))
    except (KeyError, ValueError) as error:
        raise BundleError(f"{file}: {tensor.name}: does not say where in {WEIGHTS} it lies") from error
    if not 0 <= start <= start + size <= len(weights):
        wanted = f"bytes {start} to {start + size} of {WEIGHTS}"
        raise BundleError(f"{file}: {tensor.name}: lies in {wanted}, which has {len(weights)}")
    return Constant(kind, shape, weights[start : start + size], start)


def _message_classes() -> Mapping[str, Any]:
    """Make the classes of `_MESSAGES`, in a separate pool: the package `onnx` may be loaded too."""
    kinds = descriptor_pb2.FieldDescriptorProto
    scalars = {"bytes": kinds.TYPE_BYTES, "string": kinds.TYPE_STRING, "int32": kinds.TYPE_INT32}
    scalars["int64"] = kinds.TYPE_INT64
    file = descriptor_pb2.FileDescriptorProto(name="dragoman/onnx_file.proto", package=_PACKAGE, syntax="proto3")
    for message, fields in _MESSAGES.items():
        description = file.message_type.add(name=message)
        for field, (number, kind) in fields.items():
            label = kinds.LABEL_REPEATED if kind.endswith("[]") else kinds.LABEL_OPTIONAL
            added = description.field.add(name=field, number=number, label=label)
            kind = kind.removesuffix("[]")
            if kind in scalars:
                added.type = scalars[kind]
            else:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    described = {name: pool.FindMessageTypeByName(f"{_PACKAGE}.{name}") for name in _MESSAGES}
    return {name: message_factory.GetMessageClass(description) for name, description in described.items()}


# All of them are kept: protobuf crashes if a class is collected as garbage while a message of it is made.
CLASSES: Final = _message_classes()
