"""The weights of a model that is imported, in whichever format they lie."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from model.importing.ct2_file import Ct2Weights
from model.importing.marian_file import MarianWeights
from model.importing.source import CT2_MODEL, MARIAN_BIN_FILES
from model.importing.torch_file import TorchWeights
from model.safetensors_file import SafetensorsWeights, Weights


def are_equal(weights: Weights, one: str, other: str) -> bool:
    """Tell whether two arrays have the same values, of the same type."""
    if one == other:
        return True
    if weights.shape(one) != weights.shape(other) or weights.dtype(one) != weights.dtype(other):
        return False
    return np.array_equal(weights.read(one), weights.read(other))


def open_weights(files: Iterable[Path]) -> Weights:
    """Open the files of a model's weights: safetensors, torch, CTranslate2 or Marian.

    Raises:
        DataError: a file cannot be read, or contains more than weights.
    """
    files = list(files)
    if files[0].name == CT2_MODEL:
        return Ct2Weights(files[0])
    if files[0].suffix == ".npz" or files[0].match(MARIAN_BIN_FILES):
        return MarianWeights(files[0])
    if files[0].suffix == ".safetensors":
        return SafetensorsWeights(files)
    return TorchWeights(files)
