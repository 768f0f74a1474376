"""The command `dragoman translate`: translates lines into lines, JSON objects or alternatives; or a document.

The engine is imported only when the model runs here: a client of a server needs no onnxruntime.
"""

import argparse
import re
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from dragoman.access import Access
from dragoman.answers import Model, Translation
from dragoman.arguments import Parser, count, number, source_language, whole
from dragoman.commands import document_files, model_source
from dragoman.commands.lines import (
    CALL_TIMEOUT_S,
    EXIT_SOME_FAILED,
    Chunk,
    as_unicode,
    complain,
    each_chunk,
    in_calls,
)
from dragoman.commands.translations import Output, Shown, untranslated
from dragoman.errors import DataError, InvalidRequestError, UnknownLanguagePairError
from dragoman.exit_codes import EXIT_OK
from dragoman.glossary import MAX_CALL_ENTRIES, SUFFIXES, GlossaryEntry, GlossaryFile
from dragoman.language import AUTO, covers, pair, several
from dragoman.loading import load

_COMMAND: Final = "translate"
_SEED_BITS: Final = 32
_LINE_BREAKS: Final = re.compile(r"[\r\n]")  # end a line of the output

# Options of the command with the names of `dragoman.options.Options`.
_SAME_NAMES: Final = (
    *("beam_size", "length_penalty", "alternatives", "target_prefix", "temperature", "top_k", "top_p", "seed"),
    *("alignments", "quality_estimate", "protect_placeholders"),
)

TranslateLines = Callable[[list[str]], list[Translation]]


class _Terms(NamedTuple):
    """The values of `--glossary`: the content of files by their paths, and the names of stored glossaries."""

    files: Mapping[str, GlossaryFile]
    names: Sequence[str]

    @property
    def entries(self) -> list[GlossaryEntry]:
        """The terms of all files."""
        return [entry for file in self.files.values() for entry in file.entries]

    @property
    def languages(self) -> str:
        """What the files are for, for messages; "": any languages."""
        return "; ".join(
            f"{path}: is for {pair(file.source_language, file.target_language)}"
            for path, file in self.files.items()
            if file.source_language or file.target_language
        )


def translate(arguments: list[str]) -> int:
    """Translate the arguments, or standard input.

    Returns:
        0; 1 if some texts could not be translated; all others were.
    """
    parser = build_parser()
    options, let_in = model_source.parse(parser, arguments)
    document_files.check(parser, options)
    if options.alignments and options.html:
        parser.error("argument --alignments: not with --html")
    if options.alignments and options.alternatives and not options.json:
        parser.error("argument --alignments: together with --alternatives it needs --json")
    if options.alternatives and not options.json and any(map(_LINE_BREAKS.search, options.texts)):
        parser.error("argument --alternatives: a text with a line break needs --json")
    if options.quality_estimate and not options.json:
        parser.error("argument --quality-estimate: it needs --json")
    asks_for_draws = any(value is not None for value in (options.temperature, options.top_k, options.top_p))
    is_seeded_here = asks_for_draws and options.seed is None
    if is_seeded_here:
        options.seed = secrets.randbits(_SEED_BITS)  # one seed for all lines: each call would draw its own
    if options.file:
        document = document_files.read(options.file, options.source or "", options.target or "")
        document_files.check_draws(parser, options, document)
        options.html = True
        options.protect_placeholders |= document.protects_placeholders
        code = document_files.translate(document, options, _place(options, let_in))
    else:
        code = _translate_lines(options, let_in)
    if is_seeded_here and not options.json:
        complain(_COMMAND, f"--seed {options.seed} draws the same again")
    return code


def _translate_lines(options: argparse.Namespace, let_in: Access) -> int:
    with _place(options, let_in) as translate_lines:
        misses = bool(any(options.glossary) or options.protect_placeholders)
        shown = Shown(
            as_json=options.json,
            alternatives=bool(options.alternatives),
            alignments=options.alignments,
            misses=misses,
            languages=options.source == AUTO,
            qualities=options.quality_estimate,
        )
        output = Output("text" if options.texts else "line", shown)
        if options.texts:
            document_files.tell_of_one(options.texts)
            texts = as_unicode(_COMMAND, options.texts)
            output.write(Chunk(1, texts), translate_lines(texts))
        else:
            each_chunk(_COMMAND, sys.stdin.buffer, lambda chunk: output.write(chunk, translate_lines(chunk.lines)))
    return EXIT_SOME_FAILED if output.failed else EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman translate",
        description="Translate the arguments, or standard input: one line in, one line out; or a document, with "
        "--file. A line that cannot be translated gives an empty line, a line on standard error that names it, and "
        "exit code 1 at the end.",
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="text to translate; default: standard input")
    document_files.add_arguments(parser)
    model_source.add_arguments(parser)
    model_source.add_choice(
        parser,
        source_language,
        "source language, such as en; auto: detect that of each text; without it, --to or --model decides: the only "
        "model that fits translates, and nothing is detected",
    )
    add = parser.add_argument
    add("--html", action="store_true", help="the texts are HTML, each line by itself; tags are kept")
    add("--beam-size", type=count, metavar="N", help="hypotheses to keep at a time; default: as the server is set")
    add(
        "--length-penalty",
        type=number,
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
    add("--temperature", type=number, metavar="X", help="draw tokens at random, by scores divided by X; 0.01 to 10")
    add("--top-k", type=whole, metavar="N", help="draw tokens of the N most probable ones")
    add(
        "--top-p",
        type=number,
        metavar="X",
        help="draw tokens of the most probable ones that have probability X together",
    )
    add(
        "--seed",
        type=whole,
        metavar="N",
        help="draw tokens, the same ones for the same N; where tokens are drawn without it, a line on standard error "
        "says which was taken, or the JSON object",
    )
    add(
        "--alignments",
        action="store_true",
        help="write which words became which, a line each: number of the text<TAB>word<TAB>its translation<TAB>weight",
    )
    add(
        "--quality-estimate",
        action="store_true",
        help="with --json: say how probable it is that a reader accepts the translation, and that of each sentence",
    )
    add(
        "--glossary",
        action="append",
        default=[],
        metavar="FILE_OR_NAME",
        help="terms with given translations: a file (.csv, .tsv, .tmx), or the name of a stored glossary; may be given "
        "several times",
    )
    add(
        "--protect-placeholders",
        action="store_true",
        help="keep placeholders such as {name} and %%s, URLs, addresses of e-mail and emoji as they are",
    )
    add(
        "--json", action="store_true", help="write a JSON object per line: text, translation, finish_reason, model, ..."
    )
    return parser


@contextmanager
def _place(options: argparse.Namespace, let_in: Access) -> Iterator[TranslateLines]:
    terms = _terms(options.glossary)
    _take_languages(options, terms)
    try:
        with _server(options, let_in, terms) if options.address else _in_process(options, terms) as translate_lines:
            yield translate_lines
    except UnknownLanguagePairError as error:
        if not terms.languages:
            raise
        raise UnknownLanguagePairError(f"{terms.languages}; {error.message}") from error


def _take_languages(options: argparse.Namespace, terms: _Terms) -> None:
    """Take the languages of the glossaries where the arguments name none.

    Raises:
        InvalidRequestError: the arguments, or a glossary before, name other languages than a glossary.
    """
    who = "--from and --to say"
    for path, (_, source, target) in terms.files.items():
        given = pair(options.source, options.target)
        options.source, options.target = options.source or source, options.target or target
        if not (_fits(source, options.source) and _fits(target, options.target)):
            raise InvalidRequestError(f"{path}: is for {pair(source, target)}, {who} {given}")
        who = "--from, --to and the glossaries before say"


def _fits(own: str, asked: str) -> bool:
    """Tell whether a glossary's language and the requested one are equal, or one is a variant of the other."""
    return not own or covers(own, asked) or covers(asked, own)


@contextmanager
def _server(options: argparse.Namespace, let_in: Access, terms: _Terms) -> Iterator[TranslateLines]:
    with model_source.connected(options.address, let_in, CALL_TIMEOUT_S) as client:
        models = model_source.served(client, options.address)
        model, source, target = model_source.chosen(options)
        if model_source.detects(models, model, source, target):
            source = AUTO
            _check_target(models, model, target)
        else:
            model = model_source.choose(models, model, source, target).name
        asked = _asked(options, terms) | {"model": model, "source_language": source, "target_language": target}
        mime_type = "text/html" if options.html else ""

        def translated(part: list[str]) -> list[Translation]:
            return client.translate(part, mime_type=mime_type, priority="bulk", all_or_nothing=False, **asked)

        # In several calls if the lines are too many or too large for one.
        yield lambda lines: in_calls(translated, lines, lambda error: untranslated(error, model))


def _check_target(models: Sequence[Model], model: str, target: str) -> None:
    """Check that the target language is unambiguous, when the language of each text is detected.

    Raises:
        DragomanError: no target is given, and several are possible.
    """
    if model:
        model_source.choose(models, model, "", target)
    elif not (target or model_source.has_one_target(models)):
        targets = sorted({code for each in models for code in each.target_languages})
        raise InvalidRequestError(f"say into which language with --to, or with --model; there are {several(targets)}")


@contextmanager
def _in_process(options: argparse.Namespace, terms: _Terms) -> Iterator[TranslateLines]:
    model, source, target = model_source.chosen(options)
    translator = load("plugins.offline.in_process:translator")
    asked = _asked(options, terms)
    yield translator(options.models, model=model, source=source, target=target, html=options.html, **asked)


def _asked(options: argparse.Namespace, terms: _Terms) -> dict[str, Any]:
    """Give the arguments that a server's client and the engine in this process both take."""
    same = {name: getattr(options, name) for name in _SAME_NAMES}
    return same | {"glossary": terms.entries, "glossaries": terms.names}


def _terms(given: Sequence[str]) -> _Terms:
    """Read the glossaries that are files; a value that is no path of a file is the name of a stored glossary.

    Raises:
        DataError: a file is no glossary, or holds no terms.
        InvalidRequestError: the files hold too many terms.
    """
    files = {each: _file(each) for each in given if _is_file(each)}
    terms = _Terms(files, [each for each in given if each and each not in files])
    if (count := len(terms.entries)) > MAX_CALL_ENTRIES:
        together = ", all files together" if len(files) > 1 else ""
        raise InvalidRequestError(f"--glossary: must hold at most {MAX_CALL_ENTRIES} terms{together}, holds {count}")
    return terms


def _is_file(glossary: str) -> bool:
    path = Path(glossary)
    is_path = bool(path.suffix) or path.name != glossary
    return path.suffix.lower() in SUFFIXES or (is_path and path.exists())


def _file(path: str) -> GlossaryFile:
    file = GlossaryFile.read(Path(path))
    if not file.entries:
        raise DataError(f"{path}: holds no terms")
    return file
