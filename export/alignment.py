"""Which heads of the decoder look at the source word that is translated; chosen on sentences and their translations.

Words that are the same on both sides, such as names and numbers, tell where a head should look while it writes them.
Some heads do in nearly all cases and most do not, so they are tried one by one, and each layer's mean. Where there are
too few such words, the mean of a layer is taken: the last but one, which is said to align best (Garg et al.,
arXiv:1909.02074), or of up to three layers the last one.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, cast

import torch
from torch import Tensor, nn

from dragoman.bundle import AlignmentHeads
from dragoman.tokenizer import Tokenizer
from export.examples import Batch, Example, batches, run
from model.attention import AttendSource, attention_weights, length_mask, split_heads
from model.layers import DecoderLayer
from model.transformer import Transformer

# Words on which heads are compared; with fewer, chance would choose.
_FEWEST_WORDS: Final = 20
# Of a sentence whose words tell something.
_FEWEST_SOURCE_WORDS: Final = 3
_FEW_LAYERS: Final = 3
_WORD_START: Final = "\u2581"  # how SentencePiece writes a blank


class _Word(NamedTuple):
    """A word that is the same on both sides of an example.

    Attributes:
        row: of its example in the batch.
        queries: positions of the decoder at which its tokens are chosen.
        keys: positions of its tokens in the source.
    """

    row: int
    queries: list[int]
    keys: list[int]


def choose_heads(
    model: Transformer, examples: Sequence[Example], start_tokens: Sequence[int], tokenizer: Tokenizer
) -> AlignmentHeads:
    """Choose the heads that align best.

    Args:
        model: in evaluation mode, fp32.
        examples: sources with translations.
        start_tokens: of each example, how many tokens of its target are no part of the translation.
        tokenizer: of the model.
    """
    hits: Counter[tuple[int, int | None]] = Counter()
    total, begun = 0, 0
    for batch in batches(examples, model.config.pad_id):
        rows = range(begun, begun + len(batch.source))
        words = [
            word
            for row, index in enumerate(rows)
            for word in _same_words(row, examples[index], start_tokens[index], tokenizer)
        ]
        begun, total = rows.stop, total + len(words)
        if words:
            with _watched(model, partial(_count, batch, words, hits)):
                run(model, batch)
    layers, heads = model.config.decoder_layers, model.config.decoder_head_count
    if total < _FEWEST_WORDS:
        return mean_of_layer(layers, heads)
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


@contextmanager
def _watched(model: Transformer, see: Any) -> Iterator[None]:
    """Call `see` with the number of a layer and the inputs of its attention to the source, while the block runs."""
    handles = [
        cast(DecoderLayer, layer).cross_attention.attend.register_forward_pre_hook(
            lambda attend, inputs, number=number: see(number, attend, inputs)
        )
        for number, layer in enumerate(model.decoder)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _count(
    batch: Batch,
    words: Sequence[_Word],
    hits: Counter[tuple[int, int | None]],
    layer: int,
    attend: nn.Module,
    inputs: tuple[Tensor, ...],
) -> None:
    """Count the words at which each head of a layer looks most, and the mean of its heads."""
    assert isinstance(attend, AttendSource)
    query, packed, lengths = inputs
    key, _ = packed.chunk(2, dim=-1)
    mask = length_mask(lengths, key.shape[1])
    query, key = split_heads(query, attend.heads), split_heads(key, attend.heads)
    weights = attention_weights(query, key, mask, scaled=attend.scaled, bias=None)
    for row, queries, keys in words:
        # What stands at the end of the source is looked at by heads that have nothing to do.
        seen = weights[row, :, queries, : int(batch.source_lengths[row]) - 1].sum(1)
        seen = torch.cat([seen, seen.mean(0, keepdim=True)])
        own = torch.zeros(seen.shape[1], dtype=torch.bool)
        own[keys] = True
        right = (seen[:, own].sum(1) > seen[:, ~own].max(1).values).tolist()
        for head, is_right in enumerate(right):
            hits[layer, None if head == attend.heads else head] += is_right


def _same_words(row: int, example: Example, start_tokens: int, tokenizer: Tokenizer) -> Iterator[_Word]:
    """Find the words that both sides of an example have once."""
    source = _words(tokenizer.source_pieces(example.source[:-1]))
    target = _words(tokenizer.target_pieces(example.target[start_tokens:]))
    if len(source) < _FEWEST_SOURCE_WORDS:
        return
    ours, theirs = (Counter(word for word, _ in words) for words in (source, target))
    places = dict(source)
    for word, tokens in target:
        if word and ours[word] == theirs[word] == 1:
            # A token is chosen one position before it is read.
            queries = [start_tokens - 1 + token for token in tokens]
            yield _Word(row, queries, places[word])


def _words(pieces: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Join pieces to words, without the marks at their ends; with the positions of their pieces."""
    words: list[tuple[str, list[int]]] = []
    for position, piece in enumerate(pieces):
        if piece.startswith(_WORD_START) or not words:
            words.append(("", []))
        text, positions = words[-1]
        words[-1] = (text + piece.removeprefix(_WORD_START), [*positions, position])
    return [(text.strip(_MARKS), positions) for text, positions in words]


_MARKS: Final = "".join(chr(code) for code in range(0x21, 0x7F) if not chr(code).isalnum()) + "«»„“”‚‘’…–—"
