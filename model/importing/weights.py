"""Weights by name, read one at a time from mapped files: a model never lies in memory as a whole."""

import json
import math
import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from safetensors import SafetensorError, safe_open

from dragoman.errors import DataError
from model.importing.arrays import TYPES, Array, DType
from model.importing.ct2_file import Ct2Weights
from model.importing.marian_file import MarianWeights
from model.importing.source import CT2_MODEL, MARIAN_BIN_FILES
from model.importing.torch_file import TorchWeights

_HEADER: Final = struct.Struct("<Q")  # before the header of safetensors: its size


class Weights(Protocol):
    """Arrays that are read when they are asked for."""

    @property
    def names(self) -> Iterable[str]:
        """All of them."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Tell a shape, without reading the array."""

    def dtype(self, name: str) -> DType:
        """Tell the type of the values, one of `model.importing.arrays.TYPES`.

        Raises:
            DataError: it is another one.
        """

    def read(self, name: str) -> Array:
        """Read one, which nobody may write to."""


def are_equal(weights: Weights, one: str, other: str) -> bool:
    """Tell whether two arrays have the same values, of the same type."""
    if one == other:
        return True
    if weights.shape(one) != weights.shape(other) or weights.dtype(one) != weights.dtype(other):
        return False
    return np.array_equal(weights.read(one), weights.read(other))


class SafetensorsWeights:
    """Arrays of files in the format safetensors, mapped into memory; its own library copies each that it reads."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Map the files and read their headers.

        Raises:
            DataError: one is no such file.
        """
        self._stored: dict[str, _Stored] = {}
        for file in files:
            try:
                with safe_open(file, framework="np"):
                    pass  # it has checked the header
                with file.open("rb") as stream:
                    content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, SafetensorError) as error:
                raise DataError(f"{file}: cannot read the weights: {error}") from error
            start = _HEADER.size + _HEADER.unpack_from(content)[0]
            header = json.loads(content[_HEADER.size : start])
            header.pop("__metadata__", None)
            for name, entry in header.items():
                at = start + entry["data_offsets"][0]
                self._stored[name] = _Stored(entry["dtype"], tuple(entry["shape"]), content, at)

    @property
    def names(self) -> Iterable[str]:
        """All of them."""
        return self._stored.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """Tell a shape, without reading the array."""
        return self._stored[name].shape

    def dtype(self, name: str) -> DType:
        """Tell the type of the values.

        Raises:
            DataError: it is none of fp32, fp16 and bf16.
        """
        stored = self._stored[name].dtype
        if stored not in TYPES:
            raise DataError(f"weights: {name} is stored as {stored}, not as one of {', '.join(TYPES)}")
        return TYPES[stored]

    def read(self, name: str) -> Array:
        """Give one."""
        _, shape, content, at = self._stored[name]
        return np.frombuffer(content, self.dtype(name), math.prod(shape), at).reshape(shape)


class _Stored(NamedTuple):
    dtype: str
    shape: tuple[int, ...]
    content: mmap.mmap
    at: int


def open_weights(files: Iterable[Path]) -> Weights:
    """Open the files of a model's weights: safetensors, or those of torch, CTranslate2 or Marian.

    Raises:
        DataError: a file cannot be read, or holds more than weights.
    """
    files = list(files)
    if files[0].name == CT2_MODEL:
        return Ct2Weights(files[0])
    if files[0].suffix == ".npz" or files[0].match(MARIAN_BIN_FILES):
        return MarianWeights(files[0])
    if files[0].suffix == ".safetensors":
        return SafetensorsWeights(files)
    return TorchWeights(files)
