"""The sentences that a model is calibrated and compared on, as ids between the marks of their languages.

Of imported models nobody has references. Sentences in twelve languages come with this package, written for it.
"""

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Final, NamedTuple

from dragoman.bundle import Manifest
from dragoman.errors import DataError
from dragoman.framing import Frame
from dragoman.tokenizer import Tokenizer
from model.corpus import Corpus

# The first line names the languages; each other one is a sentence in all of them.
_SENTENCES: Final = "sentences.tsv"
# Into how many languages the sentences of one language are translated, in turn.
_TARGETS: Final = 4


class Sample(NamedTuple):
    """One sentence.

    Attributes:
        source: ids, with all that stands around those of the text.
        start_ids: what its translation begins with, the start id first.
        reference: a translation, if there is one.
        text: of the source.
    """

    source: list[int]
    start_ids: tuple[int, ...]
    reference: str | None = None
    text: str = ""


def of_corpus(corpus: Corpus, manifest: Manifest, tokenizer: Tokenizer) -> list[Sample]:
    """Make samples of a user's sentences, for a model of one pair.

    Args:
        corpus: sentences, and as many references or none.
        manifest: of the model.
        tokenizer: of the model.
    """
    languages = manifest.languages
    references: list[str | None] = [*corpus.targets] or [None] * len(corpus)
    pair = languages.sources[0], languages.targets[0]
    texts = ((*pair, text, reference) for text, reference in zip(corpus.sources, references, strict=True))
    return _samples(texts, manifest, tokenizer)


def shipped(manifest: Manifest, tokenizer: Tokenizer) -> list[Sample]:
    """Make samples of the sentences of this package, in all languages that the model knows.

    Raises:
        DataError: it knows none of them as a source.
    """
    table = resources.files(__package__).joinpath(_SENTENCES).read_text(encoding="utf-8")
    codes, *rows = [line.split("\t") for line in table.splitlines()]
    columns = {code: [row[place] for row in rows] for place, code in enumerate(codes)}
    samples = _samples(_in_turn(columns, manifest), manifest, tokenizer)
    if not samples:
        asked = ", ".join(manifest.languages.sources[:_TARGETS])
        there = ", ".join(codes)
        raise DataError(f"no sentences in {asked} come with Dragoman, only in {there}: give some with --data")
    return samples


def _in_turn(columns: dict[str, list[str]], manifest: Manifest) -> Iterator[tuple[str, str, str, None]]:
    """Give the sentences of each source language, each with one of a few targets; those of `columns` come first."""
    languages = manifest.languages
    known = [languages.target(code) for code in columns]
    targets = list(dict.fromkeys([*filter(None, known), *languages.targets]))
    for asked, texts in columns.items():
        if (source := languages.source(asked)) is not None:
            others = [target for target in targets if target != source][:_TARGETS]
            for number, text in enumerate(texts if others else ()):
                yield source, others[number % len(others)], text, None


def _samples(
    texts: Iterator[tuple[str, str, str, str | None]], manifest: Manifest, tokenizer: Tokenizer
) -> list[Sample]:
    samples = []
    for source, target, text, reference in texts:
        frame = Frame.of(manifest.languages, manifest, source, target)
        start_ids = frame.start_ids or (manifest.start_id,)
        samples.append(Sample(frame.around(tokenizer.encode(text)), start_ids, reference, text))
    return samples


def fitting(samples: Sequence[Sample], max_source_tokens: int) -> list[Sample]:
    """Take the samples that are short enough.

    Raises:
        DataError: there is none.
    """
    short = [sample for sample in samples if len(sample.source) <= max_source_tokens]
    if not short:
        raise DataError(f"no sentence to compare on: every source has more than {max_source_tokens} tokens")
    return short
