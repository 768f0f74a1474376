"""The command `dragoman inspect`; its help and the errors of its arguments need no torch."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.arguments import Parser, language
from dragoman.errors import DataError
from dragoman.exit_codes import EXIT_OK
from model.layout import CONFIG, family, is_checkpoint, languages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.language_marks import Languages
    from dragoman.tokenizer import Tokenizer
    from model.transformer import Transformer


def inspect(argv: list[str]) -> int:
    """Show what a checkpoint consists of.

    Returns:
        The exit code, 0.

    Raises:
        DragomanError: an argument or file cannot be used.
    """
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if bool(arguments.attention) != bool(arguments.text):
        parser.error("--attention and --text need each other")
    if not is_checkpoint(arguments.checkpoint):
        raise DataError(f"{arguments.checkpoint}: no checkpoint ({CONFIG})")
    known = languages(arguments.checkpoint)
    from model.checkpoint import load_checkpoint

    model, tokenizer = load_checkpoint(arguments.checkpoint)
    _print_tables(arguments.checkpoint, model, known)
    if arguments.positions or arguments.attention:
        from model.inspection import plots

        plots.use_files_only()
    if arguments.positions:
        plots.save(plots.positions_figure(model), arguments.positions)
    if arguments.attention:
        _draw_attention(model, tokenizer, known, arguments)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser("dragoman inspect", description="Show the configuration of a checkpoint, and its weights by part.")
    add = parser.add_argument
    add("checkpoint", type=Path, help="folder of the checkpoint")
    add("--positions", type=Path, metavar="FILE.png", help="draw the position encodings")
    add("--attention", type=Path, metavar="FILE.png", help="draw where each head looks, for --text")
    add("--text", default="", help="a sentence to translate")
    add("--translation", default="", help="its translation (default: the model's own)")
    add("--source-language", type=language, metavar="CODE", help="of --text, where the model has several")
    add("--target-language", type=language, metavar="CODE", help="of the translation, likewise")
    return parser


def _print_tables(checkpoint: Path, model: Transformer, known: Languages | None) -> None:
    from model.inspection.parameters import parameters_by_part

    rows = [("family", family(checkpoint))]
    if known:
        rows += [(f"{side} languages", ", ".join(codes)) for side, codes in _sides(known)]
    rows += [(name, str(value)) for name, value in model.config.model_dump().items() if value is not None]
    _print_table(rows)
    counts = parameters_by_part(model)
    print()
    _print_table([(part, f"{count:,}") for part, count in [*counts.items(), ("all parameters", sum(counts.values()))]])


def _sides(known: Languages) -> list[tuple[str, tuple[str, ...]]]:
    return [("source", known.sources), ("target", known.targets)]


def _print_table(rows: Iterable[tuple[str, str]]) -> None:
    listed = list(rows)
    width = max(len(name) for name, _ in listed)
    for name, value in listed:
        print(f"{name.ljust(width)}  {value}")


def _draw_attention(
    model: Transformer, tokenizer: Tokenizer, known: Languages | None, arguments: argparse.Namespace
) -> None:
    from dragoman.framing import Frame
    from model.decoding import greedy
    from model.inspection import plots
    from model.inspection.attention_maps import attention_maps

    asked = known.told(arguments.source_language or "", arguments.target_language or "") if known else ()
    frame = Frame.of(known, model.config, *asked)
    source_ids, start_ids = frame.around(tokenizer.encode(arguments.text)), frame.start_ids or (model.config.start_id,)
    positions = model.config.max_positions
    if len(source_ids) > positions:
        raise DataError(f"--text has {len(source_ids)} tokens, the model {positions} positions")
    if arguments.translation:
        own = tokenizer.encode_target(arguments.translation)
    else:
        [own] = greedy(model, [source_ids], max_target_tokens=positions - len(start_ids), start_ids=[start_ids])
    target_ids = [*start_ids, *own]
    if len(target_ids) > positions:
        raise DataError(f"--translation has {len(target_ids)} tokens, the model {positions} positions")
    pieces = {"source": tokenizer.source_pieces(source_ids), "target": tokenizer.target_pieces(target_ids)}
    plots.save(plots.attention_figure(attention_maps(model, source_ids, target_ids), pieces), arguments.attention)
    print(f"\n{tokenizer.decode(own)}")
