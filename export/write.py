"""Checkpoint in, bundle out: whole and checked, or not at all."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from dragoman.bundle import (
    COPY,
    DECODER,
    ENCODER,
    OUTPUT_LAYER,
    PLACE,
    SEARCH,
    SHORTLIST,
    STATES_DECODER,
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
from export.attention import HEAD_DIM_UNIT
from export.calibrate import calibrate
from export.examples import Example, batches
from export.graphs import decoder_graph, encoder_graph, output_layer_graph
from export.key_values import measure_factors, scale_to_bytes
from export.parameters import Parameters, open_checkpoint
from export.parity import SLOTS, Parity, compare, decode, log_probability_loss
from export.products import ByteProducts, FloatProducts, Products, Ranges
from export.rows import write_copy, write_place
from export.samples import Sample, drawn, fitting, of_corpus, shipped
from export.search import write_search
from export.stand_ins import measure_stand_ins
from export.teacher import Teacher
from export.weights import WeightsFile
from model.config import TransformerConfig
from model.corpus import Corpus
from model.layout import WEIGHTS, family
from model.replacing import replacing

# Distributions; onnxruntime comes as the one or the other.
_MADE_WITH: Final = ("dragoman", "onnx", "onnxruntime", "onnxruntime-gpu")

Report = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """What to make of a checkpoint.

    Attributes:
        name: under which the model is served.
        languages: what the model translates.
        precision: of both graphs.
        max_source_tokens: a segment's limit, end-of-sentence id included.
        max_target_tokens: a translation's limit.
        note: what the model is for, in one line; "": nobody says it.
    """

    name: str
    languages: Languages
    precision: Precision
    max_source_tokens: int
    max_target_tokens: int
    note: str = ""


class ParityError(DataError):
    """A bundle does not translate as its checkpoint does; it was not written."""

    reason = "PARITY_FAILED"


def export_bundle(
    checkpoint: Path, out: Path, target: Target, corpus: Corpus | None, report: Report = lambda message: None
) -> Parity:
    """Write a bundle beside `out`, compare it with the checkpoint in fp32, then give it its name.

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
    parameters, tokenizer = open_checkpoint(checkpoint)
    _check_limits(parameters.config, target)
    manifest = manifest_of(parameters, checkpoint, target)
    samples = shipped(manifest, tokenizer) if corpus is None else of_corpus(corpus, manifest, tokenizer)
    if not samples and corpus is None:
        report("no sentences in its languages come with Dragoman: drawing some from its vocabulary")
        samples = drawn(manifest, tokenizer)
    samples = fitting(samples, target.max_source_tokens)
    with replacing(out) as folder, TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.fp32.") as beside:
        report("making the fp32 graphs that the bundle is compared with")
        exact = Path(beside)
        with WeightsFile(exact) as weights:
            write_graphs(
                parameters, "fp32", exact, weights, {}, manifest.alignment.layer, shortlisted=shortlisted(checkpoint)
            )
            teacher = Teacher(parameters, exact, weights)
        finish_bundle(manifest.model_copy(update={"precision": "fp32"}), checkpoint, exact)
        report(f"translating {len(samples)} sentences in fp32")
        bundle = Bundle.open(exact)
        # What fp32 is compared with is each sentence alone; for others, a large model is to take little memory.
        exactly = target.precision == "fp32"
        found = decode(bundle, samples, slots=1 if exactly else SLOTS, packed=exactly)
        expected = [one.ids for one in found]
        examples = examples_of(samples, expected, tokenizer, parameters.config.max_positions)
        report("measuring what the layers read and where they look")
        alignment = _alignment(teacher, samples, expected, tokenizer, manifest)
        manifest = manifest.model_copy(update={"alignment": alignment})
        ranges = scale_and_calibrate(parameters, teacher, examples) if target.precision == "int8" else {}
        report(f"writing the {target.precision} graphs of encoder and decoder")
        write_bundle(parameters, ranges, manifest, checkpoint, folder)
        report(f"comparing the bundle with fp32 on {len(samples)} sentences")
        bundle = Bundle.open(folder)
        loss = log_probability_loss(bundle, samples, found) if corpus is None and target.precision != "fp32" else None
        parity = compare(samples, expected, tokenizer, bundle, loss)
        if not parity.passed:
            hint = "" if target.precision == "fp32" else f"; {cure(target, chosen=corpus is not None)}"
            raise ParityError(f"parity failed, {out} was not written: {parity}{hint}")
        report("looking for names that the model copies")
        stand_ins = measure_stand_ins(bundle, [sample.text for sample in samples])
        bundle.manifest.model_copy(update={"stand_ins": stand_ins}).write(folder)
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


def write_bundle(parameters: Parameters, ranges: Ranges, manifest: Manifest, checkpoint: Path, folder: Path) -> None:
    """Write a bundle that nobody has compared with its checkpoint.

    Args:
        parameters: of the checkpoint; for int8 after `scale_and_calibrate`.
        ranges: from `scale_and_calibrate`; read for int8 only.
        manifest: of the bundle, which gets the hashes of its files.
        checkpoint: folder of the checkpoint.
        folder: an empty one.
    """
    precision, layer = manifest.precision, manifest.alignment.layer
    short = shortlisted(checkpoint, precision)
    with WeightsFile(folder) as weights:
        write_graphs(parameters, precision, folder, weights, ranges, layer, shortlisted=short)
    finish_bundle(manifest, checkpoint, folder)


def scale_and_calibrate(parameters: Parameters, teacher: Teacher, examples: Sequence[Example]) -> Ranges:
    """Scale keys and values to bytes, and measure the range of what each linear layer reads from then on."""
    config = parameters.config
    factors = measure_factors(
        teacher.run(batches(examples, config.pad_id)), config.decoder_head_count * config.head_dim
    )
    larger = scale_to_bytes(parameters, factors)
    source, target = (sum(map(len, side)) for side in zip(*examples, strict=True))
    return calibrate(teacher.run(batches(examples, config.pad_id)), (source, target), larger)


def finish_bundle(manifest: Manifest, checkpoint: Path, folder: Path) -> None:
    """Add to the graphs of a bundle its tokenizer, shortlist and manifest, with the hashes of its files."""
    shortlist = [SHORTLIST] if (folder / OUTPUT_LAYER).exists() else []
    for name in [*tokenizer_files(checkpoint), *shortlist]:
        shutil.copyfile(checkpoint / name, folder / name)
    files = {file.name: sha256(file) for file in sorted(folder.iterdir())}
    manifest.model_copy(update={"files": files}).write(folder)


def shortlisted(checkpoint: Path, precision: Precision = "fp32") -> bool:
    """Tell whether a bundle is to have the shortlist of its checkpoint: not in half precision, which is for GPUs.

    There the whole output layer takes no longer than some of it.
    """
    return precision != "fp16" and (checkpoint / SHORTLIST).is_file()


def _alignment(
    teacher: Teacher,
    samples: Sequence[Sample],
    targets: Sequence[list[int]],
    tokenizer: Tokenizer,
    manifest: Manifest,
) -> AlignmentHeads:
    """Choose the heads that align, on the checkpoint's own translations."""
    positions = manifest.target_capacity
    examples = [
        Example(one.source, [*one.start_ids, *target][:positions]) for one, target in zip(samples, targets, strict=True)
    ]
    runs = teacher.run(batches(examples, manifest.pad_id))
    chosen = choose_heads(runs, examples, [len(one.start_ids) for one in samples], tokenizer)
    return chosen or manifest.alignment


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


def write_graphs(
    parameters: Parameters,
    precision: Precision,
    folder: Path,
    weights: WeightsFile,
    ranges: Ranges,
    alignment_layer: int,
    *,
    shortlisted: bool = False,
) -> None:
    """Write the graphs of a model.

    Args:
        parameters: of the model; for int8 after `scale_and_calibrate`.
        precision: of the encoder and the decoder.
        folder: where they are written.
        weights: in the same folder.
        ranges: from `scale_and_calibrate`; read for int8 only.
        alignment_layer: of the decoder, whose attention to the source is given.
        shortlisted: write the graphs that a shortlist needs besides.
    """
    products: Products
    if precision == "int8":
        products = ByteProducts(parameters, ranges)
    else:
        products = FloatProducts(parameters, np.float16 if precision == "fp16" else np.float32)
    encoder_graph(parameters, products, precision, weights).save(folder / ENCODER)
    decoder_graph(parameters, products, precision, weights, alignment_layer).save(folder / DECODER)
    if shortlisted:
        states = decoder_graph(parameters, products, precision, weights, alignment_layer, output=False)
        states.save(folder / STATES_DECODER)
        output_layer_graph(products, weights).save(folder / OUTPUT_LAYER)
    write_place(parameters.config, precision, folder / PLACE)
    write_copy(folder / COPY)
    write_search(parameters.config.target_vocabulary_size, precision, folder / SEARCH)


def _check_limits(config: TransformerConfig, target: Target) -> None:
    positions, prefix = config.max_positions, target.languages.longest_target_prefix
    for field, limit, most in (
        ("source", target.max_source_tokens, positions),
        ("target", target.max_target_tokens, positions - prefix),
    ):
        if limit > most:
            raise DataError(f"max {field} tokens: {limit} is above the checkpoint's {most} positions")
    for heads in (config.heads, config.decoder_head_count):
        if (head_dim := config.head_dim_of(heads)) % HEAD_DIM_UNIT:
            raise DataError(f"head_dim: {head_dim} is not a multiple of {HEAD_DIM_UNIT}, which the runtime needs")


def installed_versions() -> dict[str, str]:
    """List the versions of what makes a bundle, of what is installed: of a checkout, dragoman itself may not be."""
    versions = {}
    for name in _MADE_WITH:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def manifest_of(parameters: Parameters, checkpoint: Path, target: Target) -> Manifest:
    """Say what the bundle of a checkpoint is, but for what is measured and the hashes of its files."""
    config = parameters.config
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
        decoder_cell=config.decoder_cell,
        max_source_tokens=target.max_source_tokens,
        max_target_tokens=target.max_target_tokens,
        note=target.note,
        alignment=mean_of_layer(config.decoder_layers, config.decoder_head_count),
        parameters=parameters.count,
        provenance=Provenance(checkpoint_sha256=sha256(checkpoint / WEIGHTS), versions=installed_versions()),
        files={},
    )
