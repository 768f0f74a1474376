"""How often is the detected language right? Sentences whose language is known, as a server would meet them.

    python -m bench.detection --pairs en-de=de.tsv.xz --pairs en-fr=fr.tsv.xz

Each file has source<TAB>target lines, and tells of both their languages. The first table has sentences by themselves,
by their length: told apart are all languages that the classifier knows, those that every server tells apart, or those
of the files only. The second has servers that translate from one of these languages: how often a sentence of it is
taken for one, and how often one of another is not, by how much more probable the served language is made in advance.
The third has short sentences among nine others of their language, and among nine of another. Then what it all costs.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from py3langid import langid

from bench.arguments import add_json, count, input_file, make_parser
from bench.files import write_json
from bench.load.texts import DataFileError, read_pairs
from bench.machine import machine
from bench.memory.process import resident_mib
from dragoman.arguments import Parser
from dragoman.exit_codes import EXIT_OK
from service.text.detection import COMMON, Guess, LanguageDetector, Tongues, agree

_LENGTHS: Final = {"1 to 20": range(21), "21 to 60": range(21, 61), "more": range(61, 10**9)}
_FACTORS: Final = (1, 3, 10, 30)
_OTHERS: Final = 9
_PAUSE_S: Final = 0.001


class Sentence(NamedTuple):
    """A sentence and its language."""

    text: str
    language: str


class Row(NamedTuple):
    """How often something was right.

    Attributes:
        name: of what.
        sentences: how many there were.
        right: how many of them were, by the case.
    """

    name: str
    sentences: int
    right: Mapping[str, int]


def alone(detector: LanguageDetector, sentences: Sequence[Sentence], every: Sequence[str]) -> list[Row]:
    """Count the right languages of sentences by themselves."""
    own = tuple(sorted({sentence.language for sentence in sentences}))
    cases = {
        f"all {len(every)} languages": Tongues((), tuple(every)),
        f"the {len(COMMON)} common ones": Tongues((), COMMON),
        "the same, these expected": Tongues(own, COMMON),
        "these alone": Tongues(own, ()),
    }
    rows = []
    for language in own:
        for length, characters in _LENGTHS.items():
            some = [each for each in sentences if each.language == language and len(each.text) in characters]
            right = {
                name: sum(best(detector.rank(each.text, tongues)) == language for each in some)
                for name, tongues in cases.items()
            }
            rows.append(Row(f"{language}, {length}", len(some), right))
    return rows


def expected(detector: LanguageDetector, sentences: Sequence[Sentence]) -> list[Row]:
    """Count the short sentences that a server of one language takes, and those of others that it does not."""
    short = [each for each in sentences if len(each.text) in _LENGTHS["1 to 20"]]
    ranked = [(each.language, detector.rank(each.text, Tongues((), COMMON))) for each in short]
    languages = sorted({each.language for each in short})

    def taken(ranking: Sequence[Guess], served: str, factor: int) -> bool:
        weighted = [Guess(name, share * (factor if name == served else 1)) for name, share in ranking]
        return best(sorted(weighted, key=lambda guess: -guess.confidence)) == served

    rows = []
    for name, is_own in (("in the served language", True), ("in another one", False)):
        some = [(served, each) for served in languages for code, each in ranked if (code == served) is is_own]
        right = {
            f"factor {factor}": sum(taken(ranking, served, factor) is is_own for served, ranking in some)
            for factor in _FACTORS
        }
        rows.append(Row(name, len(some), right))
    return rows


def in_company(detector: LanguageDetector, sentences: Sequence[Sentence]) -> list[Row]:
    """Count the right languages of short sentences in calls with others."""
    languages = sorted({each.language for each in sentences})
    tongues = Tongues(tuple(languages), COMMON)
    texts = {code: [each.text for each in sentences if each.language == code] for code in languages}

    def found(text: str, number: int, company: str) -> str:
        """Detect the language of a text in a call with texts of one language, other ones for each number."""
        start = number * _OTHERS % (len(texts[company]) - _OTHERS)
        call = [text, *texts[company][start : start + _OTHERS]]
        first = agree([detector.rank(each, tongues) for each in call], list(map(len, call)))[0]
        return first.language if first else ""

    rows = []
    for length in ("1 to 20", "21 to 60"):
        some = [each for each in sentences if len(each.text) in _LENGTHS[length]]
        right = dict.fromkeys(("alone", "among its own language", "among another language"), 0)
        for number, (text, language) in enumerate(some):
            others = [code for code in languages if code != language]
            right["alone"] += best(detector.rank(text, tongues)) == language
            right["among its own language"] += found(text, number, language) == language
            right["among another language"] += found(text, number, others[number % len(others)]) == language
        rows.append(Row(length, len(some), right))
    return rows


def best(ranking: Sequence[Guess]) -> str:
    """Give the most probable language; "" where nothing is known."""
    return ranking[0].language if ranking else ""


def microseconds(detector: LanguageDetector, sentences: Sequence[Sentence]) -> dict[str, float]:
    """Measure the mean processor time of one sentence, by its length, and of 1,000 characters."""
    tongues = Tongues(("en",), COMMON)
    groups = {
        length: [each.text for each in sentences if len(each.text) in characters]
        for length, characters in _LENGTHS.items()
    }
    groups["1,000 characters"] = [" ".join(each.text for each in sentences)[:1_000]] * 100
    times = {}
    for name, texts in groups.items():
        began_s = time.thread_time()
        for text in texts:
            detector.rank(text, tongues)
        times[name] = (time.thread_time() - began_s) / max(1, len(texts)) * 1e6
    return times


async def loading(detector: LanguageDetector) -> dict[str, float]:
    """Read the model on a thread, and measure how long the event loop was kept from its work at most."""
    longest_s = 0.0

    async def tick() -> None:
        nonlocal longest_s
        while True:
            began_s = time.perf_counter()
            await asyncio.sleep(_PAUSE_S)
            longest_s = max(longest_s, time.perf_counter() - began_s - _PAUSE_S)

    before_mib, began_s = resident_mib(os.getpid()), time.perf_counter()
    ticking = asyncio.create_task(tick())
    await asyncio.to_thread(detector.load)
    took_s = time.perf_counter() - began_s
    ticking.cancel()
    return {"seconds": took_s, "longest_pause_ms": longest_s * 1e3, "mib": resident_mib(os.getpid()) - before_mib}


def as_markdown(rows: Sequence[Row], first: str) -> str:
    """Write a table of shares."""
    names = list(rows[0].right)
    lines = [f"| {first} | sentences | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for name, total, right in rows:
        shares = [f"{right[case] / total:.1%}" if total else "" for case in names]
        lines.append(f"| {name} | {total:,} | {' | '.join(shares)} |")
    return "\n".join(lines)


def read(files: Iterable[tuple[str, str, Path]], limit: int | None) -> list[Sentence]:
    """Read the sentences of both sides of some files, each once.

    Raises:
        DataFileError: one cannot be read.
    """
    found: dict[Sentence, None] = {}
    for source, target, path in files:
        for code, texts in zip((source, target), read_pairs(path, limit), strict=True):
            found |= dict.fromkeys(Sentence(text, code) for text in texts)
    return list(found)


def _pairs(text: str) -> tuple[str, str, Path]:
    languages, _, path = text.partition("=")
    source, _, target = languages.partition("-")
    if not (source and target and path):
        raise argparse.ArgumentTypeError(f"must be such as en-de=FILE, is {text!r}")
    return source, target, input_file(path)


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = make_parser("python -m bench.detection", __doc__)
    help_ = "source<TAB>target lines of two languages; .gz, .xz; several times"
    parser.add_argument("--pairs", type=_pairs, action="append", required=True, metavar="EN-DE=FILE", help=help_)
    parser.add_argument("--sentences", type=count, metavar="N", help="at most, of each side of a file (all)")
    add_json(parser)
    return parser


def main(argv: list[str]) -> int:
    """Measure, and print Markdown tables.

    Returns:
        The exit code: 0.

    Raises:
        SystemExit: With 2, after one line on stderr, when an argument or a file is no good.
    """
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        sentences = read(arguments.pairs, arguments.sentences)
    except DataFileError as error:
        parser.error(str(error))
    detector = LanguageDetector()
    load = asyncio.run(loading(detector))
    every = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE).labels
    tables = {
        "language and characters": alone(detector, sentences, every),
        "1 to 20 characters": expected(detector, sentences),
        "characters": in_company(detector, sentences),
    }
    times = microseconds(detector, sentences)
    for first, rows in tables.items():
        print(as_markdown(rows, first), end="\n\n")
    print("processor time:", ", ".join(f"{name}: {time_us:.0f} us" for name, time_us in times.items()))
    print(
        f"reading the model: {load['seconds']:.2f} s, {load['mib']:.0f} MiB; the event loop waited at most "
        f"{load['longest_pause_ms']:.0f} ms for it"
    )
    figures = {first: [row._asdict() for row in rows] for first, rows in tables.items()}
    write_json(arguments.json, {**machine(), **figures, "microseconds": times, "loading": load})
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
