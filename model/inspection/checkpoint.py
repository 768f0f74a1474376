"""The parts and the attention of a checkpoint, as `dragoman inspect` shows them."""

import argparse
from pathlib import Path

from dragoman.bundle import AlignmentHeads, Manifest, sha256
from dragoman.errors import DataError
from dragoman.framing import Frame
from dragoman.language_marks import Languages
from dragoman.tokenizer import Tokenizer
from model.checkpoint import load_checkpoint
from model.decoding import greedy
from model.inspection import heatmaps, plots
from model.inspection.attention_maps import attention_maps
from model.inspection.parameters import parameters_by_part
from model.inspection.shown import check_length, draw_alignment, print_table, sides
from model.layout import WEIGHTS, family, languages
from model.transformer import Transformer


def inspect_checkpoint(arguments: argparse.Namespace) -> None:
    """Print and draw the parts that the command line selects.

    Args:
        arguments: the arguments of `dragoman inspect`, whose `model` is the folder of a checkpoint.

    Raises:
        DragomanError: a file is unusable, or a text is too long.
    """
    known = languages(arguments.model)
    heads = _heads_of(arguments.bundle, arguments.model / WEIGHTS) if arguments.bundle else None
    model, tokenizer = load_checkpoint(arguments.model)
    _print_checkpoint(arguments.model, model, known)
    if arguments.positions:
        heatmaps.save(plots.positions_figure(model), arguments.positions)
    if arguments.text:
        _draw_attention(model, tokenizer, known, heads, arguments)


def _heads_of(bundle: Path, weights: Path) -> AlignmentHeads:
    """Read the alignment heads from a bundle that was made from these weights.

    Raises:
        DragomanError: the folder is no bundle, or a bundle of other weights.
    """
    manifest = Manifest.read(bundle)
    if manifest.provenance.checkpoint_sha256 != sha256(weights):
        raise DataError(f"--bundle: {bundle} was made of another checkpoint than {weights.parent}")
    return manifest.alignment


def _print_checkpoint(checkpoint: Path, model: Transformer, known: Languages | None) -> None:
    rows = [("family", family(checkpoint)), *(sides(known) if known else [])]
    rows += [(name, str(value)) for name, value in model.config.model_dump().items() if value is not None]
    print_table(rows)
    counts = parameters_by_part(model)
    print()
    print_table([(part, f"{count:,}") for part, count in [*counts.items(), ("all parameters", sum(counts.values()))]])


def _draw_attention(
    model: Transformer,
    tokenizer: Tokenizer,
    known: Languages | None,
    heads: AlignmentHeads | None,
    arguments: argparse.Namespace,
) -> None:
    """Draw the attention of a checkpoint, and print the translation that is shown."""
    asked = known.told(arguments.source_language or "", arguments.target_language or "") if known else ()
    frame = Frame.of(known, model.config, *asked)
    source_ids, start_ids = frame.around(tokenizer.encode(arguments.text)), frame.start_ids or (model.config.start_id,)
    positions = model.config.max_positions
    check_length("--text", len(source_ids), positions)
    if arguments.translation:
        own = tokenizer.encode_target(arguments.translation)
    else:
        [own] = greedy(model, [source_ids], max_target_tokens=positions - len(start_ids), start_ids=[start_ids])
    target_ids = [*start_ids, *own]
    check_length("--translation", len(target_ids), positions)
    maps = attention_maps(model, source_ids, target_ids)
    pieces = {"source": tokenizer.source_pieces(source_ids), "target": tokenizer.target_pieces(target_ids)}
    if arguments.attention:
        heatmaps.save(plots.attention_figure(maps, pieces, heads), arguments.attention)
    if arguments.alignment:
        assert heads is not None
        [weights] = [each.weights for each in maps if each.is_of_decoder(heads.layer)]
        # A token is chosen one position before the decoder reads it.
        mean = weights[list(heads.heads)].mean(0).numpy()[len(start_ids) - 1 :][: len(own)]
        draw_alignment(mean, pieces["source"], tokenizer.target_pieces(own), arguments.alignment)
    print(f"\n{tokenizer.decode(own)}")
