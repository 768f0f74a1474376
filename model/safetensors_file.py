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
from model.arrays import TYPES, Array, DType

_HEADER: Final = struct.Struct("<Q")  # before the header of safetensors: its size


class Weights(Protocol):
    """Arrays that are read when they are asked for."""

    @property
    def names(self) -> Iterable[str]:
        """All of them."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Tell a shape, without reading the array."""

    def dtype(self, name: str) -> DType:
        """Tell the type of the values, one of `model.arrays.TYPES`.

        Raises:
            DataError: it is another one.
        """

    def read(self, name: str) -> Array:
        """Read one, which nobody may write to."""


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
