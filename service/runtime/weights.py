"""The weights that sessions get for a bundle's graphs: the file is mapped while a session is made, tables are shared.

onnxruntime reorders the weights of products, and then needs the file no more for them. It would read all other
weights, such as the tables of embeddings, from the mapped file as long as the session lives, or copy them for each
session. Here all sessions of this process read the same copies in memory: an open session is not harmed if the file is
overwritten or truncated.
"""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Self
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from dragoman.bundle import WEIGHTS
from service.runtime.onnx_file import FLOAT, FLOAT16, INT8, Constant, Content, Graph
from service.runtime.saturation import PRODUCTS

_TYPES: Final[Mapping[int, type[np.generic]]] = {FLOAT: np.float32, INT8: np.int8, FLOAT16: np.float16}
# The input that onnxruntime packs on a CPU, of each operator that has one.
_PACKED: Final = {"Gemm": 1, "MatMul": 1, **PRODUCTS}


class Weights(NamedTuple):
    """The content of the weights file.

    Attributes:
        content: bytes of the file, mapped into memory; empty for graphs that contain all of their weights.
        sha256: hash of the file.
        folder: folder in which onnxruntime can map the file itself; None where it cannot.
    """

    content: Content = b""
    sha256: str = ""
    folder: Path | None = None

    @classmethod
    def of(cls, content: Content, sha256: str, folder: Path) -> Self:
        """Describe the file of a bundle in a folder."""
        # onnxruntime refuses a link that leads out of the folder.
        inside = (folder / WEIGHTS).resolve().is_relative_to(folder.resolve())
        return cls(content, sha256, folder if inside else None)


def unpacked(graph: Graph, weights: Weights) -> dict[str, onnxruntime.OrtValue]:
    """Give the constants of the weights file that a session reads unpacked, by name; they must outlive the session."""
    names = {
        name for node in graph.nodes for place, name in enumerate(node.inputs) if place != _PACKED.get(node.operator)
    }
    return {name: onnxruntime.OrtValue.ortvalue_from_numpy(numbers) for name, numbers in _read(graph, weights, names)}


def defaults(graph: Graph, weights: Weights) -> dict[str, NDArray[np.generic]]:
    """Give the default values of the inputs of a graph, by name; they must not be written to."""
    inside = {
        name: np.frombuffer(constant.content, _TYPES[constant.data_type]).reshape(constant.shape)
        for name in graph.defaults
        if (constant := graph.constants[name]).place is None
    }
    return inside | dict(_read(graph, weights, set(graph.defaults)))


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
