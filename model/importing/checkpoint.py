"""Writes a checkpoint tensor by tensor, each in its original precision."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from dragoman.bundle import SHORTLIST
from dragoman.errors import DataError
from model.arrays import TYPES, Array, DType
from model.importing.family import Network, Recipe, Texts
from model.layout import CONFIG, IMPORT, LANGUAGES, WEIGHTS
from model.parameters import Shape, compare_shapes
from model.replacing import replacing
from model.safetensors_file import Weights

_NAMES: Final = {dtype: name for name, dtype in TYPES.items()}


def write_checkpoint(out: Path, network: Network, weights: Weights, texts: Texts, record: Mapping[str, Any]) -> int:
    """Write a checkpoint beside `out`, then rename: it appears whole or not at all.

    Args:
        out: the folder of the checkpoint; an older checkpoint is replaced.
        network: the model; its recipes are computed one at a time.
        weights: the weights of the source.
        texts: the tokenizer and the languages.
        record: the content of import.json.

    Returns:
        The number of parameters of the model.

    Raises:
        DataError: a source tensor is missing or unused, or shapes do not match.
    """
    shapes = {name: _shape(recipe, weights, name) for name, recipe in network.weights.items()}
    compare_shapes(network.config, shapes, out)
    _check_unread(network, weights)
    with replacing(out) as partial:
        (partial / CONFIG).write_text(network.config.model_dump_json(indent=2) + "\n", encoding="utf-8")
        (partial / LANGUAGES).write_text(texts.languages.model_dump_json(indent=2) + "\n", encoding="utf-8")
        (partial / IMPORT).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        for name, content in texts.tokenizer.items():
            (partial / name).write_bytes(content)
        if texts.shortlist is not None:
            (partial / SHORTLIST).write_bytes(texts.shortlist)
        with (partial / WEIGHTS).open("wb") as file:
            _write_weights(file, network.weights, shapes, weights)
    return sum(map(math.prod, shapes.values()))


def _shape(recipe: Recipe, weights: Weights, ours: str) -> Shape:
    if isinstance(recipe, np.ndarray):
        return recipe.shape
    there = set(weights.names)
    if missing := [name for name in recipe if name not in there]:
        raise DataError(f"the weights have no {missing[0]}, of which {ours} is made")
    first, *others = [weights.shape(name) for name in recipe]
    for name, shape in zip(recipe[1:], others, strict=True):
        if not first or not shape or shape[1:] != first[1:]:
            raise DataError(f"weights: {name} is {list(shape)}, which does not fit below {recipe[0]}, {list(first)}")
    return (sum(shape[0] for shape in (first, *others)), *first[1:]) if others else first


def _check_unread(network: Network, weights: Weights) -> None:
    """Refuse unused tensors: they would be missing in the checkpoint."""
    read = {name for recipe in network.weights.values() if not isinstance(recipe, np.ndarray) for name in recipe}
    if unread := sorted(set(weights.names) - read - network.ignored):
        more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
        raise DataError(f"the weights hold {', '.join(unread[:3])}{more}, which this model has no place for")


def _dtype(recipe: Recipe, weights: Weights) -> DType:
    """Choose the type of a weight: the type of its parts, or else fp32, which can represent all others."""
    if isinstance(recipe, np.ndarray):
        return recipe.dtype
    types = {weights.dtype(name) for name in recipe}
    return types.pop() if len(types) == 1 else np.dtype(np.float32)


def _write_weights(
    file: BinaryIO, recipes: Mapping[str, Recipe], shapes: Mapping[str, Shape], weights: Weights
) -> None:
    """Write the format safetensors; its own library needs all tensors at once."""
    types = {name: _dtype(recipe, weights) for name, recipe in recipes.items()}
    order = sorted(recipes, key=lambda name: (-types[name].itemsize, name))  # so that each tensor is aligned
    header: dict[str, Any] = {}
    end = 0
    for name in order:
        size = types[name].itemsize * math.prod(shapes[name])
        header[name] = {"dtype": _NAMES[types[name]], "shape": shapes[name], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        for part in _parts(recipes[name], weights):
            array = np.ascontiguousarray(part, types[name])
            file.write(array.reshape(-1).view(np.uint8).data)


def _parts(recipe: Recipe, weights: Weights) -> Iterable[Array]:
    return [recipe] if isinstance(recipe, np.ndarray) else map(weights.read, recipe)
