"""The checkpoint on disk: configuration, weights, tokenizer, provenance, sentences for parity. Nothing is pickled."""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from dragoman.errors import BundleError
from dragoman.invalid import describe
from dragoman.tokenizer import Tokenizer, tokenizer_files
from model.config import TransformerConfig
from model.corpus import Corpus
from model.layout import CONFIG, PARITY, PARITY_PAIRS, TRAINING, WEIGHTS
from model.parameters import compare_shapes
from model.replacing import replacing
from model.tensors import write_tensors
from model.transformer import Transformer


def weights(model: Transformer) -> dict[str, Tensor]:
    """List every weight once, by name; a tied weight under its first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: Transformer, tensors: Mapping[str, Tensor], origin: Path) -> None:
    """Copy weights into a model.

    Raises:
        BundleError: names or shapes do not match; the message lists the first ones.
    """
    compare_shapes(model.config, {name: tensor.shape for name, tensor in tensors.items()}, origin)
    with torch.no_grad():
        for name, parameter in weights(model).items():
            parameter.copy_(tensors[name])


def average(checkpoints: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Average each weight over several checkpoints (section 6.1 of arXiv:1706.03762)."""
    total: dict[str, Tensor] = {}
    count = 0
    for tensors in checkpoints:
        count += 1
        for name, tensor in tensors.items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / count).float() for name, tensor in total.items()}


def save_checkpoint(
    folder: Path, model: Transformer, tokenizer_folder: Path, training: dict[str, Any], pairs: Corpus
) -> None:
    """Write a checkpoint beside `folder`, then rename: it appears whole or not at all.

    The weights are stored in half precision, which halves the file.

    Args:
        folder: the folder of the checkpoint; an older checkpoint is replaced.
        model: the model to save.
        tokenizer_folder: the folder with the tokenizer files to copy.
        training: how the model was trained, for training.json.
        pairs: the first pairs become parity.tsv, on which an exported bundle is compared with the checkpoint.
    """
    with replacing(folder) as partial:
        write_tensors({name: tensor.half() for name, tensor in weights(model).items()}, partial / WEIGHTS)
        (partial / CONFIG).write_text(model.config.model_dump_json(indent=2) + "\n", encoding="utf-8")
        record = json.dumps(training, indent=2, ensure_ascii=False)
        (partial / TRAINING).write_text(record + "\n", encoding="utf-8")
        lines = list(zip(pairs.sources, pairs.targets, strict=True))[:PARITY_PAIRS]
        (partial / PARITY).write_text("".join(f"{source}\t{target}\n" for source, target in lines), encoding="utf-8")
        copy_tokenizer(tokenizer_folder, partial)


def copy_tokenizer(folder: Path, out: Path) -> None:
    """Copy the tokenizer files of a checkpoint or a run.

    Raises:
        BundleError: the folder has no tokenizer files.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in tokenizer_files(folder):
        shutil.copyfile(folder / name, out / name)


def load_checkpoint(folder: Path) -> tuple[Transformer, Tokenizer]:
    """Load a model, in evaluation mode and fp32, and its tokenizer.

    Raises:
        BundleError: a file is missing, unreadable or does not fit the others.
    """
    try:
        config = TransformerConfig.model_validate_json((folder / CONFIG).read_bytes())
        _check_sizes(config, folder / WEIGHTS)
        tensors = load_file(folder / WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{folder}: not a readable checkpoint: {error}") from error
    except ValidationError as error:
        raise BundleError(f"{folder / CONFIG}: {describe(error)}") from error
    model = Transformer(config)
    load_weights(model, tensors, folder / WEIGHTS)
    tokenizer = Tokenizer.open(folder)
    if tokenizer.vocabulary_sizes != (config.source_vocabulary_size, config.target_vocabulary_size):
        raise BundleError(f"{folder}: tokenizer has {tokenizer.vocabulary_sizes} pieces, the model expects others")
    return model.eval(), tokenizer


def _check_sizes(config: TransformerConfig, file: Path) -> None:
    """Check the shapes in the header of the weights file against the model, before memory is allocated for either.

    Raises:
        BundleError: names or shapes do not match.
    """
    with safe_open(file, framework="pt") as stored:
        shapes = {name: stored.get_slice(name).get_shape() for name in stored.keys()}  # noqa: SIM118 - it is no dict
    compare_shapes(config, shapes, file)
