"""The sentences for calibration and comparison of a model, as ids with the marks of their languages.

Imported models come without references. This package contains sentences in twelve languages, written for it; for other
languages, random pieces are drawn from the vocabulary.
"""

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Final, NamedTuple

import numpy as np

from dragoman.bundle import Manifest
from dragoman.errors import DataError
from dragoman.framing import Frame
from dragoman.tokenizer import Tokenizer
from model.corpus import Corpus

# The first line names the languages; each other line is one sentence in all of them.
_SENTENCES: Final = "sentences.tsv"
# The number of sentences drawn from a vocabulary, and the range of their number of pieces.
_DRAWN: Final = 160
_DRAWN_PIECES: Final = (4, 24)
# Scores of a unigram model are log-probabilities; those of byte pair encoding have another sum.
_LEAST_MASS: Final = 0.7
# The number of target languages for the sentences of one language, used in turn.
_TARGETS: Final = 4


class Sample(NamedTuple):
    """One sentence.

    Attributes:
        source: ids, with all marks around the text.
        start_ids: the first ids of its translation, the start id first.
        reference: a translation, or None.
        text: the source text.
    """

    source: list[int]
    start_ids: tuple[int, ...]
    reference: str | None = None
    text: str = ""


def of_corpus(corpus: Corpus, manifest: Manifest, tokenizer: Tokenizer) -> list[Sample]:
    """Make samples from a user's sentences, for a model of one pair.

    Args:
        corpus: sentences, with a reference for each or none.
        manifest: the manifest of the model.
        tokenizer: the tokenizer of the model.
    """
    languages = manifest.languages
    references: list[str | None] = [*corpus.targets] or [None] * len(corpus)
    pair = languages.sources[0], languages.targets[0]
    texts = ((*pair, text, reference) for text, reference in zip(corpus.sources, references, strict=True))
    return _samples(texts, manifest, tokenizer)


def shipped(manifest: Manifest, tokenizer: Tokenizer) -> list[Sample]:
    """Make samples from the sentences of this package in the model's source languages; [] if it has others."""
    table = resources.files(__package__).joinpath(_SENTENCES).read_text(encoding="utf-8")
    codes, *rows = [line.split("\t") for line in table.splitlines()]
    columns = {code: [row[place] for row in rows] for place, code in enumerate(codes)}
    return _samples(_in_turn(columns, manifest), manifest, tokenizer)


def drawn(manifest: Manifest, tokenizer: Tokenizer) -> list[Sample]:
    """Make samples from random source pieces, each with its frequency in the tokenizer's training data.

    They have no meaning, but calibration on them loses no more quality than on as many real sentences, see
    docs/models.md.

    Raises:
        DataError: the tokenizer does not contain the frequencies of its pieces.
    """
    processor, languages = tokenizer.source_processor, manifest.languages
    no_text = processor.is_control, processor.is_unknown, processor.is_byte, processor.is_unused
    ids = [id_ for id_ in range(processor.get_piece_size()) if not any(kind(id_) for kind in no_text)]
    ids = [id_ for id_ in ids if processor.get_score(id_) < 0]  # user-defined pieces have the score 0
    shares = np.exp(processor.get_score(ids))
    if not _LEAST_MASS <= shares.sum() <= 1 / _LEAST_MASS:
        source = ", ".join(languages.sources[:_TARGETS])
        raise DataError(f"no sentences in {source} come with Dragoman: give some with --data")
    draw, shares = np.random.default_rng(0), shares / shares.sum()
    lengths = draw.integers(*_DRAWN_PIECES, size=_DRAWN)
    texts = (processor.decode(draw.choice(ids, length, p=shares).tolist()) for length in lengths)
    pair = languages.sources[0], next(code for code in languages.targets if code != languages.sources[0])
    return _samples(((*pair, text, None) for text in texts), manifest, tokenizer)


def _in_turn(columns: dict[str, list[str]], manifest: Manifest) -> Iterator[tuple[str, str, str, None]]:
    """Give the sentences of each source language with a few targets in turn; targets in `columns` are preferred."""
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
    """Take the samples within the length limit.

    Raises:
        DataError: all samples are too long.
    """
    short = [sample for sample in samples if len(sample.source) <= max_source_tokens]
    if not short:
        raise DataError(f"no sentence to compare on: every source has more than {max_source_tokens} tokens")
    return short
