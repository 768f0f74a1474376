"""Names, numbers, addresses, versions and placeholders of sentences: how many of them a translation keeps.

    dragoman bench kept --bundle DIR [--data FILE] [--lost]

What is to be kept stands in square brackets in the data: "Your order [#48213] has been shipped." The model is given
the sentence without them. What has another name in the other language may be written as either: "to [Prague|Prag]". A
number is kept in the writing of another language, too: 1,234.50 as 1.234,50. Nothing is protected by the server, so the
figures are those of the model.
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from bench.arguments import add_bundle, input_file
from bench.frame import ArgumentError, Figures
from dragoman.bundle import Bundle
from dragoman.clock import TWELVE_HOURS, in_24_hours
from dragoman.language import several
from plugins.offline.engine import OfflineEngine
from plugins.offline.texts import translate_offline
from service.text.translator import Translator

DATA: Final = Path(__file__).parent.parent / "tests" / "data"
_MARKED: Final = re.compile(r"\[([^\]]+)\]")
_NUMBER: Final = re.compile(r"[-€$£]{0,2}\d[\d.,:/]*")
_DIGITS: Final = re.compile(r"\d+(?:[.,:/' \u00a0\u202f]\d+)*")
_SIGNS: Final = {"-": ("-", "−", "–", "minus", "Minus"), "€": ("€", "Euro"), "$": ("$", "Dollar"), "£": ("£", "Pfund")}
# The first that matches names what is to be kept.
_KINDS: Final[Sequence[tuple[str, Callable[[str], object]]]] = (
    ("placeholders", re.compile(r"[{%]|^[$:<@#]").search),
    ("e-mail addresses", re.compile(r"\S@\S").search),
    ("URLs", re.compile(r"://|^www\.|\w\.(example|com)\b").search),
    ("numbers", _NUMBER.fullmatch),
    ("versions, codes", re.compile(r"\d").search),
    ("names", re.compile(r"[A-ZÀ-Þ]").match),
    ("other", lambda text: True),
)


class Sentence(NamedTuple):
    """A sentence, and the texts of it that are to be kept, each perhaps with other forms behind "|"."""

    text: str
    kept: list[str]


def read(path: Path) -> list[Sentence]:
    """Read sentences, one a line; a file that is not UTF-8, or in which nothing is to be kept, is an error."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ArgumentError(f"argument --data: {path} is not UTF-8") from error
    sentences = [
        Sentence(_MARKED.sub(lambda found: found[1].split("|")[0], line), _MARKED.findall(line))
        for line in lines
        if line
    ]
    if not any(sentence.kept for sentence in sentences):
        raise ArgumentError(f"argument --data: {path} has no text in square brackets, to be kept")
    return sentences


def lost(sentence: Sentence, translation: str) -> list[str]:
    """List what a translation does not have as often as its sentence names it."""
    wanted = Counter(sentence.kept)
    return [
        text
        for text, count in wanted.items()
        if sum(_times(form, translation) for form in text.split("|")) < count and not _is_written(text, translation)
    ]


def kind_of(text: str) -> str:
    return next(name for name, matches in _KINDS if matches(text))


def _times(text: str, translation: str) -> int:
    """Count a text; its digits are no part of a longer number."""
    return len(re.findall(rf"(?<!\d){re.escape(text)}(?!\d)", translation))


def _is_written(text: str, translation: str) -> bool:
    """Tell whether a number is in a translation, in the writing of another language."""
    if not _NUMBER.fullmatch(text):
        return False
    if any(sign in text and not any(word in translation for word in words) for sign, words in _SIGNS.items()):
        return False
    digits = _only_digits(text)
    full_hour = digits.removesuffix("00") if ":" in text else digits
    clock = TWELVE_HOURS.sub(in_24_hours, translation)
    return any(_only_digits(number) in (digits, full_hour) for number in _DIGITS.findall(f"{translation} {clock}"))


def _only_digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sentences = "sentences (tests/data/kept.en.txt or kept.de.txt, by the language that the model reads)"
    parser.add_argument("--data", type=input_file, metavar="FILE", help=sentences)
    parser.add_argument("--lost", action="store_true", help="also print what was lost, with the translations")
    add_bundle(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    bundle = Bundle.open(arguments.bundle)
    sentences = read(arguments.data or _data_of(bundle))
    translations = _translated(bundle, [sentence.text for sentence in sentences])
    losses = [lost(sentence, text) for sentence, text in zip(sentences, translations, strict=True)]
    total = Counter(kind_of(text) for sentence in sentences for text in set(sentence.kept))
    missing = Counter(kind_of(text) for texts in losses for text in texts)
    rows = [(name, total[name], total[name] - missing[name]) for name, _ in _KINDS if total[name]]
    rows += [("all", total.total(), total.total() - missing.total())]
    rows += [("sentences that keep all", len(sentences), sum(not texts for texts in losses))]
    figures: Figures = {"rows": [{"what": what, "of": of, "kept": f"{kept / of:.1%}"} for what, of, kept in rows]}
    if arguments.lost:
        figures["lost"] = [
            {"source": sentence.text, "translation": text, "lost": ", ".join(texts)}
            for sentence, text, texts in zip(sentences, translations, losses, strict=True)
            if texts
        ]
    return figures


def _data_of(bundle: Bundle) -> Path:
    """Find the sentences in the language of a model."""
    languages = bundle.manifest.source_languages
    found = [path for code in languages if (path := DATA / f"kept.{code}.txt").is_file()]
    if not found:
        raise ArgumentError(f"argument --data: needed, there are no sentences in {several(languages)}")
    return found[0]


def _translated(bundle: Bundle, sources: Sequence[str]) -> list[str]:
    """Translate as a server does, without one."""
    translator = Translator(bundle.manifest, bundle.tokenizer())
    with closing(OfflineEngine(bundle, slots=32)) as engine:
        return [result.text for result in translate_offline(translator, engine, sources)]
