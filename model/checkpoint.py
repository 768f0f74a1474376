"""The checkpoint on disk: configuration, weights, tokenizer, provenance, sentences to check. Nothing is pickled."""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from dragoman.errors import BundleError
from dragoman.invalid import describe
from dragoman.tokenizer import Tokenizer, tokenizer_files
from model.config import TransformerConfig
from model.corpus import Corpus
from model.layout import CONFIG, PARITY, PARITY_PAIRS, TRAINING
from model.transformer import Transformer

WEIGHTS = "model.safetensors"

# Of weights that do not fit, as many are named.
_FAULTS = 20


def weights(model: Transformer) -> dict[str, Tensor]:
    """List every weight once, by name; a tied one under its first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def load_weights(model: Transformer, tensors: Mapping[str, Tensor], origin: Path) -> None:
    """Copy weights into a model.

    Raises:
        BundleError: names or shapes do not fit; the first are listed.
    """
    compare_shapes(model, {name: tensor.shape for name, tensor in tensors.items()}, origin)
    with torch.no_grad():
        for name, parameter in weights(model).items():
            parameter.copy_(tensors[name])


def compare_shapes(model: Transformer, shapes: Mapping[str, Sequence[int]], origin: Path) -> None:
    """Compare the names and shapes of weights with those that a model has.

    Raises:
        BundleError: they do not fit; the first are listed.
    """
    wanted = {name: list(parameter.shape) for name, parameter in weights(model).items()}
    faults = [f"missing {name}" for name in wanted.keys() - shapes.keys()]
    faults += [f"unknown {name}" for name in shapes.keys() - wanted.keys()]
    faults += [
        f"{name} is {list(shapes[name])}, not {wanted[name]}"
        for name in wanted.keys() & shapes.keys()
        if list(shapes[name]) != wanted[name]
    ]
    if faults:
        more = [f"and {len(faults) - _FAULTS} more"] if len(faults) > _FAULTS else []
        told = "; ".join([*sorted(faults)[:_FAULTS], *more])
        raise BundleError(f"{origin}: weights do not fit the configuration: {told}")


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
        folder: of the checkpoint; an older one is replaced.
        model: whose weights are written.
        tokenizer_folder: from which the tokenizer files are copied.
        training: how it was trained, for training.json.
        pairs: the first of them become parity.tsv, on which an exported bundle is compared with the checkpoint.
    """
    with replacing(folder) as partial:
        save_file({n: t.half().contiguous() for n, t in weights(model).items()}, partial / WEIGHTS)
        (partial / CONFIG).write_text(model.config.model_dump_json(indent=2) + "\n")
        (partial / TRAINING).write_text(json.dumps(training, indent=2, ensure_ascii=False) + "\n")
        lines = list(zip(pairs.sources, pairs.targets, strict=True))[:PARITY_PAIRS]
        (partial / PARITY).write_text("".join(f"{source}\t{target}\n" for source, target in lines), encoding="utf-8")
        copy_tokenizer(tokenizer_folder, partial)


def copy_tokenizer(folder: Path, out: Path) -> None:
    """Copy the tokenizer files of a checkpoint or a run.

    Raises:
        BundleError: there are none.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in tokenizer_files(folder):
        shutil.copyfile(folder / name, out / name)


class replacing:  # noqa: N801 - reads as a verb in a with statement
    """A folder beside the target that takes the target's name once the block ends well."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._partial = target.with_name(target.name + ".partial")

    def __enter__(self) -> Path:
        shutil.rmtree(self._partial, ignore_errors=True)
        self._partial.mkdir(parents=True)
        return self._partial

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            shutil.rmtree(self._partial, ignore_errors=True)
            return
        old = self._target.with_name(self._target.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        if self._target.exists():
            os.rename(self._target, old)
        os.rename(self._partial, self._target)
        shutil.rmtree(old, ignore_errors=True)


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
    """Compare the model with what its weights' file says of their shapes, before any memory is taken for either.

    Raises:
        BundleError: names or shapes do not fit.
    """
    with torch.device("meta"):
        model = Transformer(config)
    with safe_open(file, framework="pt") as stored:
        shapes = {name: stored.get_slice(name).get_shape() for name in stored.keys()}  # noqa: SIM118 - it is no dict
    compare_shapes(model, shapes, file)
