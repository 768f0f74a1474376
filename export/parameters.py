"""The weights of a checkpoint as the graphs need them: read one at a time, and scaled for int8."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dragoman.errors import BundleError, DataError
from dragoman.invalid import describe
from dragoman.tokenizer import Tokenizer
from model.config import TransformerConfig
from model.layout import CONFIG, WEIGHTS
from model.parameters import compare_shapes
from model.safetensors_file import SafetensorsWeights, Weights

Floats = NDArray[np.floating]


class Parameters:
    """The weights of a model by their names in the checkpoint; tied weights have all of their names."""

    def __init__(self, config: TransformerConfig, weights: Weights) -> None:
        self.config = config
        self._weights = weights
        self._names = frozenset(weights.names)
        self._factors: dict[str, Floats] = {}
        self._divisors: dict[str, Floats] = {}

    def read(self, name: str) -> Floats:
        """Read a weight in the checkpoint's float type, or in fp32 if it is scaled."""
        stored = self._weights.read(self._stored(name))
        if name in self._factors:
            stored = stored.astype(np.float32) * self._factors[name]
        if name in self._divisors:
            stored = stored.astype(np.float32) / self._divisors[name]
        return stored

    def bias(self, layer: str) -> Floats | None:
        """Read the bias of a linear layer, if it has one."""
        name = f"{layer}.bias"
        return self.read(name) if name in self._names else None

    @property
    def count(self) -> int:
        """The number of parameters."""
        return sum(math.prod(self._weights.shape(name)) for name in self._names)

    def _stored(self, name: str) -> str:
        if name == "output.weight" and self.config.tie_output:
            name = "target_embedding.weight"
        if name == "target_embedding.weight" and self.config.share_embeddings:
            name = "source_embedding.weight"
        return name

    def scale_outputs(self, layer: str, factors: Floats) -> None:
        """Scale the outputs of a linear layer by factors, float32 [out]."""
        self._factors[f"{layer}.weight"] = factors[:, None]
        self._factors[f"{layer}.bias"] = factors

    def divide_inputs(self, layer: str, divisors: Floats) -> None:
        """Divide the inputs of a linear layer by divisors, float32 [in]."""
        self._divisors[f"{layer}.weight"] = divisors


def open_checkpoint(folder: Path) -> tuple[Parameters, Tokenizer]:
    """Open the weights of a checkpoint, and read its tokenizer.

    Raises:
        BundleError: a file is missing, unreadable or does not fit the others.
    """
    try:
        config = TransformerConfig.model_validate_json((folder / CONFIG).read_bytes())
        weights = SafetensorsWeights([folder / WEIGHTS])
    except (OSError, DataError) as error:
        raise BundleError(f"{folder}: not a readable checkpoint: {error}") from error
    except ValidationError as error:
        raise BundleError(f"{folder / CONFIG}: {describe(error)}") from error
    compare_shapes(config, {name: weights.shape(name) for name in weights.names}, folder / WEIGHTS)
    tokenizer = Tokenizer.open(folder)
    if tokenizer.vocabulary_sizes != (config.source_vocabulary_size, config.target_vocabulary_size):
        raise BundleError(f"{folder}: tokenizer has {tokenizer.vocabulary_sizes} pieces, the model expects others")
    return Parameters(config, weights), tokenizer
