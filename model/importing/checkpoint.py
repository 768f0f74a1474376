"""Writes a checkpoint tensor by tensor, each in the precision that it came in."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import torch
from torch import Tensor

from dragoman.errors import DataError
from model.checkpoint import WEIGHTS, compare_shapes, replacing
from model.importing.family import Network, Recipe, Texts
from model.importing.weights import Weights
from model.layout import CONFIG, IMPORT, LANGUAGES
from model.transformer import Transformer

_TYPES: Final = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def write_checkpoint(out: Path, network: Network, weights: Weights, texts: Texts, record: Mapping[str, Any]) -> int:
    """Write a checkpoint beside `out`, then rename: it appears whole or not at all.

    Args:
        out: folder of the checkpoint; an older one is replaced.
        network: the model; its recipes are followed one at a time.
        weights: of the source.
        texts: tokenizer and languages.
        record: for import.json.

    Returns:
        How many parameters the model has.

    Raises:
        DataError: the source lacks a tensor, has one that nothing reads, or shapes do not fit.
    """
    shapes = {name: _shape(recipe, weights, name) for name, recipe in network.weights.items()}
    with torch.device("meta"):
        model = Transformer(network.config)
    compare_shapes(model, shapes, out)
    _check_unread(network, weights)
    with replacing(out) as partial:
        (partial / CONFIG).write_text(network.config.model_dump_json(indent=2) + "\n")
        (partial / LANGUAGES).write_text(texts.languages.model_dump_json(indent=2) + "\n")
        (partial / IMPORT).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        for name, content in texts.tokenizer.items():
            (partial / name).write_bytes(content)
        with (partial / WEIGHTS).open("wb") as file:
            _write_weights(file, network.weights, shapes, weights)
    return sum(parameter.numel() for parameter in model.parameters())


def _shape(recipe: Recipe, weights: Weights, ours: str) -> list[int]:
    if isinstance(recipe, Tensor):
        return list(recipe.shape)
    there = set(weights.names)
    if missing := [name for name in recipe if name not in there]:
        raise DataError(f"the weights have no {missing[0]}, of which {ours} is made")
    parts = [weights.shape(name) for name in recipe]
    return [sum(part[0] for part in parts), *parts[0][1:]]


def _check_unread(network: Network, weights: Weights) -> None:
    """Refuse what nothing reads: it would be left out of the model."""
    read = {name for recipe in network.weights.values() if not isinstance(recipe, Tensor) for name in recipe}
    if unread := sorted(set(weights.names) - read - network.ignored):
        more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
        raise DataError(f"the weights hold {', '.join(unread[:3])}{more}, which this model has no place for")


def _dtype(recipe: Recipe, weights: Weights) -> torch.dtype:
    if isinstance(recipe, Tensor):
        return recipe.dtype
    dtype = weights.dtype(recipe[0])
    for name in recipe[1:]:
        dtype = torch.promote_types(dtype, weights.dtype(name))
    if dtype not in _TYPES:
        raise DataError(f"weights: {recipe[0]} is stored as {dtype}, not as one of {', '.join(_TYPES.values())}")
    return dtype


def _write_weights(
    file: BinaryIO, recipes: Mapping[str, Recipe], shapes: Mapping[str, list[int]], weights: Weights
) -> None:
    """Write the format safetensors; its own library has to be given all tensors at once."""
    types = {name: _dtype(recipe, weights) for name, recipe in recipes.items()}
    order = sorted(recipes, key=lambda name: (-types[name].itemsize, name))  # so that each is aligned
    header: dict[str, Any] = {}
    end = 0
    for name in order:
        size = types[name].itemsize * torch.Size(shapes[name]).numel()
        header[name] = {"dtype": _TYPES[types[name]], "shape": shapes[name], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        tensor = _made(recipes[name], weights).to(types[name]).contiguous()
        file.write(tensor.view(-1).view(torch.uint8).numpy().data)


def _made(recipe: Recipe, weights: Weights) -> Tensor:
    if isinstance(recipe, Tensor):
        return recipe
    parts = [weights.read(name) for name in recipe]
    return parts[0] if len(parts) == 1 else torch.cat(parts)
