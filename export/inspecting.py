"""The command `dragoman inspect`; only a checkpoint needs torch."""

from __future__ import annotations

import argparse
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.arguments import Parser, language, output_file
from dragoman.bundle import Bundle, target_limit
from dragoman.exit_codes import EXIT_OK
from dragoman.framing import Frame
from export.cli import kind_of
from model.inspection.shown import check_length, draw_alignment, print_table, sides

if TYPE_CHECKING:
    from dragoman.tokenizer import Tokenizer
    from service.decode import Decode

_CHECKPOINTS_ONLY = ("positions", "attention", "bundle")


def inspect(argv: list[str]) -> int:
    """Show the parts of a checkpoint or a bundle, and its attention.

    Returns:
        The exit code, 0.

    Raises:
        DragomanError: an argument or file is unusable.
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
        from model.inspection.checkpoint import inspect_checkpoint

        inspect_checkpoint(arguments)
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
    add_picture = partial(add, type=output_file, metavar="FILE.png")
    add_picture("--positions", help="draw the position encodings of a checkpoint")
    add_picture("--attention", help="draw where each head of a checkpoint looks, for --text")
    add_picture("--alignment", help="draw where the heads look by which words are aligned, for --text: their mean")
    bundle = "made of the checkpoint; its heads are marked in --attention and drawn by --alignment"
    add("--bundle", type=Path, metavar="BUNDLE", help=bundle)
    add("--text", default="", help="a sentence to translate")
    add("--translation", default="", help="its translation (default: the model's own)")
    add("--source-language", type=language, metavar="CODE", help="of --text, where the model has several")
    add("--target-language", type=language, metavar="CODE", help="of the translation, likewise")
    return parser


def _inspect_bundle(arguments: argparse.Namespace) -> None:
    bundle = Bundle.open(arguments.model)
    _print_bundle(bundle)
    if not arguments.text:
        return
    tokenizer = bundle.tokenizer()
    decode = _decoded(bundle, tokenizer, arguments)
    pieces = tokenizer.source_pieces(decode.source_ids), tokenizer.target_pieces(decode.target_ids)
    draw_alignment(decode.attention, *pieces, arguments.alignment)
    print(f"\n{tokenizer.decode(decode.target_ids)}")


def _print_bundle(bundle: Bundle) -> None:
    manifest = bundle.manifest
    heads = ", ".join(map(str, manifest.alignment.heads))
    apart = {"languages", "alignment", "stand_ins", "quality", "parameters", "provenance", "files"}
    rows = [(name, str(value)) for name, value in manifest.model_dump(exclude=apart).items()]
    rows += sides(manifest.languages)
    rows += [("alignment heads", f"{heads} of decoder layer {manifest.alignment.layer}")]
    rows += [("quality", "counted alone" if manifest.quality is None else "calibrated")]
    rows += [("stand-ins", ", ".join(manifest.stand_ins) or "none"), ("parameters", f"{manifest.parameters:,}")]
    print_table(rows)
    print()
    print_table([(name, f"{(bundle.path / name).stat().st_size:,} bytes") for name in manifest.files])


def _decoded(bundle: Bundle, tokenizer: Tokenizer, arguments: argparse.Namespace) -> Decode:
    """Decode a sentence with the engine, or score a given translation, and keep the attention."""
    from plugins.offline.engine import OfflineEngine
    from service.decode import Decode
    from service.options import Decoding

    manifest = bundle.manifest
    asked = manifest.languages.told(arguments.source_language or "", arguments.target_language or "")
    frame = Frame.of(manifest.languages, manifest, *asked)
    source_ids = frame.around(tokenizer.encode(arguments.text))
    scored_ids = (*tokenizer.encode_target(arguments.translation), manifest.eos_id) if arguments.translation else ()
    check_length("--text", len(source_ids), manifest.max_source_tokens)
    check_length("--translation", len(scored_ids), manifest.max_target_tokens)
    decode = Decode(
        source_ids,
        len(scored_ids) or target_limit(len(source_ids), manifest.max_target_tokens),
        decoding=Decoding(wants_attention=True, wants_log_probability=bool(scored_ids)),
        start_ids=frame.start_ids,
        scored_ids=scored_ids,
    )
    with closing(OfflineEngine(bundle, threads=1, slots=1)) as engine:
        engine.decode([decode])
    return decode
