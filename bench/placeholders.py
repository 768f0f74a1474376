"""Names and placeholders that are to stay as they are, put into the sentences of a corpus: how many do.

    dragoman bench placeholders --data test.tsv.xz [--name Tom] [--json OUT]

Of sentences that have a name, once in the source and once in the reference, the name is replaced in both: by invented
names, which a glossary keeps, or by placeholders, which are protected: by one, and by several with commas between them.
Each is translated as it is and with its protection. A miss that no answer names is silent: there must be none. BLEU is
against the references with the same replacement.
"""

import argparse
import re
from collections.abc import Sequence
from typing import Final

from bench.arguments import add_bundle, count, input_file
from bench.bleu import bleu
from bench.frame import ArgumentError, Figures
from bench.load.texts import read_pairs
from dragoman.bundle import Bundle
from dragoman.glossary import GlossaryEntry
from plugins.offline.engine import OfflineEngine
from plugins.offline.texts import translate_offline
from plugins.terms.finding import Index, missing
from plugins.terms.terms import Terms
from service.options import RequestOptions
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=input_file, required=True, metavar="FILE", help="pairs that are translated; .gz, .xz")
    add_bundle(parser)
    add("--name", default="Tom", help="which is replaced (%(default)s)")
    add("--sentences", type=count, default=400, metavar="N", help="at most, of each kind (%(default)s)")


def measure(arguments: argparse.Namespace) -> Figures:
    pairs = _with_name(list(zip(*read_pairs(arguments.data), strict=True)), arguments.name)[: arguments.sentences]
    if not pairs:
        raise ArgumentError(f"argument --data: no pair has {arguments.name!r} once on both sides")
    return {"rows": _rows(Bundle.open(arguments.bundle), pairs, arguments.name)}


def _with_name(pairs: Sequence[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return [pair for pair in pairs if all(len(word.findall(text)) == 1 for text in pair)]


def _rows(bundle: Bundle, pairs: Sequence[tuple[str, str]], name: str) -> list[Figures]:
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
                results = translate_offline(translator, engine, sources, options)
                counts = [list(map(result.text.count, each)) for result, each in zip(results, kept, strict=True)]
                silent = sum(
                    bool(missing(list(terms.find(source)), result.text)) and not result.glossary_misses
                    for source, result in zip(sources, results, strict=True)
                )
                once, twice = sum(set(row) == {1} for row in counts), sum(max(row) > 1 for row in counts)
                score = bleu([result.text for result in results], references)
                shares = {"once": once, "more often": twice, "missing": len(pairs) - once - twice}
                rows.append(
                    {
                        "what": what,
                        "translated": way,
                        "sentences": len(pairs),
                        **{name: f"{count / len(pairs):.1%}" for name, count in shares.items()},
                        "silent misses": silent if way == "kept" else 0,
                        "BLEU": score,
                    }
                )
    finally:
        engine.close()
    return rows
