"""The command `dragoman translate`: lines in, and as many lines or JSON objects out, or the best few of each.

The engine is imported only where it runs: a client of a server needs no onnxruntime.
"""

import argparse
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final, NamedTuple

import grpc
from tqdm import tqdm

from dragoman.access import Access
from dragoman.answers import Translation
from dragoman.arguments import Parser, count, language, whole
from dragoman.client import Client
from dragoman.commands import model_source
from dragoman.errors import AnswerTooLargeError, DragomanError, InvalidRequestError, UnrecognizedError
from dragoman.exit_codes import EXIT_OK
from dragoman.loading import load

EXIT_SOME_FAILED: Final = 1

# What of standard input is translated together; one line may be longer, and is then alone.
_CHUNK_LINES: Final = 512
_CHUNK_BYTES: Final = 262_144
_CALL_TIMEOUT_S: Final = 600.0  # of one chunk, the waiting for a busy server included
_BLOCK_BYTES: Final = 1 << 20
_COMPLAINTS: Final = 5  # about lines that are not UTF-8; the others are counted

TranslateLines = Callable[[list[str]], list[Translation]]


class Chunk(NamedTuple):
    """Some lines of standard input.

    Attributes:
        first: the number of the first of them, from 1.
        lines: without their ends.
    """

    first: int
    lines: list[str]


class _Asked(NamedTuple):
    """What a server is asked for, by the names of the client's arguments."""

    model: str
    source_language: str
    target_language: str
    mime_type: str
    beam_size: int | None
    length_penalty: float | None
    alternatives: int | None
    target_prefix: str
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None


def translate(arguments: list[str]) -> int:
    """Translate the arguments, or standard input.

    Returns:
        0; 1 if some texts could not be translated, and the others were.
    """
    options, let_in = model_source.parse(build_parser(), arguments)
    with _server(options, let_in) if options.address else _in_process(options) as translate_lines:
        output = _Output("text" if options.texts else "line", as_json=options.json, lists=bool(options.alternatives))
        if options.texts:
            # An argument that is not UTF-8 holds lone surrogates, which no tokenizer takes.
            texts = [os.fsencode(text).decode(errors="replace") for text in options.texts]
            output.write(Chunk(1, texts), translate_lines(texts))
        else:
            _translate_stream(sys.stdin.buffer, translate_lines, output)
    return EXIT_SOME_FAILED if output.failed else EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman translate",
        description="Translate the arguments, or standard input: one line in, one line out. A line that cannot be "
        "translated gives an empty line, a line on standard error that names it, and exit code 1 at the end.",
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="text to translate; default: standard input")
    model_source.add_arguments(parser)
    add = parser.add_argument
    add("--model", metavar="NAME", help="name of the model; not needed if only one can be meant")
    add("--from", dest="source", type=language, metavar="CODE", help="source language, such as en")
    add("--to", dest="target", type=language, metavar="CODE", help="target language, such as de")
    add("--html", action="store_true", help="the texts are HTML, each line by itself; tags are kept")
    add("--beam-size", type=count, metavar="N", help="hypotheses to keep at a time; default: as the server is set")
    add(
        "--length-penalty",
        type=float,
        metavar="X",
        help="power of their length in their score; default: 1",
    )
    add(
        "--alternatives",
        type=count,
        metavar="N",
        help="write the best N translations of each text, a line each: number of the text<TAB>score<TAB>translation",
    )
    add("--target-prefix", default="", metavar="TEXT", help="what each translation begins with")
    add("--temperature", type=float, metavar="X", help="draw tokens at random, by scores divided by X; 0.01 to 10")
    add("--top-k", type=whole, metavar="N", help="draw tokens of the N most probable ones")
    add(
        "--top-p",
        type=float,
        metavar="X",
        help="draw tokens of the most probable ones that have probability X together",
    )
    add("--seed", type=whole, metavar="N", help="draw tokens, the same ones for the same N")
    add(
        "--json", action="store_true", help="write a JSON object per line: text, translation, finish_reason, model, ..."
    )
    return parser


def _meant(options: argparse.Namespace) -> tuple[str, str, str]:
    return options.model or "", options.source or "", options.target or ""


@contextmanager
def _server(options: argparse.Namespace, let_in: Access) -> Iterator[TranslateLines]:
    with model_source.connected(options.address, let_in, _CALL_TIMEOUT_S) as client:
        models = model_source.served(client, options.address)
        model = model_source.choose(models, *_meant(options))
        asked = _Asked(
            model=model.name,
            source_language=options.source or "",
            target_language=options.target or "",
            mime_type="text/html" if options.html else "",
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            alternatives=options.alternatives,
            target_prefix=options.target_prefix,
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            seed=options.seed,
        )
        yield lambda lines: _translate_remotely(client, lines, asked)


def _translate_remotely(client: Client, lines: list[str], asked: _Asked) -> list[Translation]:
    """Translate lines in one call, or in several where they are too many or too much for one."""
    try:
        return client.translate(lines, **asked._asdict(), priority="bulk", all_or_nothing=False)
    except DragomanError as error:
        if not _is_too_much(error):
            raise
        if len(lines) == 1:
            return [Translation("", asked.model, 0, 0, "UNSPECIFIED", 0, error=error)]
        half = len(lines) // 2
        return [
            translation
            for part in (lines[:half], lines[half:])
            for translation in _translate_remotely(client, part, asked)
        ]


def _is_too_much(error: DragomanError) -> bool:
    """Tell whether a call of fewer texts, or of smaller ones, would not have failed."""
    if isinstance(error, UnrecognizedError):  # by gRPC itself: a message over its limit
        return error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    if isinstance(error, AnswerTooLargeError):
        return True
    names_texts = any(violation.field == "contents" for violation in error.violations)
    return isinstance(error, InvalidRequestError) and (names_texts or "max_request_bytes" in error.metadata)


@contextmanager
def _in_process(options: argparse.Namespace) -> Iterator[TranslateLines]:
    model, source, target = _meant(options)
    translator = load("service.commands.in_process:translator")
    yield translator(
        options.models,
        model=model,
        source=source,
        target=target,
        html=options.html,
        beam_size=options.beam_size or 0,
        length_penalty=options.length_penalty,
        alternatives=options.alternatives or 0,
        target_prefix=options.target_prefix,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
    )


class _Output:
    """Writes translations to standard output, and what is wrong to standard error.

    Attributes:
        failed: how many texts could not be translated.
    """

    def __init__(self, unit: str, *, as_json: bool, lists: bool) -> None:
        """Begin without a text.

        Args:
            unit: what a text is called.
            as_json: whether a line is a JSON object.
            lists: whether all alternatives are written.
        """
        self._unit = unit
        self._as_json = as_json
        self._lists = lists
        self.failed = 0

    def write(self, chunk: Chunk, translations: list[Translation]) -> None:
        """Write a line for each text, or for each alternative of it, in order."""
        for number, (text, translation) in enumerate(zip(chunk.lines, translations, strict=True), chunk.first):
            if translation.error is not None:
                self.failed += 1
                _complain(f"{self._unit} {number}: {_reason(translation.error)}")
            for line in self._lines(number, text, translation):
                sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.flush()

    def _lines(self, number: int, text: str, translation: Translation) -> Iterator[str]:
        if self._as_json:
            yield json.dumps(_as_dict(text, translation, lists=self._lists), ensure_ascii=False)
        elif not self._lists:
            yield translation.text
        elif translation.error is not None:
            yield f"{number}\t\t"
        else:
            yield from (f"{number}\t{each.score:.6f}\t{each.text}" for each in translation.alternatives)


def _as_dict(text: str, translation: Translation, *, lists: bool) -> dict[str, object]:
    error = translation.error
    described: dict[str, object] = {
        "text": text,
        "translation": translation.text if error is None else None,
        "finish_reason": translation.finish_reason if error is None else None,
        "model": translation.model,
        "source_tokens": translation.source_tokens,
        "target_tokens": translation.target_tokens,
        "error": error and {"reason": error.reason, "message": _reason(error)},
    }
    if translation.seed is not None:
        described["seed"] = translation.seed
    if lists:
        described["alternatives"] = [
            {
                "translation": each.text,
                "score": each.score,
                "mean_log_probability": each.mean_log_probability,
                "finish_reason": each.finish_reason,
            }
            for each in translation.alternatives
        ]
    return described


def _reason(error: DragomanError) -> str:
    """Say what is wrong with one text; a user who gave lines knows no fields of a call."""
    return "; ".join(violation.description for violation in error.violations) or error.message


def _translate_stream(stream: BinaryIO, translate_lines: TranslateLines, output: _Output) -> None:
    """Translate line by line, many at a time; with a progress bar if it takes long and a terminal watches.

    A terminal that shows the translations themselves needs no bar.
    """
    watched = sys.stderr.isatty() and not sys.stdout.isatty()
    total = _count_lines(stream) if watched else None
    chunk_lines = 1 if stream.isatty() else _CHUNK_LINES
    with tqdm(total=total, unit="line", delay=2, disable=not watched) as progress:
        for chunk in _chunks(stream, chunk_lines):
            output.write(chunk, translate_lines(chunk.lines))
            progress.update(len(chunk.lines))


def _count_lines(stream: BinaryIO) -> int | None:
    """Count the lines of a file ahead; None where that cannot be known."""
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return None
    start, count, block = stream.tell(), 0, b""
    while more := stream.read(_BLOCK_BYTES):
        block = more
        count += block.count(b"\n")
    stream.seek(start)
    return count + (not block.endswith(b"\n") and bool(block))


def _chunks(stream: Iterable[bytes], count: int) -> Iterator[Chunk]:
    """Yield lines: at most `count` at a time, and at most `_CHUNK_BYTES` where there are several."""
    chunk, size_bytes, not_utf8 = Chunk(1, []), 0, 0
    for number, line in enumerate(stream, start=1):
        if chunk.lines and size_bytes + len(line) > _CHUNK_BYTES:
            yield chunk
            chunk, size_bytes = Chunk(number, []), 0
        text, good = _decoded(line.removesuffix(b"\n"))
        not_utf8 += not good
        if not good and not_utf8 <= _COMPLAINTS:
            _complain(f"line {number} is not UTF-8; U+FFFD stands for bad bytes")
        chunk.lines.append(text)
        size_bytes += len(line)
        if len(chunk.lines) == count:  # at once: on a terminal somebody waits for the answer to this line
            yield chunk
            chunk, size_bytes = Chunk(number + 1, []), 0
    if chunk.lines:
        yield chunk
    if not_utf8 > _COMPLAINTS:
        _complain(f"{not_utf8} lines are not UTF-8, the first {_COMPLAINTS} of them are named above")


def _decoded(line: bytes) -> tuple[str, bool]:
    """Read a line, and tell whether it was good."""
    try:
        return line.decode(), True
    except UnicodeDecodeError:
        return line.decode(errors="replace"), False


def _complain(message: str) -> None:
    tqdm.write(f"dragoman translate: {message}", file=sys.stderr)
