"""Checkpoint in, bundle out: complete and checked, or not at all."""

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
from model.config import HEAD_DIM_UNIT, TransformerConfig
from model.corpus import Corpus
from model.layout import WEIGHTS, family
from model.replacing import replacing

# Distributions; onnxruntime is installed as one or the other.
_MADE_WITH: Final = ("dragoman", "onnx", "onnxruntime", "onnxruntime-gpu")

Report = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """The bundle to make from a checkpoint.

    Attributes:
        name: the name of the model in calls.
        languages: the languages that the model translates.
        precision: the precision of both graphs.
        max_source_tokens: the limit of a segment, with the end-of-sentence id.
        max_target_tokens: the limit of a translation.
        note: the purpose of the model, in one line; "": none.
    """

    name: str
    languages: Languages
    precision: Precision
    max_source_tokens: int
    max_target_tokens: int
    note: str = ""


class ParityError(DataError):
    """A bundle that does not translate as its checkpoint does; it was not written."""

    reason = "PARITY_FAILED"


def export_bundle(
    checkpoint: Path, out: Path, target: Target, corpus: Corpus | None, report: Report = lambda message: None
) -> Parity:
    """Write a bundle beside `out`, compare it with the checkpoint in fp32, then move it to `out`.

    Args:
        checkpoint: the folder of the checkpoint.
        out: the folder of the bundle; an older bundle is replaced at the end.
        target: the bundle to make.
        corpus: sentences for calibration and comparison, with or without references; None: those of this package.
        report: gets a message before each phase.

    Raises:
        BundleError: the checkpoint cannot be read.
        DataError: the limits exceed the checkpoint's positions, or are shorter than every source; or the serving
            runtime does not support the width of the heads; or there are no sentences.
        ParityError: the bundle differs too much from the checkpoint.
    """
    parameters, tokenizer = open_checkpoint(checkpoint)
    _check_limits(parameters.config, target)
    manifest = manifest_of(parameters, checkpoint, target)
    samples = shipped(manifest, tokenizer) if corpus is None else of_corpus(corpus, manifest, tokenizer)
    if not samples and corpus is None:
        report("no sentences in its languages come with Dragoman: drawing some from its vocabulary")
        samples = drawn(manifest, tokenizer)
    samples = fitting(samples, target.max_source_tokens)
    with replacing(out) as folder:
        # In that folder: of what a kill leaves, the next run clears all.
        with TemporaryDirectory(dir=folder) as beside:
            report("making the fp32 graphs that the bundle is compared with")
            exact = Path(beside)
            with WeightsFile(exact) as weights:
                short, layer = shortlisted(checkpoint), manifest.alignment.layer
                write_graphs(parameters, "fp32", exact, weights, {}, layer, shortlisted=short)
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
    """Advise what to do if a bundle translates differently from its checkpoint.

    Args:
        target: the bundle to make.
        chosen: whether the user chose the sentences of the comparison.
    """
    compare = (
        "" if chosen or not target.languages.is_pair else "compare on sentences of its own kind (--data FILE), or "
    )
    return f"{compare}make an fp32 bundle (--bundle fp32, of dragoman export --precision fp32)"


def write_bundle(parameters: Parameters, ranges: Ranges, manifest: Manifest, checkpoint: Path, folder: Path) -> None:
    """Write a bundle, without comparing it with its checkpoint.

    Args:
        parameters: the parameters of the checkpoint; for int8 after `scale_and_calibrate`.
        ranges: from `scale_and_calibrate`; used for int8 only.
        manifest: the manifest of the bundle; the hashes of the files are added to it.
        checkpoint: the folder of the checkpoint.
        folder: an empty folder.
    """
    precision, layer = manifest.precision, manifest.alignment.layer
    short = shortlisted(checkpoint, precision)
    with WeightsFile(folder) as weights:
        write_graphs(parameters, precision, folder, weights, ranges, layer, shortlisted=short)
    finish_bundle(manifest, checkpoint, folder)


def scale_and_calibrate(parameters: Parameters, teacher: Teacher, examples: Sequence[Example]) -> Ranges:
    """Scale keys and values to bytes, and measure the resulting range of each linear layer's input."""
    config = parameters.config
    factors = measure_factors(
        teacher.run(batches(examples, config.pad_id)), config.decoder_head_count * config.head_dim
    )
    larger = scale_to_bytes(parameters, factors)
    source, target = (sum(map(len, side)) for side in zip(*examples, strict=True))
    return calibrate(teacher.run(batches(examples, config.pad_id)), (source, target), larger)


def finish_bundle(manifest: Manifest, checkpoint: Path, folder: Path) -> None:
    """Add the tokenizer, the shortlist and the manifest, with the hashes of the files, to a bundle's graphs."""
    shortlist = [SHORTLIST] if (folder / OUTPUT_LAYER).exists() else []
    for name in [*tokenizer_files(checkpoint), *shortlist]:
        shutil.copyfile(checkpoint / name, folder / name)
    files = {file.name: sha256(file) for file in sorted(folder.iterdir())}
    manifest.model_copy(update={"files": files}).write(folder)


def shortlisted(checkpoint: Path, precision: Precision = "fp32") -> bool:
    """Tell whether a bundle gets the shortlist of its checkpoint: not in half precision, which is for GPUs.

    On a GPU the whole output layer takes no longer than a part of it.
    """
    return precision != "fp16" and (checkpoint / SHORTLIST).is_file()


def _alignment(
    teacher: Teacher,
    samples: Sequence[Sample],
    targets: Sequence[list[int]],
    tokenizer: Tokenizer,
    manifest: Manifest,
) -> AlignmentHeads:
    """Choose the alignment heads, on the checkpoint's own translations."""
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
    """Make examples from samples with their references, or else with the checkpoint's translations.

    Args:
        samples: samples whose sources fit into the model's positions.
        targets: the checkpoint's translations.
        tokenizer: the tokenizer of the model.
        max_positions: the number of positions of the model; longer targets are cut.
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
        parameters: the parameters of the model; for int8 after `scale_and_calibrate`.
        precision: the precision of the encoder and the decoder.
        folder: the folder to write to.
        weights: the weights file in the same folder.
        ranges: from `scale_and_calibrate`; used for int8 only.
        alignment_layer: the decoder layer whose attention to the source is an output.
        shortlisted: whether to write the additional graphs for a shortlist.
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
    """List the installed versions of the packages that make a bundle; in a checkout, dragoman may not be installed."""
    versions = {}
    for name in _MADE_WITH:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def manifest_of(parameters: Parameters, checkpoint: Path, target: Target) -> Manifest:
    """Make the manifest for a checkpoint's bundle, without measured values and file hashes."""
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
