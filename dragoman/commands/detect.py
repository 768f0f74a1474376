"""The command `dragoman detect`: reads lines, and writes the language of each, or a JSON object with several."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from dragoman.access import Access
from dragoman.answers import DetectedLanguage
from dragoman.arguments import Parser
from dragoman.commands import model_source
from dragoman.commands.lines import CALL_TIMEOUT_S, Chunk, as_unicode, each_chunk, in_calls
from dragoman.errors import DragomanError
from dragoman.exit_codes import EXIT_OK
from dragoman.loading import load

_COMMAND: Final = "detect"

DetectLines = Callable[[list[str]], list[list[DetectedLanguage]]]


def detect(arguments: list[str]) -> int:
    """Detect the languages of the arguments, or of the lines of standard input; returns 0."""
    options, let_in = model_source.parse(build_parser(), arguments)
    with _server(options, let_in) if options.address else _in_process(options) as detect_lines:
        if options.texts:
            texts = as_unicode(_COMMAND, options.texts)
            _write(texts, detect_lines(texts), as_json=options.json)
        else:

            def work(chunk: Chunk) -> None:
                _write(chunk.lines, detect_lines(chunk.lines), as_json=options.json)

            each_chunk(_COMMAND, sys.stdin.buffer, work)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman detect",
        description="Say in which language each argument, or each line of standard input, is: language<TAB>confidence, "
        "from 0 to 1. A line that says nothing about its language, such as one of digits, gives an empty line. "
        "Languages of the models count as more probable than others.",
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="text to look at; default: standard input")
    model_source.add_arguments(parser)
    parser.add_argument("--html", action="store_true", help="the texts are HTML, each line by itself")
    parser.add_argument(
        "--json", action="store_true", help="write a JSON object per line: text, and languages, the best first"
    )
    return parser


@contextmanager
def _server(options: argparse.Namespace, let_in: Access) -> Iterator[DetectLines]:
    mime_type = "text/html" if options.html else ""

    def failed(error: DragomanError) -> list[DetectedLanguage]:
        raise error

    with model_source.connected(options.address, let_in, CALL_TIMEOUT_S) as client:
        yield lambda lines: in_calls(lambda part: client.detect(part, mime_type=mime_type), lines, failed)


@contextmanager
def _in_process(options: argparse.Namespace) -> Iterator[DetectLines]:
    yield load("plugins.offline.in_process:detector")(options.models, html=options.html)


def _write(texts: Sequence[str], found: Sequence[Sequence[DetectedLanguage]], *, as_json: bool) -> None:
    for text, languages in zip(texts, found, strict=True):
        if as_json:
            named = [{"language": each.language, "confidence": round(each.confidence, 4)} for each in languages]
            line = json.dumps({"text": text, "languages": named}, ensure_ascii=False)
        else:
            line = f"{languages[0].language}\t{languages[0].confidence:.4f}" if languages else ""
        sys.stdout.buffer.write(line.encode() + b"\n")
    sys.stdout.flush()
