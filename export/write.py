"""Checkpoint in, bundle out: whole and checked, or not at all."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import torch
from torch import nn

from dragoman.bundle import COPY, DECODER, ENCODER, MANIFEST, PLACE, Bundle, Manifest, Precision, Provenance, sha256
from dragoman.errors import DataError
from dragoman.language_marks import Languages
from dragoman.tokenizer import Tokenizer, tokenizer_files
from export.argmax import argmax
from export.calibrate import Ranges, calibrate
from export.examples import of_pairs
from export.graphs import DecoderGraph, EncoderGraph, write_decoder, write_encoder
from export.key_values import Bytes, scale_to_bytes
from export.operators import HEAD_DIM_UNIT, use_operators
from export.parity import Parity, Yardstick, compare
from export.quantize import QuantizedLinear, quantize
from export.rows import write_copy, write_place
from export.weights import WeightsFile
from model.checkpoint import WEIGHTS, load_checkpoint, replacing
from model.config import TransformerConfig
from model.data import Corpus
from model.layout import family
from model.transformer import Transformer

# Distributions; onnxruntime comes as the one or the other.
_MADE_WITH: Final = ("dragoman", "torch", "onnx", "onnxscript", "onnxruntime", "onnxruntime-gpu")

Report = Callable[[str], None]

_KEY_VALUE_TYPES: Final[dict[Precision, torch.dtype]] = {
    "fp32": torch.float32,
    "int8": torch.int8,
    "fp16": torch.float16,
}


@dataclass(frozen=True)
class Target:
    """What to make of a checkpoint.

    Attributes:
        name: under which the model is served.
        languages: what the model translates.
        precision: of both graphs.
        max_source_tokens: a segment's limit, end-of-sentence id included.
        max_target_tokens: a translation's limit.
    """

    name: str
    languages: Languages
    precision: Precision
    max_source_tokens: int
    max_target_tokens: int


class ParityError(DataError):
    """A bundle does not translate as its checkpoint does; it was not written."""

    reason = "PARITY_FAILED"


def export_bundle(
    checkpoint: Path, out: Path, target: Target, pairs: Corpus, report: Report = lambda message: None
) -> Parity:
    """Write a bundle beside `out`, compare it with the checkpoint, then give it its name.

    Args:
        checkpoint: folder of the checkpoint.
        out: folder of the bundle; an older one is replaced at the end.
        target: what to make.
        pairs: sentences to calibrate and to compare on.
        report: told of each phase before it begins.

    Raises:
        BundleError: the checkpoint cannot be read.
        DataError: the limits are beyond the checkpoint's positions, or shorter than every source; or the heads have a
            width that the serving runtime cannot do.
        ParityError: the bundle is not as good as the checkpoint.
    """
    model, tokenizer = load_checkpoint(checkpoint)
    _check_limits(model, target)
    compared = _fitting(pairs, tokenizer, target.max_source_tokens)
    with replacing(out) as folder:
        report(f"translating {len(compared)} sentences with PyTorch")
        yardstick = Yardstick.of(model, tokenizer, compared, target.max_target_tokens)
        write_bundle(model, tokenizer, pairs, checkpoint, target, folder, report)
        report(f"comparing the bundle with PyTorch on {len(compared)} sentences")
        parity = compare(yardstick, tokenizer, Bundle.open(folder))
        if not parity.passed:
            raise ParityError(f"parity failed, {out} was not written: {parity}")
    return parity


def write_bundle(
    model: Transformer,
    tokenizer: Tokenizer,
    pairs: Corpus,
    checkpoint: Path,
    target: Target,
    folder: Path,
    report: Report = lambda message: None,
) -> None:
    """Write a bundle that nobody has compared with its checkpoint.

    Args:
        model: of the checkpoint; it is used up, since a large one has no room beside a copy.
        tokenizer: of the checkpoint.
        pairs: sentences to calibrate on; read for int8 only.
        checkpoint: folder of the checkpoint.
        target: what to make.
        folder: an empty one.
        report: told of each phase before it begins.
    """
    config, parameters = model.config, sum(parameter.numel() for parameter in model.parameters())
    ranges: Ranges = {}
    if target.precision == "int8":
        report(f"measuring the ranges of activations on {len(pairs)} sentences")
        examples = of_pairs(pairs, tokenizer, config)
        scale_to_bytes(model, examples)
        ranges = calibrate(model, examples)
    report(f"writing the {target.precision} graphs of encoder and decoder")
    write_graphs(model, target.precision, folder, ranges)
    for name in tokenizer_files(checkpoint):
        shutil.copyfile(checkpoint / name, folder / name)
    manifest = _manifest(config, parameters, checkpoint, target, folder)
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")


def write_graphs(model: Transformer, precision: Precision, folder: Path, ranges: Ranges) -> None:
    """Export the graphs of a model.

    Args:
        model: in evaluation mode, fp32; for int8 after `scale_to_bytes`. It is used up.
        precision: of the encoder and the decoder.
        folder: where they are written.
        ranges: from `calibrate`; read for int8 only.
    """
    use_operators(model)
    # Half precision is for GPUs, whose ArgMax looks at many values at a time.
    choose = partial(torch.argmax, dim=-1) if precision == "fp16" else argmax
    encoder, decoder = EncoderGraph(model).eval(), DecoderGraph(model, choose).eval()
    if precision == "int8":
        # Every layer's projection reads the same: the encoder's output.
        memory_range = ranges["decoder.0.cross_attention.key_value"]
        encoder.memory_projection = nn.Sequential(QuantizedLinear(model.memory_projection(), memory_range), Bytes())
        quantize(model, ranges)
    elif precision == "fp16":
        encoder.half()
        decoder.half()
    with torch.no_grad(), WeightsFile(folder) as weights:
        write_encoder(encoder, folder / ENCODER, weights)
        write_decoder(decoder, folder / DECODER, weights, _KEY_VALUE_TYPES[precision])
    write_place(model.config, precision, folder / PLACE)
    write_copy(folder / COPY)


def _check_limits(model: Transformer, target: Target) -> None:
    positions, prefix = model.config.max_positions, target.languages.longest_target_prefix
    for field, limit, most in (
        ("source", target.max_source_tokens, positions),
        ("target", target.max_target_tokens, positions - prefix),
    ):
        if limit > most:
            raise DataError(f"max {field} tokens: {limit} is above the checkpoint's {most} positions")
    for heads in (model.config.heads, model.config.decoder_head_count):
        if (head_dim := model.config.head_dim_of(heads)) % HEAD_DIM_UNIT:
            raise DataError(f"head_dim: {head_dim} is not a multiple of {HEAD_DIM_UNIT}, which the runtime needs")


def _fitting(pairs: Corpus, tokenizer: Tokenizer, max_source_tokens: int) -> Corpus:
    """Take the pairs whose source is short enough.

    Raises:
        DataError: there is none.
    """
    fitting = [
        pair
        for pair in zip(pairs.sources, pairs.targets, strict=True)
        if len(tokenizer.encode(pair[0])) < max_source_tokens
    ]
    if not fitting:
        raise DataError(f"no pair to compare on: every source has {max_source_tokens} tokens or more")
    return Corpus([source for source, _ in fitting], [target for _, target in fitting], [])


def installed_versions() -> dict[str, str]:
    """List the versions of what makes a bundle, of what is installed: of a checkout, dragoman itself may not be."""
    versions = {}
    for name in _MADE_WITH:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _manifest(config: TransformerConfig, parameters: int, checkpoint: Path, target: Target, folder: Path) -> Manifest:
    return Manifest(
        name=target.name,
        languages=target.languages,
        family=family(checkpoint),
        precision=target.precision,
        pad_id=config.pad_id,
        start_id=config.start_id,
        eos_id=config.eos_id,
        unknown_id=config.unknown_id,
        vocabulary_size=config.target_vocabulary_size,
        d_model=config.d_model,
        heads=config.decoder_head_count,
        head_dim=config.head_dim,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        max_source_tokens=target.max_source_tokens,
        max_target_tokens=target.max_target_tokens,
        parameters=parameters,
        provenance=Provenance(
            checkpoint_sha256=sha256(checkpoint / WEIGHTS),
            versions=installed_versions(),
        ),
        files={file.name: sha256(file) for file in sorted(folder.iterdir())},
    )
