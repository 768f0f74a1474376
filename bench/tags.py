"""Are tags of HTML around the right words of a translation? By the words whose translation is known.

    dragoman bench tags --train train.tsv.xz --data test.tsv.xz

The pairs of --train tell which words are translations of each other nearly always: each in more than 80 % of the pairs
that have the other, and in at least ten. Each sentence of --data that has such a word once, and whose translation has
the other once, is a case: the word is put into <b></b>, and the tags are right where they are exactly around the other
word, punctuation apart. They are placed by the alignment, as the server does it, and by the guess that it makes where
it has none; the translation is the same. A word moved that has at least two words more or fewer before it. What
`options.alignments` lists of these words is counted, too.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final, NamedTuple

from bench.arguments import add_bundle, count, input_file
from bench.frame import Figures
from bench.load.texts import read_pairs
from dragoman.bundle import Bundle, target_limit
from dragoman.framing import Frame
from plugins.markup.inline_tags import TaggedText
from plugins.markup.mark import InlineTag
from plugins.offline.engine import OfflineEngine
from service.decode import Decode
from service.options import Decoding
from service.text.alignment import Alignment, Span
from service.text.attended import SegmentText

_FEWEST: Final = 10
_SHARE: Final = 0.8
_MOVED: Final = 2
_WORD: Final = re.compile(r"\w+")
_TAGS: Final = ("<b>", "</b>")


class Case(NamedTuple):
    """A word of a sentence whose place in the translation is known.

    Attributes:
        other: where its translation is.
        moved: whether it has at least two words more or fewer before it there.
    """

    source: str
    translation: str
    alignment: Alignment | None
    word: Span
    other: Span
    moved: bool

    @property
    def same(self) -> bool:
        return self.source[slice(*self.word)] == self.translation[slice(*self.other)]

    def is_right(self, alignment: Alignment | None) -> bool:
        """Tell whether tags around the word are placed around its translation."""
        marks = [InlineTag(self.word[0], _TAGS[0], name="b"), InlineTag(self.word[1], _TAGS[1], closes=True, name="b")]
        html = TaggedText(self.source, marks).restore(self.translation, alignment)
        before, _, rest = html.partition(_TAGS[0])
        inside = rest.partition(_TAGS[1])[0]
        place = len(_WORD.findall(before))
        own = len(_WORD.findall(self.translation[: self.other[0]]))
        return _WORD.findall(inside) == [self.translation[slice(*self.other)]] and place == own


def lexicon(sources: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
    """Find the words that are translations of each other nearly always."""
    ours: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    both: Counter[tuple[str, str]] = Counter()
    for source, target in zip(sources, targets, strict=True):
        words, others = set(_WORD.findall(source)), set(_WORD.findall(target))
        ours.update(words)
        theirs.update(others)
        both.update(product(words, others))
    return {
        word: other
        for (word, other), seen in both.items()
        if seen >= _FEWEST and seen > _SHARE * ours[word] and seen > _SHARE * theirs[other]
    }


def cases(bundle: Bundle, sources: Sequence[str], known: Mapping[str, str]) -> Iterator[Case]:
    """Translate sentences, and find the words in them whose translation is known."""
    manifest, tokenizer = bundle.manifest, bundle.tokenizer()
    frame = Frame.of(manifest.languages, manifest)
    decodes = []
    for source in sources:
        ids = frame.around(tokenizer.encode(source))
        limit = target_limit(len(ids), manifest.max_target_tokens)
        decodes.append(Decode(ids, limit, decoding=Decoding(wants_attention=True), start_ids=frame.start_ids))
    OfflineEngine(bundle).decode(decodes)
    for source, decode in zip(sources, decodes, strict=True):
        translation = tokenizer.decode(decode.target_ids).strip()
        text = SegmentText(source, 0, len(frame.prefix))
        attended = text.attended(tokenizer, decode.target_ids, decode.attention)
        yield from _cases(source, translation, attended and attended.alignment(), known)


def _cases(source: str, translation: str, alignment: Alignment | None, known: Mapping[str, str]) -> Iterator[Case]:
    ours, theirs = list(_WORD.finditer(source)), list(_WORD.finditer(translation))
    words, others = [word[0] for word in ours], [word[0] for word in theirs]
    for place, word in enumerate(words):
        other = known.get(word)
        if other is not None and words.count(word) == others.count(other) == 1:
            there = others.index(other)
            moved = abs(there - place) >= _MOVED
            yield Case(source, translation, alignment, ours[place].span(), theirs[there].span(), moved)


def rows(found: Sequence[Case]) -> list[Figures]:
    """Count the right ones, in all and of each kind."""
    kinds = {
        "all": found,
        "the word moved": [case for case in found if case.moved],
        "it did not": [case for case in found if not case.moved],
        "the word is another in the translation": [case for case in found if not case.same],
        "it is the same": [case for case in found if case.same],
    }
    return [
        {
            "cases": name,
            "of": len(some),
            "right by the guess": _share([case.is_right(None) for case in some]),
            "right by the alignment": _share([case.is_right(case.alignment) for case in some]),
        }
        for name, some in kinds.items()
    ]


def _share(right: Sequence[bool]) -> str:
    return f"{sum(right) / len(right):.1%}" if right else ""


def links(found: Sequence[Case]) -> tuple[int, int]:
    """Count the alignments of the words of cases: those that join both, and all that one of both has."""
    right = total = 0
    for case in found:
        listed = case.alignment.links() if case.alignment else ()
        own = [(link.source, link.target) for link in listed if link.source == case.word or link.target == case.other]
        right += (case.word, case.other) in own
        total += len(own)
    return right, total


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pairs = "source<TAB>target lines; .gz, .xz"
    parser.add_argument("--train", type=input_file, required=True, metavar="FILE", help=f"of the words: {pairs}")
    parser.add_argument("--data", type=input_file, required=True, metavar="FILE", help=f"what is translated: {pairs}")
    parser.add_argument("--sentences", type=count, metavar="N", help="at most, of --data (all)")
    add_bundle(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    known = lexicon(*read_pairs(arguments.train))
    sources, _ = read_pairs(arguments.data, arguments.sentences)
    found = list(cases(Bundle.open(arguments.bundle), sources, known))
    right, total = links(found)
    return {
        "words": len(known),
        "rows": rows(found),
        "words with their alignment": right,
        "words with another alignment": total - right,
    }
