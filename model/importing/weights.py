"""Weights by name, read one at a time from mapped files: a model never lies in memory as a whole."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dragoman.errors import DataError
from model.importing.ct2_file import Ct2Weights
from model.importing.marian_file import MarianWeights
from model.importing.source import CT2_MODEL

_TYPES: Final = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


class Weights(Protocol):
    """Tensors that are read when they are asked for."""

    @property
    def names(self) -> Iterable[str]:
        """All of them."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Tell a shape, without reading the tensor."""

    def dtype(self, name: str) -> torch.dtype:
        """Tell the type of the values."""

    def read(self, name: str) -> Tensor:
        """Read one."""


def are_equal(weights: Weights, one: str, other: str) -> bool:
    """Tell whether two tensors have the same values."""
    if one == other:
        return True
    if weights.shape(one) != weights.shape(other):
        return False
    first, second = weights.read(one), weights.read(other)
    return first.data_ptr() == second.data_ptr() or torch.equal(first, second)


class TensorWeights:
    """Tensors that are in memory, or mapped into it."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    @property
    def names(self) -> Iterable[str]:
        """All of them."""
        return self._tensors.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """Tell a shape."""
        return tuple(self._tensors[name].shape)

    def dtype(self, name: str) -> torch.dtype:
        """Tell the type of the values."""
        return self._tensors[name].dtype

    def read(self, name: str) -> Tensor:
        """Give one."""
        return self._tensors[name].detach()


class SafetensorsWeights:
    """Tensors of files in the format safetensors."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Open the files and read their headers.

        Raises:
            DataError: one is no such file.
        """
        self._files: dict[str, Any] = {}
        for file in files:
            try:
                opened = safe_open(file, framework="pt")
            except (OSError, SafetensorError) as error:
                raise DataError(f"{file}: cannot read the weights: {error}") from error
            self._files |= dict.fromkeys(opened.keys(), opened)  # type: ignore[no-untyped-call]

    @property
    def names(self) -> Iterable[str]:
        """All of them."""
        return self._files.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """Tell a shape, without reading the tensor."""
        return tuple(self._files[name].get_slice(name).get_shape())

    def dtype(self, name: str) -> torch.dtype:
        """Tell the type of the values.

        Raises:
            DataError: it is none of fp32, fp16 and bf16.
        """
        stored = self._files[name].get_slice(name).get_dtype()
        if stored not in _TYPES:
            raise DataError(f"weights: {name} is stored as {stored}, not as one of {', '.join(_TYPES)}")
        return _TYPES[stored]

    def read(self, name: str) -> Tensor:
        """Read one."""
        return self._files[name].get_tensor(name)  # type: ignore[no-any-return]


def open_weights(files: Iterable[Path]) -> Weights:
    """Open the files of a model's weights: safetensors, or those of torch, CTranslate2 or Marian.

    Raises:
        DataError: a file cannot be read, or holds more than tensors.
    """
    files = list(files)
    if files[0].name == CT2_MODEL:
        return Ct2Weights(files[0])
    if files[0].suffix == ".npz":
        return MarianWeights(files[0])
    if files[0].suffix == ".safetensors":
        return SafetensorsWeights(files)
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors |= _read_torch(file)
    wrong = [name for name, tensor in tensors.items() if tensor.is_floating_point() and tensor.dtype == torch.float64]
    if wrong:
        raise DataError(f"weights: {wrong[0]} is stored in double precision, not as one of {', '.join(_TYPES)}")
    return TensorWeights(tensors)


def _read_torch(file: Path) -> dict[str, Tensor]:
    """Map a file of torch; one of before 2020 is read into memory, since its format allows no more."""
    try:
        with file.open("rb") as stream:
            is_zip = stream.read(4) == b"PK\x03\x04"
        content = torch.load(file, map_location="cpu", weights_only=True, mmap=is_zip)
    except (OSError, RuntimeError, UnpicklingError, EOFError, ValueError) as error:
        raise DataError(f"{file}: cannot read the weights: {str(error).splitlines()[0]:.200}") from error
    if not (isinstance(content, dict) and all(isinstance(value, Tensor) for value in content.values())):
        raise DataError(f"{file}: holds more than tensors by name")
    return content
