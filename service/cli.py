"""The commands serve, translate, models and api-key: arguments to a call.

The engine is imported only where it runs: a client of a server needs no onnxruntime.
"""

import argparse
import json
import os
import resource
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from tqdm import tqdm

from dragoman import access
from dragoman.access import Access
from dragoman.answers import Model
from dragoman.arguments import Parser
from dragoman.bundle import Bundle, Manifest, find_bundles
from dragoman.client import Client
from dragoman.errors import BundleError, ConcurrencyLimitedError, QueueFullError, RateLimitedError
from dragoman.tokenizer import Tokenizer
from service import api_keys, capacity
from service.mailbox import Mailbox
from service.metrics import KV_CACHE_FORMULA, Metrics
from service.settings import GROUPS, PREFIX, Settings, SettingsError, load
from service.translator import Limits, Translator

EXIT_OK: Final = 0
EXIT_ERROR: Final = 2

_DESCRIPTORS: Final = 64  # a server alone holds some 20; each connection needs one more

# What of standard input is translated together; one line may be longer.
_CHUNK_LINES: Final = 512
_CHUNK_BYTES: Final = 262_144
_CALL_TIMEOUT_S: Final = 600.0  # of one chunk, by a server that has others to serve
_DEFAULT_MODELS: Final = Settings.model_fields["models"].default

_COLUMNS: Final = (
    "NAME", "FROM", "TO", "PRECISION", "MAX SOURCE", "MAX TARGET", "VOCABULARY", "PARAMETERS"
)  # fmt: skip

_BUSY: Final = (QueueFullError, RateLimitedError, ConcurrencyLimitedError)

TranslateLines = Callable[[list[str]], list[str]]


def serve(arguments: list[str]) -> int:
    """Serve models over gRPC until SIGTERM or SIGINT."""
    parser = Parser("dragoman serve", description="Serve models over gRPC until SIGTERM or SIGINT.")
    group = parser.add_argument_group("settings")
    for name, field in Settings.model_fields.items():
        if name in GROUPS:
            group = parser.add_argument_group(GROUPS[name])
        _add_setting(group, name, field)
    parser.add_argument("--print-config", action="store_true", help="print the effective settings and exit")
    flags = vars(parser.parse_args(arguments))
    print_config = flags.pop("print_config")
    settings = load(flags)
    if print_config:
        print(json.dumps({**settings.model_dump(mode="json"), "kv_cache": _kv_cache(settings)}, indent=2))
        return EXIT_OK
    _check_descriptors()
    from service import server

    return server.serve(settings)


def _check_descriptors() -> None:
    """Refuse to start with so few file descriptors that Python, gRPC or onnxruntime would fail first.

    Raises:
        SettingsError: there are too few.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < _DESCRIPTORS:
        raise SettingsError(f"at least {_DESCRIPTORS} file descriptors are needed, the limit is {limit} (ulimit -n)")


def _add_setting(group: argparse._ArgumentGroup, name: str, field: FieldInfo) -> None:
    """Add the flag of a setting, whose value is checked later, with that of its variable."""
    flag, default = f"--{name.replace('_', '-')}", "none" if field.default == "" else field.default
    text = f"{field.description} (default {default}; {PREFIX}{name.upper()})".replace("%", "%%")
    if field.annotation is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text)
        return
    choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else None
    metavar = None if choices else name.rpartition("_")[2].upper()
    group.add_argument(flag, default=argparse.SUPPRESS, choices=choices, metavar=metavar, help=text)


def translate(arguments: list[str]) -> int:
    """Translate the arguments, or standard input, one line in and one line out."""
    parser = Parser(
        "dragoman translate",
        description="Translate the arguments, or standard input: one line in, one line out.",
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="what to translate; standard input if none")
    _add_models_arguments(parser)
    parser.add_argument("--model", default="", help="name of the model; the first by name without")
    options, let_in = _parse_place(parser, arguments)
    translate_lines = _remote(options, let_in) if options.address else _in_process(options)
    if options.texts:
        # An argument that is not UTF-8 holds lone surrogates, which no tokenizer takes.
        texts = [os.fsencode(text).decode(errors="replace") for text in options.texts]
        _write(translate_lines(texts))
    else:
        _translate_stream(sys.stdin.buffer, translate_lines)
    return EXIT_OK


def models(arguments: list[str]) -> int:
    """List the models of a folder or of a server."""
    parser = Parser("dragoman models", description="List the models of a folder or of a server.")
    _add_models_arguments(parser)
    options, let_in = _parse_place(parser, arguments)
    rows = _models_of_server(options.address, let_in) if options.address else _models_of_folder(options.models)
    _write(_table([_COLUMNS, *rows]))
    return EXIT_OK


def api_key(arguments: list[str]) -> int:
    """Make an API key: its line goes to standard output, the key itself to standard error and nowhere else."""
    parser = Parser(
        "dragoman api-key",
        description="Make an API key. The line for the server's file goes to standard output "
        "(dragoman api-key alice >> keys.toml), the key to standard error; it is kept nowhere.",
    )
    parser.add_argument("name", help="whose key it is: up to 64 letters, digits, _ and -; shown in metrics")
    parser.add_argument("--requests-per-s", type=float, help="calls a second in the long run (any number without)")
    parser.add_argument("--burst", type=int, help="calls at once after a pause (those of one second without)")
    parser.add_argument("--concurrent-requests", type=int, help="calls at a time (any number without)")
    limits = vars(parser.parse_args(arguments))
    name = limits.pop("name")
    key = api_keys.generate()
    _write([api_keys.line_of(name, api_keys.entry_of(key, **limits))])
    print(f"the key, shown only this once: {key}", file=sys.stderr)
    return EXIT_OK


def _add_models_arguments(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--models",
        type=Path,
        default=Path(os.environ.get(f"{PREFIX}MODELS") or _DEFAULT_MODELS),
        help=f"a bundle, or a folder with bundles (default {_DEFAULT_MODELS}; {PREFIX}MODELS)",
    )
    place.add_argument("--address", help="host:port of a server to ask, instead of working in this process")
    access.add_arguments(parser)


def _parse_place(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[argparse.Namespace, Access]:
    options = parser.parse_args(arguments)
    if not options.address and (flag := access.given(options)):
        parser.error(f"argument {flag}: needs --address")
    return options, access.of(parser, options)


def _kv_cache(settings: Settings) -> dict[str, Any]:
    """How much memory the slots of each model will take, or why it cannot be served."""
    models: dict[str, Any] = {}
    for path in find_bundles(settings.models):
        try:
            manifest = Manifest.read(path)
            models[manifest.name] = capacity.describe(manifest, settings)
        except BundleError as error:
            models[path.name] = {"error": str(error)}
    return {"formula": KV_CACHE_FORMULA, "models": models}


def _remote(options: argparse.Namespace, let_in: Access) -> TranslateLines:
    client = Client(
        options.address, timeout_s=_CALL_TIMEOUT_S, api_key=let_in.api_key, credentials=let_in.credentials()
    )
    model = options.model or client.list_models()[0].name

    def translate_lines(lines: list[str]) -> list[str]:
        while True:
            try:
                return [translation.text for translation in client.translate(lines, model=model, priority="bulk")]
            except _BUSY as error:  # there is no hurry
                time.sleep(error.retry_delay_s or 1.0)

    return translate_lines


def _in_process(options: argparse.Namespace) -> TranslateLines:
    from service.engine import Engine

    settings = load(other_variables={access.API_KEY_VARIABLE})
    bundle = _choose_bundle(options.models, options.model)
    engine = Engine(
        bundle,
        Mailbox(settings.queue_source_tokens),
        Metrics(),
        device=settings.device,
        threads=settings.decoding_threads(),
        slots=capacity.slots_of(bundle.manifest, settings),
    )
    translator = Translator(bundle.manifest, Tokenizer.open(bundle.path), Limits.of(settings))

    def translate_lines(lines: list[str]) -> list[str]:
        return [result.text for result in translator.translate_offline(engine, lines)]

    return translate_lines


def _choose_bundle(folder: Path, name: str) -> Bundle:
    """Open the bundle of this name, or the first by name."""
    bundles = _open_bundles(folder)
    for bundle in bundles:
        if name in ("", bundle.manifest.name):
            return bundle
    names = ", ".join(bundle.manifest.name for bundle in bundles)
    raise BundleError(f"{folder}: no model {name!r}; there are: {names}")


def _open_bundles(folder: Path) -> list[Bundle]:
    bundles = sorted(map(Bundle.open, find_bundles(folder)), key=lambda bundle: bundle.manifest.name)
    if not bundles:
        raise BundleError(f"{folder}: there is no bundle (no bundle.json in or below it)")
    return bundles


def _translate_stream(stream: BinaryIO, translate_lines: TranslateLines) -> None:
    """Translate line by line, many at a time; with a progress bar if it takes long and a terminal watches."""
    size = os.fstat(stream.fileno())
    total = size.st_size if stat.S_ISREG(size.st_mode) else None
    watched = sys.stderr.isatty() and not sys.stdout.isatty()
    chunk_lines = 1 if stream.isatty() else _CHUNK_LINES
    with tqdm(total=total, unit="B", unit_scale=True, delay=2, disable=not watched) as progress:
        for lines, size_bytes in _chunks(stream, chunk_lines):
            _write(translate_lines(lines))
            sys.stdout.flush()
            progress.update(size_bytes)


def _chunks(stream: Iterable[bytes], count: int) -> Iterator[tuple[list[str], int]]:
    """Yield lines without their ends, and their bytes, so many or so large at a time."""
    lines: list[str] = []
    size_bytes = 0
    for number, line in enumerate(stream, start=1):
        lines.append(_decoded(line.removesuffix(b"\n"), number))
        size_bytes += len(line)
        if len(lines) == count or size_bytes >= _CHUNK_BYTES:
            yield lines, size_bytes
            lines, size_bytes = [], 0
    if lines:
        yield lines, size_bytes


def _decoded(line: bytes, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        print(f"dragoman translate: line {number} is not UTF-8; U+FFFD stands for bad bytes", file=sys.stderr)
        return line.decode(errors="replace")


def _models_of_folder(folder: Path) -> list[tuple[Any, ...]]:
    manifests = [bundle.manifest for bundle in _open_bundles(folder)]
    return [(*_row(manifest), manifest.parameters) for manifest in manifests]


def _models_of_server(address: str, let_in: Access) -> list[tuple[Any, ...]]:
    with Client(address, api_key=let_in.api_key, credentials=let_in.credentials()) as client:
        return [(*_row(model), "-") for model in client.list_models()]


def _row(model: Manifest | Model) -> tuple[Any, ...]:
    """Fields of a manifest, or of a model of the client: they have the same names."""
    return (
        model.name,
        model.source_language,
        model.target_language,
        model.precision,
        model.max_source_tokens,
        model.max_target_tokens,
        model.vocabulary_size,
    )


def _table(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _write(lines: Iterable[str]) -> None:
    sys.stdout.buffer.writelines(line.encode() + b"\n" for line in lines)
