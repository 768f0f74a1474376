"""Weights by name, read one at a time from memory-mapped files: a model is never in memory as a whole."""

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
from model.arrays import TYPES, Array, DType

_HEADER: Final = struct.Struct("<Q")  # before the header of safetensors: its size


class Weights(Protocol):
    """Arrays that are read on demand."""

    @property
    def names(self) -> Iterable[str]:
        """The names of all arrays."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Give the shape of an array, without reading it."""

    def dtype(self, name: str) -> DType:
        """Give the type of the values, one of `model.arrays.TYPES`.

        Raises:
            DataError: the type is another one.
        """

    def read(self, name: str) -> Array:
        """Read an array; callers must not write to it."""


class SafetensorsWeights:
    """Arrays of safetensors files, memory-mapped; the library of this format copies each array that it reads."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Map the files and read their headers.

        Raises:
            DataError: a file is no safetensors file.
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
        """The names of all arrays."""
        return self._stored.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """Give the shape of an array, without reading it."""
        return self._stored[name].shape

    def dtype(self, name: str) -> DType:
        """Tell the type of the values.

        Raises:
            DataError: the type is none of fp32, fp16 and bf16.
        """
        stored = self._stored[name].dtype
        if stored not in TYPES:
            raise DataError(f"weights: {name} is stored as {stored}, not as one of {', '.join(TYPES)}")
        return TYPES[stored]

    def read(self, name: str) -> Array:
        """Give an array."""
        _, shape, content, at = self._stored[name]
        return np.frombuffer(content, self.dtype(name), math.prod(shape), at).reshape(shape)


class _Stored(NamedTuple):
    dtype: str
    shape: tuple[int, ...]
    content: mmap.mmap
    at: int
