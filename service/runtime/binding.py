"""The places of a graph's inputs and outputs, in host or device memory; and the inputs of the encoder."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from dragoman.bundle import SOURCE, SOURCE_LENGTHS, SOURCE_SIZE


class Tensor(NamedTuple):
    """The place of numbers that a graph reads or writes; the owner of the numbers keeps them there."""

    device: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    address: int

    @classmethod
    def of(cls, array: NDArray[np.generic]) -> "Tensor":
        """Describe an array without gaps."""
        return cls("cpu", array.dtype, array.shape, array.ctypes.data)

    @property
    def nbytes(self) -> int:
        """The size of the numbers in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def bind(
    session: onnxruntime.InferenceSession, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
) -> onnxruntime.IOBinding:
    """Bind a graph to the places of its inputs and outputs."""
    binding = session.io_binding()
    for name, (device, *tensor) in inputs.items():
        binding.bind_input(name, device, 0, *tensor)
    for name, (device, *tensor) in outputs.items():
        binding.bind_output(name, device, 0, *tensor)
    return binding


def encoder_feeds(sources: Sequence[Sequence[int]], pad_id: int) -> dict[str, NDArray[np.generic]]:
    """Make the inputs of the encoder for a micro-batch: ids of each source, none empty."""
    lengths = np.array([len(ids) for ids in sources], dtype=np.int32)
    size = int(lengths.max())
    padded = np.full((len(sources), size), pad_id, dtype=np.int64)
    for row, ids in zip(padded, sources, strict=True):
        row[: len(ids)] = ids
    return {SOURCE: padded, SOURCE_LENGTHS: lengths, SOURCE_SIZE: np.array(size, dtype=np.int32)}
