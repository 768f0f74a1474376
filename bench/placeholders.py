"""Names and placeholders that are to stay as they are, put into the sentences of a corpus: how many do.

    python -m bench.placeholders --data test.tsv.xz [--name Tom] [--markdown OUT]

Of sentences that have a name, once in the source and once in the reference, the name is replaced in both: by invented
names, which a glossary keeps, or by placeholders, which are protected: by one, and by several with commas between them.
Each is translated as it is and with its protection. A miss that no answer names is silent: there must be none. BLEU is
against the references with the same replacement.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.arguments import add_bundle, count, input_file, make_parser, output_file
from bench.bleu import bleu
from bench.files import write_whole
from bench.load.texts import DataFileError, read_pairs
from dragoman.bundle import Bundle
from dragoman.errors import BundleError
from dragoman.exit_codes import EXIT_OK
from dragoman.glossary import GlossaryEntry
from service.engine.offline import OfflineEngine
from service.options import RequestOptions
from service.terms import Index, Terms, missing
from service.text.translator import Translator

_NAMES: Final = ("Zentrix", "Quillbox", "NovaTech 3000", "acme-tools", "MySQL", "iPhone", "Łukasz", "C++")
_PLACEHOLDERS: Final = (
    "{name}",
    "{0}",
    "%s",
    "%(name)s",
    "{{user}}",
    "${user}",
    "https://example.com/a?b=1",
    "tom@example.org",
    "{n, plural, one {# man} other {# men}}",
    "👩‍👩‍👧",
)
_TOGETHER: Final = (2, 4, 5, 6, 8)  # placeholders of a sentence
_HEAD: Final = "| what | translated | sentences | once | more often | missing | silent misses | BLEU |"


class Row(NamedTuple):
    """What became of some texts that are to stay as they are.

    Attributes:
        once: sentences whose translation has each of the texts once.
        twice: sentences whose translation has one of them more often.
        silent: translations without one of them that do not say so.
    """

    what: str
    way: str
    sentences: int
    once: int
    twice: int
    silent: int
    bleu: float | None

    def cells(self) -> list[str]:
        """Write the cells of a table."""
        shares = [self.once, self.twice, self.sentences - self.once - self.twice]
        percent = [f"{100 * share / self.sentences:.1f} %" for share in shares]
        score = "" if self.bleu is None else f"{self.bleu:.1f}"
        return [self.what, self.way, str(self.sentences), *percent, str(self.silent), score]


def main(argv: list[str]) -> int:
    """Measure, and print a Markdown table."""
    parser = make_parser("python -m bench.placeholders", __doc__)
    add = parser.add_argument
    add("--data", type=input_file, required=True, metavar="FILE", help="pairs that are translated; .gz, .xz")
    add_bundle(parser)
    add("--name", default="Tom", help="which is replaced (%(default)s)")
    add("--sentences", type=count, default=400, metavar="N", help="at most, of each kind (%(default)s)")
    add("--markdown", type=output_file, metavar="OUT", help="write the table to this file")
    arguments = parser.parse_args(argv)
    try:
        pairs = _with_name(list(zip(*read_pairs(arguments.data), strict=True)), arguments.name)[: arguments.sentences]
        if not pairs:
            parser.error(f"argument --data: no pair has {arguments.name!r} once on both sides")
        rows = _measure(Bundle.open(Path(arguments.bundle)), pairs, arguments.name)
    except (DataFileError, BundleError) as error:
        parser.error(str(error))
    lines = [_HEAD, "| --- " * _HEAD.count(" | ") + "| --- |", *(f"| {' | '.join(row.cells())} |" for row in rows)]
    table = "\n".join(lines)
    print(table)
    if arguments.markdown:
        write_whole(arguments.markdown, f"{table}\n")
    return EXIT_OK


def _with_name(pairs: Sequence[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return [pair for pair in pairs if all(len(word.findall(text)) == 1 for text in pair)]


def _measure(bundle: Bundle, pairs: Sequence[tuple[str, str]], name: str) -> list[Row]:
    engine, translator = OfflineEngine(bundle, slots=32), Translator(bundle.manifest, bundle.tokenizer())
    names, placeholders = Terms([Index(map(GlossaryEntry, _NAMES))]), Terms([], protects_placeholders=True)
    kinds = [("names", _NAMES, names, 1), ("placeholders", _PLACEHOLDERS, placeholders, 1)]
    kinds += [(f"{count} placeholders", _PLACEHOLDERS, placeholders, count) for count in _TOGETHER]
    rows = []
    try:
        for what, texts, terms, together in kinds:
            kept = [[texts[(number + place) % len(texts)] for place in range(together)] for number in range(len(pairs))]
            lists = [", ".join(each) for each in kept]
            sources = [source.replace(name, text) for (source, _), text in zip(pairs, lists, strict=True)]
            references = [reference.replace(name, text) for (_, reference), text in zip(pairs, lists, strict=True)]
            for way, options in (("as it is", RequestOptions()), ("kept", RequestOptions(terms=terms))):
                results = translator.translate_offline(engine, sources, options)
                counts = [list(map(result.text.count, each)) for result, each in zip(results, kept, strict=True)]
                silent = sum(
                    bool(missing(list(terms.find(source)), result.text)) and not result.glossary_misses
                    for source, result in zip(sources, results, strict=True)
                )
                once, twice = sum(set(row) == {1} for row in counts), sum(max(row) > 1 for row in counts)
                score = bleu([result.text for result in results], references)
                rows.append(Row(what, way, len(pairs), once, twice, silent if way == "kept" else 0, score))
    finally:
        engine.close()
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
