"""The commands `dragoman export` and `dragoman evaluate`; only the evaluation of a checkpoint needs torch."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from pydantic import ValidationError

from dragoman.arguments import Parser, language, output_file
from dragoman.bundle import MANIFEST, MAX_NOTE, NAME_PATTERN, Precision, find_bundles
from dragoman.errors import DataError
from dragoman.exit_codes import EXIT_INTERRUPTED, EXIT_OK
from dragoman.invalid import describe
from dragoman.language_marks import Languages
from model.layout import CONFIG, LANGUAGES, PARITY, PARITY_PAIRS, is_checkpoint, languages
from model.replacing import check_target

if TYPE_CHECKING:
    from model.corpus import Corpus

NOTE_HELP: Final = f"what the model is for, in one line of at most {MAX_NOTE} characters, shown wherever it is listed"


def export(argv: list[str]) -> int:
    """Turn a checkpoint into a bundle.

    Returns:
        The exit code: 0, or 130 after Ctrl-C.

    Raises:
        DragomanError: an argument or file is unusable, or the bundle fails the parity check.
    """
    parser = build_export_parser()
    arguments = parser.parse_args(argv)
    if (kind := kind_of(arguments.checkpoint)) != "checkpoint":
        raise DataError(f"{arguments.checkpoint}: is a {kind}, not a checkpoint")
    check_target(arguments.out, MANIFEST, [arguments.checkpoint, *filter(None, [arguments.data])])
    arguments.languages = _languages(parser, arguments)
    return run("export", lambda: _export(arguments))


def evaluate(argv: list[str]) -> int:
    """Score a checkpoint or a bundle on a corpus.

    Returns:
        The exit code: 0, or 130 after Ctrl-C.

    Raises:
        DragomanError: a file is unusable.
    """
    arguments = build_evaluate_parser().parse_args(argv)
    kind = kind_of(arguments.model)
    return run("evaluate", lambda: _evaluate(arguments, is_bundle=kind == "bundle"))


def build_export_parser() -> Parser:
    """Build the parser of `dragoman export`."""
    parser = Parser("dragoman export", description="Turn a checkpoint into a bundle.")
    add = parser.add_argument
    add("checkpoint", type=Path, help="folder of the checkpoint")
    add("--out", type=Path, required=True, metavar="BUNDLE", help="folder of the bundle")
    add("--precision", choices=get_args(Precision), default="int8", help="default: int8")
    recorded = "default: what dragoman train recorded in the checkpoint, else required"
    add("--source-language", type=language, metavar="CODE", help=f"BCP-47 code, such as en ({recorded})")
    add("--target-language", type=language, metavar="CODE", help=f"BCP-47 code, such as de ({recorded})")
    add("--name", type=model_name, help="name of the model (default: SOURCE-TARGET, such as en-de)")
    add("--note", type=note, default="", metavar="TEXT", help=NOTE_HELP)
    add("--max-source-tokens", type=_tokens, default=128, metavar="N", help="limit of a segment (default: 128)")
    add("--max-target-tokens", type=_tokens, default=256, metavar="N", help="limit of its translation (default: 256)")
    add(
        "--data",
        type=Path,
        metavar="FILE",
        help=f"source<TAB>target lines, or lines of source text, of which {PARITY_PAIRS} are compared "
        f"(default: {PARITY} of the checkpoint, else what comes with Dragoman, or is drawn from the vocabulary)",
    )
    return parser


def build_evaluate_parser() -> Parser:
    """Build the parser of `dragoman evaluate`."""
    parser = Parser("dragoman evaluate", description="Greedy BLEU and chrF of a model.")
    parser.add_argument("model", type=Path, help="folder of a checkpoint (by PyTorch) or bundle (by the engine)")
    parser.add_argument("--data", type=Path, required=True, metavar="FILE", help="source<TAB>target lines")
    for side in ("source", "target"):
        which = "which of them to use, where the model has several"
        parser.add_argument(f"--{side}-language", type=language, metavar="CODE", help=which)
    write = "write the translations here, one per line"
    parser.add_argument("--translations", type=output_file, metavar="FILE", help=write)
    return parser


def model_name(text: str) -> str:
    """Check the name of a model; raises ArgumentTypeError for an invalid one."""
    if not NAME_PATTERN.fullmatch(text):
        raise argparse.ArgumentTypeError(f"must be 1 to 64 letters, digits and any of '._-', is {text!r}")
    return text


def note(text: str) -> str:
    """Check the purpose of a model; raises ArgumentTypeError if it is too long, or more than one line."""
    if len(text) > MAX_NOTE or not text.isprintable():
        length = f"{len(text)} characters" if len(text) > MAX_NOTE else repr(text)
        raise argparse.ArgumentTypeError(f"must be one line of at most {MAX_NOTE} characters, is {length}")
    return text


def _tokens(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) > 1):
        raise argparse.ArgumentTypeError(f"must be a whole number above 1, is {text!r}")
    return int(text)


def kind_of(folder: Path) -> str:
    """Tell whether a folder is a "bundle" or a "checkpoint".

    Raises:
        DataError: the folder is neither; the message lists those below it.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    if (folder / MANIFEST).exists():
        return "bundle"
    if is_checkpoint(folder):
        return "checkpoint"
    below = [*find_bundles(folder), *sorted(file.parent for file in folder.glob(f"*/{CONFIG}"))]
    hint = f"; in it there are: {', '.join(map(str, below))}" if below else ""
    raise DataError(f"{folder}: neither a checkpoint ({CONFIG}) nor a bundle ({MANIFEST}){hint}")


def _languages(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Languages:
    """Take from the checkpoint the languages that no flag gives; exit with code 2 if it does not know them either."""
    known = languages(arguments.checkpoint)
    if known is not None and not known.is_pair:
        if arguments.source_language or arguments.target_language:
            parser.error(f"--source-language, --target-language: the checkpoint has many, see {LANGUAGES}")
        if arguments.data:
            parser.error("--data: the checkpoint has many languages, and the file does not say in which a line is")
        return known
    source = arguments.source_language or (known.sources[0] if known else "")
    target = arguments.target_language or (known.targets[0] if known else "")
    missing = [flag for flag, code in (("source", source), ("target", target)) if not code]
    if missing:
        flags = " and ".join(f"--{side}-language" for side in missing)
        parser.error(f"{flags} needed: the checkpoint does not say for which languages it was trained")
    if source.lower() == target.lower():
        parser.error(f"--source-language, --target-language: both are {source}")
    return Languages.pair(source, target) if known is None else _renamed(known, source, target)


def _renamed(known: Languages, source: str, target: str) -> Languages:
    """Give other codes to a pair, and keep its marks."""
    names = {known.sources[0]: source, known.targets[0]: target}
    marks = {names[code]: marks for code, marks in known.marks.items()}
    return Languages(sources=(source,), targets=(target,), marks=marks)


def _default_name(languages: Languages) -> str:
    """Name a model by its languages, such as en-de, or mul-en if there are many sources."""
    sides = (languages.sources, languages.targets)
    return "-".join(side[0] if len(side) == 1 else "mul" for side in sides)


def run(command: str, work: Callable[[], int | None]) -> int:
    """Run a command that writes all of its result or nothing; returns its exit code, or 0 if `work` returns none."""
    try:
        return work() or EXIT_OK
    except KeyboardInterrupt:
        print(f"dragoman {command}: interrupted; nothing was written", file=sys.stderr)
        return EXIT_INTERRUPTED


def _export(arguments: argparse.Namespace) -> None:
    start_s = time.monotonic()
    from export.write import Target, cure, export_bundle
    from model.corpus import Corpus, read_corpus, read_sentences

    recorded = arguments.checkpoint / PARITY
    corpus = None
    if arguments.data or recorded.exists():
        read = read_sentences(arguments.data) if arguments.data else read_corpus(recorded)
        corpus = Corpus(read.sources[:PARITY_PAIRS], read.targets[:PARITY_PAIRS], [])
    target = Target(
        arguments.name or _default_name(arguments.languages),
        arguments.languages,
        arguments.precision,
        arguments.max_source_tokens,
        arguments.max_target_tokens,
        arguments.note,
    )
    try:
        parity = export_bundle(arguments.checkpoint, arguments.out, target, corpus, say)
    except ValidationError as error:
        raise DataError(describe(error)) from error
    print(f"parity {parity}")
    if parity.doubts:
        print(f"warning: {parity.doubts}; {cure(target, chosen=corpus is not None)}")
    print(f"wrote {arguments.out} in {time.monotonic() - start_s:.1f} s")


def _evaluate(arguments: argparse.Namespace, *, is_bundle: bool) -> None:
    from model.corpus import read_corpus
    from model.scores import score

    corpus = read_corpus(arguments.data)
    start_s = time.monotonic()
    translate = _with_bundle if is_bundle else _with_checkpoint
    translations = translate(arguments, corpus, arguments.source_language or "", arguments.target_language or "")
    seconds = time.monotonic() - start_s
    result = asdict(score(translations, corpus.targets))
    print(json.dumps({"model": str(arguments.model), **result, "seconds": round(seconds, 2)}, indent=2))
    if arguments.translations:
        arguments.translations.write_text("".join(f"{line}\n" for line in translations), encoding="utf-8")


def _with_checkpoint(arguments: argparse.Namespace, corpus: "Corpus", source: str, target: str) -> list[str]:
    from dragoman.framing import Frame
    from model.checkpoint import load_checkpoint
    from model.evaluate import check_lengths, translate

    known = languages(arguments.model)
    asked = known.told(source, target) if known else ()
    model, tokenizer = load_checkpoint(arguments.model)
    frame = Frame.of(known, model.config, *asked)
    check_lengths(arguments.data, corpus, tokenizer, model.config, frame)
    return translate(model, tokenizer, corpus.sources, frame)


def _with_bundle(arguments: argparse.Namespace, corpus: "Corpus", source: str, target: str) -> list[str]:
    from dragoman.bundle import Bundle
    from export.parity import SLOTS
    from plugins.offline.engine import OfflineEngine
    from plugins.offline.texts import translate_offline
    from service.options import RequestOptions
    from service.text.translator import Translator

    bundle = Bundle.open(arguments.model)
    source, target = bundle.manifest.languages.told(source, target)
    translator = Translator(bundle.manifest, bundle.tokenizer())
    options = RequestOptions(source_language=source, target_language=target)
    with closing(OfflineEngine(bundle, slots=SLOTS)) as engine:
        return [result.text for result in translate_offline(translator, engine, corpus.sources, options)]


def say(message: str) -> None:
    """Tell the user about a phase before it begins."""
    print(message, flush=True)
