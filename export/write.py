"""Checkpoint in, bundle out: whole and checked, or not at all."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import torch
from torch import nn

from dragoman.bundle import (
    COPY,
    DECODER,
    ENCODER,
    MANIFEST,
    PLACE,
    SEARCH,
    AlignmentHeads,
    Bundle,
    Manifest,
    Precision,
    Provenance,
    sha256,
)
from dragoman.errors import DataError
from dragoman.language_marks import Languages
from dragoman.tokenizer import Tokenizer, tokenizer_files
from export.alignment import choose_heads, mean_of_layer
from export.argmax import argmax
from export.calibrate import Ranges, calibrate
from export.examples import Example
from export.graphs import DecoderGraph, EncoderGraph, write_decoder, write_encoder
from export.key_values import Bytes, scale_to_bytes
from export.operators import HEAD_DIM_UNIT, use_operators
from export.parity import Parity, compare, found_by_checkpoint, log_probability_loss
from export.quantize import QuantizedLinear, quantize
from export.rows import write_copy, write_place
from export.samples import Sample, fitting, of_corpus, shipped
from export.search import write_search
from export.stand_ins import measure_stand_ins
from export.weights import WeightsFile
from model.checkpoint import load_checkpoint
from model.corpus import Corpus
from model.layout import WEIGHTS, family
from model.replacing import replacing
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
    checkpoint: Path, out: Path, target: Target, corpus: Corpus | None, report: Report = lambda message: None
) -> Parity:
    """Write a bundle beside `out`, compare it with the checkpoint, then give it its name.

    Args:
        checkpoint: folder of the checkpoint.
        out: folder of the bundle; an older one is replaced at the end.
        target: what to make.
        corpus: sentences to calibrate and to compare on, with references or without; None: those of this package.
        report: told of each phase before it begins.

    Raises:
        BundleError: the checkpoint cannot be read.
        DataError: the limits are beyond the checkpoint's positions, or shorter than every source; or the heads have a
            width that the serving runtime cannot do; or there are no sentences.
        ParityError: the bundle is not as good as the checkpoint.
    """
    model, tokenizer = load_checkpoint(checkpoint)
    _check_limits(model, target)
    manifest = manifest_of(model, checkpoint, target)
    samples = shipped(manifest, tokenizer) if corpus is None else of_corpus(corpus, manifest, tokenizer)
    samples = fitting(samples, target.max_source_tokens)
    with replacing(out) as folder:
        report(f"translating {len(samples)} sentences with PyTorch")
        found = found_by_checkpoint(model, samples, target.max_target_tokens)
        expected = [one.ids for one in found]
        alignment = _alignment(model, samples, expected, tokenizer)
        manifest = manifest.model_copy(update={"alignment": alignment})
        examples = examples_of(samples, expected, tokenizer, model.config.max_positions)
        write_bundle(model, examples, manifest, checkpoint, folder, report)
        report(f"comparing the bundle with PyTorch on {len(samples)} sentences")
        bundle = Bundle.open(folder)
        loss = log_probability_loss(bundle, samples, found) if corpus is None and target.precision != "fp32" else None
        parity = compare(samples, expected, tokenizer, bundle, loss)
        if not parity.passed:
            hint = "" if target.precision == "fp32" else f"; {cure(target, chosen=corpus is not None)}"
            raise ParityError(f"parity failed, {out} was not written: {parity}{hint}")
        report("looking for names that the model copies")
        stand_ins = measure_stand_ins(bundle, [sample.text for sample in samples])
        _write_manifest(bundle.manifest.model_copy(update={"stand_ins": stand_ins}), folder)
    return parity


def cure(target: Target, *, chosen: bool) -> str:
    """Say what to do where a bundle translates otherwise than its checkpoint.

    Args:
        target: what was to be made.
        chosen: whether the user chose the sentences that it was compared on.
    """
    compare = (
        "" if chosen or not target.languages.is_pair else "compare on sentences of its own kind (--data FILE), or "
    )
    return f"{compare}make an fp32 bundle (--bundle fp32, of dragoman export --precision fp32)"


def write_bundle(
    model: Transformer,
    examples: Sequence[Example],
    manifest: Manifest,
    checkpoint: Path,
    folder: Path,
    report: Report = lambda message: None,
) -> None:
    """Write a bundle that nobody has compared with its checkpoint.

    Args:
        model: of the checkpoint; it is used up, since a large one has no room beside a copy.
        examples: to calibrate on; read for int8 only.
        manifest: of the bundle, which gets the hashes of its files.
        checkpoint: folder of the checkpoint.
        folder: an empty one.
        report: told of each phase before it begins.
    """
    ranges: Ranges = {}
    if manifest.precision == "int8":
        report(f"measuring the ranges of activations on {len(examples)} sentences")
        scale_to_bytes(model, examples)
        ranges = calibrate(model, examples)
    report(f"writing the {manifest.precision} graphs of encoder and decoder")
    write_graphs(model, manifest.precision, folder, ranges, manifest.alignment.layer)
    for name in tokenizer_files(checkpoint):
        shutil.copyfile(checkpoint / name, folder / name)
    files = {file.name: sha256(file) for file in sorted(folder.iterdir())}
    _write_manifest(manifest.model_copy(update={"files": files}), folder)


def _write_manifest(manifest: Manifest, folder: Path) -> None:
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")


def _alignment(
    model: Transformer, samples: Sequence[Sample], targets: Sequence[list[int]], tokenizer: Tokenizer
) -> AlignmentHeads:
    """Choose the heads that align, on the checkpoint's own translations."""
    positions = model.config.max_positions
    examples = [
        Example(one.source, [*one.start_ids, *target][:positions]) for one, target in zip(samples, targets, strict=True)
    ]
    return choose_heads(model, examples, [len(one.start_ids) for one in samples], tokenizer)


def examples_of(
    samples: Sequence[Sample], targets: Sequence[list[int]], tokenizer: Tokenizer, max_positions: int
) -> list[Example]:
    """Make examples of samples and their references, or where there are none, of what a checkpoint made of them.

    Args:
        samples: whose sources fit into the positions of the model.
        targets: of the checkpoint.
        tokenizer: of the model.
        max_positions: of the model; longer targets are cut.
    """
    wanted = [
        target if one.reference is None else tokenizer.encode_target(one.reference)
        for one, target in zip(samples, targets, strict=True)
    ]
    return [
        Example(one.source, [*one.start_ids, *target][:max_positions])
        for one, target in zip(samples, wanted, strict=True)
    ]


def write_graphs(model: Transformer, precision: Precision, folder: Path, ranges: Ranges, alignment_layer: int) -> None:
    """Export the graphs of a model.

    Args:
        model: in evaluation mode, fp32; for int8 after `scale_to_bytes`. It is used up.
        precision: of the encoder and the decoder.
        folder: where they are written.
        ranges: from `calibrate`; read for int8 only.
        alignment_layer: of the decoder, whose attention to the source is given.
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
        write_decoder(decoder, folder / DECODER, weights, _KEY_VALUE_TYPES[precision], alignment_layer)
    write_place(model.config, precision, folder / PLACE)
    write_copy(folder / COPY)
    write_search(model.config.target_vocabulary_size, precision, folder / SEARCH)


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


def installed_versions() -> dict[str, str]:
    """List the versions of what makes a bundle, of what is installed: of a checkout, dragoman itself may not be."""
    versions = {}
    for name in _MADE_WITH:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def manifest_of(model: Transformer, checkpoint: Path, target: Target) -> Manifest:
    """Say what the bundle of a checkpoint is, but for what is measured and the hashes of its files."""
    config = model.config
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
        alignment=mean_of_layer(config.decoder_layers, config.decoder_head_count),
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        provenance=Provenance(
            checkpoint_sha256=sha256(checkpoint / WEIGHTS),
            versions=installed_versions(),
        ),
        files={},
    )
