"""The weights of a bundle's graphs as their sessions get them: mapped while a session is made, tables kept once.

onnxruntime brings the weights of products into an order of its own, and needs the file no more. The tables that rows
are looked up in, such as embeddings, it would copy for each session: all sessions of this process read the same ones.
They are copies in memory: a file that is written over or made shorter does not harm a session that is open.
"""

import threading
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from service.runtime.onnx_file import FLOAT, FLOAT16, INT8, Constant, Content, Graph

_TYPES: Final[Mapping[int, type[np.generic]]] = {FLOAT: np.float32, INT8: np.int8, FLOAT16: np.float16}


class Weights(NamedTuple):
    """The content of the file of the weights.

    Attributes:
        content: its bytes, mapped into memory; none for graphs that have all of their weights in themselves.
        sha256: of the file.
    """

    content: Content = b""
    sha256: str = ""


def tables(graph: Graph, weights: Weights) -> dict[str, onnxruntime.OrtValue]:
    """Give the tables that a graph looks rows up in, by the names of its constants; they must outlive its session."""
    names = {node.inputs[0] for node in graph.nodes if node.operator == "Gather"}
    return {name: onnxruntime.OrtValue.ortvalue_from_numpy(table) for name, table in _read(graph, weights, names)}


_shared: Final[WeakValueDictionary[tuple[str, int, int], NDArray[np.uint8]]] = WeakValueDictionary()
_lock: Final = threading.Lock()


def _read(graph: Graph, weights: Weights, names: set[str]) -> Iterator[tuple[str, NDArray[np.generic]]]:
    for name in names & graph.constants.keys():
        constant = graph.constants[name]
        if constant.place is not None and (kind := _TYPES.get(constant.data_type)) is not None:
            yield name, _bytes(weights, constant).view(kind).reshape(constant.shape)


def _bytes(weights: Weights, constant: Constant) -> NDArray[np.uint8]:
    """Copy the bytes of a constant, or find the copy that another session has made."""
    assert constant.place is not None
    key = weights.sha256, constant.place, len(constant.content)
    with _lock:
        if (table := _shared.get(key)) is None:
            table = _shared[key] = np.frombuffer(constant.content, np.uint8).copy()
    return table
