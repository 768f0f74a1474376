"""The command `dragoman inspect`; only a checkpoint needs torch."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.arguments import Parser, language
from dragoman.bundle import AlignmentHeads, Bundle, Manifest, sha256, target_limit
from dragoman.errors import DataError
from dragoman.exit_codes import EXIT_OK
from dragoman.framing import Frame
from export.cli import kind_of
from model.layout import WEIGHTS, family, languages

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from dragoman.language_marks import Languages
    from dragoman.tokenizer import Tokenizer
    from model.inspection.attention_maps import AttentionMap
    from model.transformer import Transformer
    from service.decode import Decode

_CHECKPOINTS_ONLY = ("positions", "attention", "bundle")


def inspect(argv: list[str]) -> int:
    """Show what a checkpoint or a bundle consists of, and where its attention looks.

    Returns:
        The exit code, 0.

    Raises:
        DragomanError: an argument or file cannot be used.
    """
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if bool(arguments.attention or arguments.alignment) != bool(arguments.text):
        parser.error("--text and one of --attention and --alignment need each other")
    is_bundle = kind_of(arguments.model) == "bundle"
    if is_bundle and (given := [name for name in _CHECKPOINTS_ONLY if getattr(arguments, name)]):
        parser.error(f"--{given[0]}: is for a checkpoint, {arguments.model} is a bundle")
    if not is_bundle and arguments.alignment and not arguments.bundle:
        parser.error("--alignment: a checkpoint does not say which heads align: give --bundle, or a bundle itself")
    if is_bundle:
        _inspect_bundle(arguments)
    else:
        _inspect_checkpoint(arguments)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman inspect",
        description="Show the configuration of a checkpoint or a bundle, its weights by part or its files, and where "
        "its attention looks.",
    )
    add = parser.add_argument
    add("model", type=Path, help="folder of a checkpoint or bundle")
    add("--positions", type=Path, metavar="FILE.png", help="draw the position encodings of a checkpoint")
    add("--attention", type=Path, metavar="FILE.png", help="draw where each head of a checkpoint looks, for --text")
    add(
        "--alignment",
        type=Path,
        metavar="FILE.png",
        help="draw where the heads look by which words are aligned, for --text: their mean",
    )
    bundle = "made of the checkpoint; its heads are marked in --attention and drawn by --alignment"
    add("--bundle", type=Path, metavar="BUNDLE", help=bundle)
    add("--text", default="", help="a sentence to translate")
    add("--translation", default="", help="its translation (default: the model's own)")
    add("--source-language", type=language, metavar="CODE", help="of --text, where the model has several")
    add("--target-language", type=language, metavar="CODE", help="of the translation, likewise")
    return parser


def _inspect_checkpoint(arguments: argparse.Namespace) -> None:
    known = languages(arguments.model)
    from model.checkpoint import load_checkpoint

    heads = _heads_of(arguments.bundle, arguments.model / WEIGHTS) if arguments.bundle else None
    model, tokenizer = load_checkpoint(arguments.model)
    _print_checkpoint(arguments.model, model, known)
    if arguments.positions:
        from model.inspection import heatmaps, plots

        heatmaps.save(plots.positions_figure(model), arguments.positions)
    if arguments.text:
        _draw_attention(model, tokenizer, known, heads, arguments)


def _heads_of(bundle: Path, weights: Path) -> AlignmentHeads:
    """Read which heads align, of a bundle that was made of these weights.

    Raises:
        DragomanError: it is no bundle, or was made of others.
    """
    manifest = Manifest.read(bundle)
    if manifest.provenance.checkpoint_sha256 != sha256(weights):
        raise DataError(f"--bundle: {bundle} was made of another checkpoint than {weights.parent}")
    return manifest.alignment


def _print_checkpoint(checkpoint: Path, model: Transformer, known: Languages | None) -> None:
    from model.inspection.parameters import parameters_by_part

    rows = [("family", family(checkpoint)), *(_sides(known) if known else [])]
    rows += [(name, str(value)) for name, value in model.config.model_dump().items() if value is not None]
    _print_table(rows)
    counts = parameters_by_part(model)
    print()
    _print_table([(part, f"{count:,}") for part, count in [*counts.items(), ("all parameters", sum(counts.values()))]])


def _sides(known: Languages) -> list[tuple[str, str]]:
    return [("source languages", ", ".join(known.sources)), ("target languages", ", ".join(known.targets))]


def _print_table(rows: Iterable[tuple[str, str]]) -> None:
    listed = list(rows)
    width = max(len(name) for name, _ in listed)
    for name, value in listed:
        print(f"{name.ljust(width)}  {value}")


def _draw_attention(
    model: Transformer,
    tokenizer: Tokenizer,
    known: Languages | None,
    heads: AlignmentHeads | None,
    arguments: argparse.Namespace,
) -> None:
    """Draw the attention of a checkpoint, and print the translation that it is of."""
    from model.decoding import greedy
    from model.inspection import heatmaps, plots
    from model.inspection.attention_maps import attention_maps

    asked = known.told(arguments.source_language or "", arguments.target_language or "") if known else ()
    frame = Frame.of(known, model.config, *asked)
    source_ids, start_ids = frame.around(tokenizer.encode(arguments.text)), frame.start_ids or (model.config.start_id,)
    positions = model.config.max_positions
    _check_length("--text", len(source_ids), positions)
    if arguments.translation:
        own = tokenizer.encode_target(arguments.translation)
    else:
        [own] = greedy(model, [source_ids], max_target_tokens=positions - len(start_ids), start_ids=[start_ids])
    target_ids = [*start_ids, *own]
    _check_length("--translation", len(target_ids), positions)
    maps = attention_maps(model, source_ids, target_ids)
    pieces = {"source": tokenizer.source_pieces(source_ids), "target": tokenizer.target_pieces(target_ids)}
    if arguments.attention:
        heatmaps.save(plots.attention_figure(maps, pieces, heads), arguments.attention)
    if arguments.alignment:
        assert heads is not None
        # A token is chosen one position before it is read.
        weights = _mean(maps, heads)[len(start_ids) - 1 :][: len(own)]
        _draw_alignment(weights, pieces["source"], tokenizer.target_pieces(own), arguments.alignment)
    print(f"\n{tokenizer.decode(own)}")


def _check_length(flag: str, tokens: int, most: int) -> None:
    if tokens > most:
        raise DataError(f"{flag} has {tokens} tokens, more than the {most} of the model")


def _mean(maps: Sequence[AttentionMap], heads: AlignmentHeads) -> NDArray[np.float32]:
    """Take the mean of the heads that align: float [target, source]."""
    [weights] = [each.weights for each in maps if each.is_of_decoder(heads.layer)]
    mean: NDArray[np.float32] = weights[list(heads.heads)].mean(0).numpy()
    return mean


def _draw_alignment(weights: ArrayLike, source: Sequence[str], target: Sequence[str], file: Path) -> None:
    """Draw which tokens of a source each token of a translation looked at: float [target, source]."""
    from model.inspection import heatmaps

    if not target:
        raise DataError("--alignment: there is nothing to draw, the translation has no tokens")
    heatmaps.save(heatmaps.alignment_figure(weights, source, target), file)


def _inspect_bundle(arguments: argparse.Namespace) -> None:
    bundle = Bundle.open(arguments.model)
    _print_bundle(bundle)
    if not arguments.text:
        return
    tokenizer = bundle.tokenizer()
    decode = _decoded(bundle, tokenizer, arguments)
    pieces = tokenizer.source_pieces(decode.source_ids), tokenizer.target_pieces(decode.target_ids)
    _draw_alignment(decode.attention, *pieces, arguments.alignment)
    print(f"\n{tokenizer.decode(decode.target_ids)}")


def _print_bundle(bundle: Bundle) -> None:
    manifest = bundle.manifest
    heads = ", ".join(map(str, manifest.alignment.heads))
    apart = {"languages", "alignment", "stand_ins", "parameters", "provenance", "files"}
    rows = [(name, str(value)) for name, value in manifest.model_dump(exclude=apart).items()]
    rows += _sides(manifest.languages)
    rows += [("alignment heads", f"{heads} of decoder layer {manifest.alignment.layer}")]
    rows += [("stand-ins", ", ".join(manifest.stand_ins) or "none"), ("parameters", f"{manifest.parameters:,}")]
    _print_table(rows)
    print()
    _print_table([(name, f"{(bundle.path / name).stat().st_size:,} bytes") for name in manifest.files])


def _decoded(bundle: Bundle, tokenizer: Tokenizer, arguments: argparse.Namespace) -> Decode:
    """Have the engine decode a sentence, or score its translation, and keep the attention."""
    from service.decode import Decode
    from service.engine.offline import OfflineEngine
    from service.options import Decoding

    manifest = bundle.manifest
    asked = manifest.languages.told(arguments.source_language or "", arguments.target_language or "")
    frame = Frame.of(manifest.languages, manifest, *asked)
    source_ids = frame.around(tokenizer.encode(arguments.text))
    scored_ids = (*tokenizer.encode_target(arguments.translation), manifest.eos_id) if arguments.translation else ()
    _check_length("--text", len(source_ids), manifest.max_source_tokens)
    _check_length("--translation", len(scored_ids), manifest.max_target_tokens)
    decode = Decode(
        source_ids,
        len(scored_ids) or target_limit(len(source_ids), manifest.max_target_tokens),
        decoding=Decoding(wants_attention=True, wants_log_probability=bool(scored_ids)),
        start_ids=frame.start_ids,
        scored_ids=scored_ids,
    )
    engine = OfflineEngine(bundle, threads=1, slots=1)
    engine.decode([decode])
    engine.close()
    return decode
