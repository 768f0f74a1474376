"""The sentences that a model is calibrated and compared on, as ids between the marks of their languages.

Of imported models nobody has references. Sentences in twelve languages come with this package, written for it; of
other languages, pieces are drawn from the vocabulary.
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

# The first line names the languages; each other one is a sentence in all of them.
_SENTENCES: Final = "sentences.tsv"
# Sentences that are drawn from a vocabulary, and of how many pieces each is.
_DRAWN: Final = 160
_DRAWN_PIECES: Final = (4, 24)
# Scores of a unigram model are logarithms of probabilities; those of byte pair encoding add up to something else.
_LEAST_MASS: Final = 0.7
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
    """Make samples of the sentences of this package in the source languages of a model; none where it has others."""
    table = resources.files(__package__).joinpath(_SENTENCES).read_text(encoding="utf-8")
    codes, *rows = [line.split("\t") for line in table.splitlines()]
    columns = {code: [row[place] for row in rows] for place, code in enumerate(codes)}
    return _samples(_in_turn(columns, manifest), manifest, tokenizer)


def drawn(manifest: Manifest, tokenizer: Tokenizer) -> list[Sample]:
    """Make samples of the pieces of the source, each as frequent as in what the tokenizer was trained on.

    They mean nothing, but a model that is calibrated on them loses no more than on as many real sentences, see
    docs/models.md.

    Raises:
        DataError: the tokenizer does not say how frequent its pieces are.
    """
    processor, languages = tokenizer.source_processor, manifest.languages
    no_text = processor.is_control, processor.is_unknown, processor.is_byte, processor.is_unused
    ids = [id_ for id_ in range(processor.get_piece_size()) if not any(kind(id_) for kind in no_text)]
    ids = [id_ for id_ in ids if processor.get_score(id_) < 0]  # what a user has defined has the score 0
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
