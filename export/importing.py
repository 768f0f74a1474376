"""The command `dragoman import`; its help and its argument errors need no torch."""

import argparse
import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from dragoman.arguments import Parser
from dragoman.bundle import Precision
from dragoman.errors import DataError
from dragoman.exit_codes import EXIT_OK
from export.cli import NOTE_HELP, export, model_name, note, run, say
from model.layout import IMPORT
from model.replacing import check_target
from plugins.library.fetching import LICENCES, Fetched, fetch

if TYPE_CHECKING:
    from model.importing.run import Imported

BUNDLE: Final = "bundle"  # folder of the bundle inside that of the checkpoint
_MOST_SHOWN: Final = 12
_LIMITS: Final = {"source": 128, "target": 256}  # as in dragoman export; fewer if the model has fewer positions


def import_(argv: list[str]) -> int:
    """Make a checkpoint from a foreign model, and a bundle from the checkpoint if requested.

    Returns:
        The exit code: 0, or 130 after Ctrl-C.

    Raises:
        DragomanError: the model cannot be imported, or its bundle fails the parity check.
    """
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.bundle is None and (arguments.name or arguments.note or arguments.data):
        parser.error("--name, --note and --data are for the bundle: give --bundle")
    if arguments.data and not arguments.data.is_file():
        raise DataError(f"{arguments.data}: no such file")
    check_target(arguments.out, IMPORT, [Path(arguments.source), *filter(None, [arguments.data])])
    return run("import", lambda: _run(arguments))


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman import",
        description="Make a checkpoint of a model of Hugging Face or CTranslate2.",
    )
    add = parser.add_argument
    add(
        "source",
        metavar="SOURCE",
        help="folder of the model, its name on the hub, such as Helsinki-NLP/opus-mt-en-de, or of Firefox, such as "
        "firefox:en-de",
    )
    add(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help=f"of the checkpoint; the bundle goes to FOLDER/{BUNDLE}",
    )
    add("--bundle", choices=get_args(Precision), help="make a bundle as well, in this precision")
    add("--name", type=model_name, help="name of the bundle's model (default: as dragoman export)")
    add("--note", type=note, default="", metavar="TEXT", help=NOTE_HELP)
    add("--data", type=Path, metavar="FILE", help="sentences to calibrate the bundle and to compare it on")
    add_codes = partial(add, type=_codes, default=(), metavar="CODE[,CODE]")
    add_codes("--source-language", help="languages that it translates from, where its files do not say them")
    add_codes("--target-language", help="languages that it translates into, likewise")
    add_codes("--languages", help="of its languages only these")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    fetched = fetch(arguments.source, say)
    imported = _import(arguments, fetched)
    code = _export(arguments, imported) if arguments.bundle else EXIT_OK
    if code == EXIT_OK and fetched.is_spare:
        shutil.rmtree(fetched.folder)
    return code


def _codes(text: str) -> tuple[str, ...]:
    codes = tuple(code.strip() for code in text.split(","))
    if not all(codes):
        raise argparse.ArgumentTypeError(f"must be codes of languages with commas between, is {text!r}")
    return codes


def _import(arguments: argparse.Namespace, fetched: Fetched) -> "Imported":
    """Write the checkpoint, and describe it."""
    start_s = time.monotonic()
    from model.importing.family import Wanted
    from model.importing.languages import listed
    from model.importing.run import import_folder

    wanted = Wanted(arguments.source_language, arguments.target_language, arguments.languages)
    imported = import_folder(fetched.folder, arguments.out, wanted, say, fetched.name, fetched.origin)
    _keep_licence(fetched, arguments.out)
    for warning in imported.warnings:
        print(f"warning: {warning}")
    config = imported.config
    pieces = f"{config.target_vocabulary_size:,} pieces"
    if not config.share_embeddings:
        pieces = f"{config.source_vocabulary_size:,} and {pieces}"
    print(
        f"{imported.family}: {config.encoder_layers} + {config.decoder_layers} layers of width {config.d_model}, "
        f"{pieces}, {imported.parameters / 1e6:,.1f} million parameters"
    )
    sources, targets = (listed(side, _MOST_SHOWN) for side in (imported.languages.sources, imported.languages.targets))
    print(f"languages: {sources} to {targets}")
    print(f"licence: {fetched.origin['licence'] or 'its files do not say it'}")
    print(f"wrote {arguments.out}, {_megabytes(arguments.out)}, in {time.monotonic() - start_s:.1f} s")
    return imported


def _keep_licence(fetched: Fetched, out: Path) -> None:
    """Copy the licence files of the model beside the checkpoint."""
    for file in (file for pattern in LICENCES for file in fetched.folder.glob(pattern) if file.is_file()):
        shutil.copyfile(file, out / file.name)


def _export(arguments: argparse.Namespace, imported: "Imported") -> int:
    """Make the bundle with the export command for any checkpoint."""
    out = arguments.out / BUNDLE
    argv = [str(arguments.out), "--out", str(out), "--precision", arguments.bundle]
    positions = imported.config.max_positions
    room = {"source": positions, "target": positions - imported.languages.longest_target_prefix}
    for side, tokens in _LIMITS.items():
        argv += [f"--max-{side}-tokens", str(min(tokens, room[side]))]
    argv += ["--name", arguments.name] if arguments.name else []
    argv += [f"--note={arguments.note}"] if arguments.note else []
    argv += ["--data", str(arguments.data)] if arguments.data else []
    code = export(argv)
    if code == EXIT_OK:
        print(f"the bundle has {_megabytes(out)}; serve it: dragoman serve --models {out}")
    return code


def _megabytes(folder: Path) -> str:
    return f"{sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) / 1e6:,.1f} MB"
