"""The choice of decoder heads that look at the source word being translated, from sentences and translations.

A word that is the same on both sides, such as a name or a number, shows where a head should look while the decoder
writes this word, and where not to look while it writes other words. Each head is tried, and so is the mean of each
layer: the correctly aligned words are counted, with the alignment code of the server. If there are too few such words,
the mean of a layer is used: the last but one, which usually aligns best (Garg et al., arXiv:1909.02074), or the last
layer of a model with up to three.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from dragoman.bundle import AlignmentHeads
from dragoman.tokenizer import Tokenizer
from export.examples import Example
from export.teacher import Floats, Seen
from plugins.alignment.alignment import Alignment
from plugins.alignment.alignment import words as words_of
from service.rewriting import Span
from service.text.alignment import Side

# The number of words needed to compare heads; with fewer, the choice would be random.
_FEWEST_WORDS: Final = 20
# The number of words of a sentence that is used.
_FEWEST_SOURCE_WORDS: Final = 3
_FEW_LAYERS: Final = 3
_WORD_START: Final = "\u2581"  # SentencePiece's sign for a blank


class _Copies(NamedTuple):
    """The words that are the same on both sides of an example.

    Attributes:
        row: the row of the example in its batch.
        begin: decoder position at which the first token of the translation is chosen.
        source: the source of the example.
        target: the translation of the example.
        words: the place of each word in the source, and in the translation.
    """

    row: int
    begin: int
    source: Side
    target: Side
    words: list[tuple[Span, Span]]


def choose_heads(
    runs: Iterable[Seen], examples: Sequence[Example], start_tokens: Sequence[int], tokenizer: Tokenizer
) -> AlignmentHeads | None:
    """Choose the heads that align best.

    Args:
        runs: the runs of the examples, batch by batch.
        examples: sources with translations.
        start_tokens: for each example, how many tokens of its target precede the translation.
        tokenizer: the tokenizer of the model.

    Returns:
        The heads; None if there are too few words to choose.
    """
    hits: Counter[tuple[int, int | None]] = Counter()
    total, begun = 0, 0
    for run in runs:
        rows = range(begun, begun + len(run.batch.source))
        copies = [_copies(row, examples[index], start_tokens[index], tokenizer) for row, index in enumerate(rows)]
        copies = [found for found in copies if found.words]
        begun, total = rows.stop, total + sum(len(found.words) for found in copies)
        for layer, attention in enumerate(run.attention):
            heads = attention.shape[1]
            _count(np.concatenate([attention, attention.mean(1, keepdims=True)], 1), copies, hits, layer)
    if total < _FEWEST_WORDS:
        return None
    # Of equal counts the later layer wins, and the mean of its heads before a single head.
    layer, head = max(hits, key=lambda place: (hits[place], place[0], place[1] is None, -(place[1] or 0)))
    return AlignmentHeads(layer=layer, heads=tuple(range(heads)) if head is None else (head,))


def mean_of_layer(layers: int, heads: int) -> AlignmentHeads:
    """Use all heads of the layer that usually aligns best.

    Args:
        layers: the number of decoder layers.
        heads: the number of heads of each layer.
    """
    return AlignmentHeads(layer=layers - 1 if layers <= _FEW_LAYERS else layers - 2, heads=tuple(range(heads)))


def _count(weights: Floats, copies: Sequence[_Copies], hits: Counter[tuple[int, int | None]], layer: int) -> None:
    """Count the words that each head of a layer aligns correctly, and those of the mean of all heads, which is last."""
    mean = weights.shape[1] - 1
    for row, begin, source, target, words in copies:
        # Without the end of the source: heads without a relevant word look there.
        seen = weights[row, :, begin : begin + len(target.spans), : len(source.spans)]
        for head, attention in enumerate(seen):
            alignment = Alignment(attention, source, target)
            right = sum(alignment.target_of(*word) == other for word, other in words)
            hits[layer, None if head == mean else head] += right


def _copies(row: int, example: Example, start_tokens: int, tokenizer: Tokenizer) -> _Copies:
    """Find the words that occur exactly once on both sides of an example."""
    source = _side(tokenizer.source_pieces(example.source[:-1]))
    target = _side(tokenizer.target_pieces(example.target[start_tokens:]))
    ours, theirs = _words(source), _words(target)
    once = {text for text in ours if len(ours[text]) == len(theirs.get(text, ())) == 1}
    if sum(map(len, ours.values())) < _FEWEST_SOURCE_WORDS:
        once = set()
    # A token is chosen one position before it is read.
    return _Copies(row, start_tokens - 1, source, target, [(ours[text][0], theirs[text][0]) for text in sorted(once)])


def _side(pieces: Sequence[str]) -> Side:
    """Join pieces to a text."""
    text, spans = "", []
    for piece in pieces:
        shown = piece.replace(_WORD_START, " ")
        text += shown
        spans.append((len(text) - len(shown.lstrip()), len(text)))
    return Side(text, spans)


def _words(side: Side) -> dict[str, list[Span]]:
    """Find the places of each word of a text."""
    places: dict[str, list[Span]] = {}
    for word in words_of(side):
        places.setdefault(side.text[slice(*word)], []).append(word)
    return places
