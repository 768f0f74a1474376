"""Which heads of the decoder look at the source word that is translated; chosen on sentences and their translations.

Words that are the same on both sides, such as names and numbers, tell where a head should look while it writes them,
and that it should not look there while it writes other words. Heads are tried one by one, and so is each layer's mean:
the words that they align, as the server does it, are counted. Where there are too few such words, the mean of a layer
is taken: the last but one, which is said to align best (Garg et al., arXiv:1909.02074), or of up to three layers the
last one.
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
from service.text.alignment import Side, Span

# Words on which heads are compared; with fewer, chance would choose.
_FEWEST_WORDS: Final = 20
# Of a sentence whose words tell something.
_FEWEST_SOURCE_WORDS: Final = 3
_FEW_LAYERS: Final = 3
_WORD_START: Final = "\u2581"  # how SentencePiece writes a blank


class _Copies(NamedTuple):
    """The words that are the same on both sides of an example.

    Attributes:
        row: of the example in its batch.
        begin: position of the decoder at which the first token of the translation is chosen.
        source: of the example.
        target: of the example.
        words: where each word is in the source, and in the translation.
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
        runs: of the examples, batch by batch.
        examples: sources with translations.
        start_tokens: of each example, how many tokens of its target are no part of the translation.
        tokenizer: of the model.

    Returns:
        The heads; None where there are too few words to choose by.
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
    # Of equals the later layer, and all heads of it before one.
    layer, head = max(hits, key=lambda place: (hits[place], place[0], place[1] is None, -(place[1] or 0)))
    return AlignmentHeads(layer=layer, heads=tuple(range(heads)) if head is None else (head,))


def mean_of_layer(layers: int, heads: int) -> AlignmentHeads:
    """Take all heads of the layer that aligns best as a rule.

    Args:
        layers: of the decoder.
        heads: of each.
    """
    return AlignmentHeads(layer=layers - 1 if layers <= _FEW_LAYERS else layers - 2, heads=tuple(range(heads)))


def _count(weights: Floats, copies: Sequence[_Copies], hits: Counter[tuple[int, int | None]], layer: int) -> None:
    """Count the words that each head of a layer aligns, and the mean of its heads, which comes last."""
    mean = weights.shape[1] - 1
    for row, begin, source, target, words in copies:
        # What stands at the end of the source is looked at by heads that have nothing to do.
        seen = weights[row, :, begin : begin + len(target.spans), : len(source.spans)]
        for head, attention in enumerate(seen):
            alignment = Alignment(attention, source, target)
            right = sum(alignment.target_of(*word) == other for word, other in words)
            hits[layer, None if head == mean else head] += right


def _copies(row: int, example: Example, start_tokens: int, tokenizer: Tokenizer) -> _Copies:
    """Find the words that both sides of an example have once."""
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
    """Find where the words of a text are, by their texts."""
    places: dict[str, list[Span]] = {}
    for word in words_of(side):
        places.setdefault(side.text[slice(*word)], []).append(word)
    return places
