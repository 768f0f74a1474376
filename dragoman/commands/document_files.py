"""`dragoman translate --file`: reads a document, and writes the same document with translated texts."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from tqdm import tqdm

from dragoman.answers import Translation
from dragoman.arguments import output_file
from dragoman.commands.lines import EXIT_SOME_FAILED, complain, in_chunks, reason
from dragoman.documents.document import Document, DocumentText, check_languages
from dragoman.documents.formats import MAX_BYTES, SUFFIXES, format_of, read_document, say_language
from dragoman.errors import DataError
from dragoman.exit_codes import EXIT_OK
from dragoman.files import open_regular, write_whole
from dragoman.language import AUTO

TranslateTexts = Callable[[list[str]], list[Translation]]

_COMMAND: Final = "translate"
# Options that documents do not support, and their flags.
_NOT_OF_DOCUMENTS: Final = {
    "texts": "TEXT",
    "html": "--html",
    "json": "--json",
    "alternatives": "--alternatives",
    "alignments": "--alignments",
    "quality_estimate": "--quality-estimate",
    "target_prefix": "--target-prefix",
}
# Options that draw tokens at random: placeholders might then be lost.
_DRAWS: Final = {"temperature": "--temperature", "top_k": "--top-k", "top_p": "--top-p", "seed": "--seed"}


def tell_of_one(texts: Sequence[str]) -> None:
    """If the single text is the name of a file, tell the user how to translate the file."""
    [text, *others] = texts
    if others or not os.path.isfile(text):
        return
    name, suffix = shlex.quote(text), Path(text).suffix
    how = f"--file {name} --out OUT{suffix}" if suffix.lower() in SUFFIXES else f"< {name}"
    complain(_COMMAND, f"{name} is a file, and is taken as a text; to translate the file: dragoman translate {how}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that :func:`check` reads."""
    add = parser.add_argument
    add(
        "--file",
        type=Path,
        metavar="FILE",
        help=f"a document to translate instead of lines ({', '.join(SUFFIXES)}); a text of it that cannot be "
        "translated stays in the source language, and is named on standard error",
    )
    add("--out", type=output_file, metavar="FILE", help="with --file: where the translated document is written")


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Exit with code 2 if the arguments for a document contradict each other."""
    if not (options.file and options.out):
        if options.file or options.out:
            parser.error("arguments --file and --out: each needs the other")
        return
    for name, flag in _NOT_OF_DOCUMENTS.items():
        if getattr(options, name):
            parser.error(f"argument {flag}: not with --file")
    formats = []
    for flag, path in (("--file", options.file), ("--out", options.out)):
        try:
            formats.append(format_of(path.name or str(path)))
        except ValueError as error:
            parser.error(f"argument {flag}: {error}")
    if formats[0] != formats[1]:
        parser.error(f"argument --out: must be of the format of --file, is {options.out.name!r}")
    if options.out.exists() and options.file.exists() and options.out.samefile(options.file):
        parser.error("argument --out: is the file of --file, which would be lost")


def read(path: Path, source: str, target: str) -> Document:
    """Read a document.

    Args:
        path: the file; its suffix gives the format.
        source: language to translate from; "": any.
        target: language to translate into; "": any.

    Raises:
        DataError: the content does not have the format of the file's suffix, or states other languages; one line that
            names the file.
        OSError: the file cannot be read.
    """
    with open_regular(path) as stream:
        content = stream.read(MAX_BYTES + 1)
    try:
        document = read_document(path.name, content)
        check_languages(path.name, document.languages, source, target)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    return document


def check_draws(parser: argparse.ArgumentParser, options: argparse.Namespace, document: Document) -> None:
    """Exit with code 2 if tokens are to be drawn for a document whose placeholders must stay unchanged."""
    given = [flag for name, flag in _DRAWS.items() if getattr(options, name) is not None]
    if given and document.protects_placeholders:
        suffix = options.file.suffix.lower()
        parser.error(f"argument {given[0]}: not with {suffix} files, whose placeholders stay as they are")


def translate(
    document: Document, options: argparse.Namespace, translator: AbstractContextManager[TranslateTexts]
) -> int:
    """Translate a document.

    Args:
        document: the document.
        options: the options of the command, with the output path (written whole or not at all) and the languages.
        translator: gives the function that translates texts in HTML.

    Returns:
        0; 1 if some texts stayed in the source language.

    Raises:
        DataError: the tags of a translation differ from those of its text.
        DragomanError: a call failed.
        OSError: the document cannot be written.
    """
    with translator as translate_texts:
        translations = list(_translations(document.texts, translate_texts))
    try:
        content = document.write(translations)
    except ValueError as error:  # the server does not keep tags
        raise DataError(f"{options.out}: {error}") from error
    source = "" if options.source == AUTO else options.source or ""
    write_whole(options.out, say_language(options.out.name, content, source, options.target or ""))
    for place in document.unwritten:
        why = "its translation lacks code, or would be read as something else"
        complain(_COMMAND, f"{options.file}: {place}: stays in the source language: {why}")
    return EXIT_SOME_FAILED if None in translations or document.unwritten else EXIT_OK


def _translations(texts: Sequence[DocumentText], translate_texts: TranslateTexts) -> Iterator[str | None]:
    """Translate texts, and report errors and missing terms; None for a text without a translation."""
    with tqdm(total=len(texts), unit="text", delay=2, disable=not sys.stderr.isatty()) as progress:
        done = 0
        for chunk in in_chunks([text.html for text in texts]):
            for translation in translate_texts(chunk):
                place = texts[done].place
                for term in translation.glossary_misses:
                    complain(_COMMAND, f"{place}: not in the translation as it should be: {term}")
                if translation.error is not None:
                    complain(_COMMAND, f"{place}: stays in the source language: {reason(translation.error)}")
                yield translation.text if translation.error is None else None
                done += 1
            progress.update(len(chunk))
