"""The heads that are chosen, against a count sentence by sentence."""

from collections import Counter

import pytest

from dragoman.tokenizer import Tokenizer
from export.alignment import choose_heads, mean_of_layer
from export.examples import Example, batches
from export.teacher import Teacher
from model.corpus import Corpus
from model.inspection.attention_maps import attention_maps
from model.transformer import Transformer
from plugins.alignment.alignment import Alignment, words
from service.text.alignment import Side
from tests.plain_pytorch import parameters_of
from tests.unit.export.written import taught

EOS, START = 2, 1


@pytest.fixture(scope="module")
def copies(loaded: tuple[Transformer, Tokenizer], corpus: Corpus) -> list[Example]:
    """Sentences that are translated by themselves: all words are the same on both sides."""
    encoded = [loaded[1].encode(text) for text in corpus.sources[:40]]
    return [Example([*ids, EOS], [START, 7, *ids]) for ids in encoded]


@pytest.fixture(scope="module")
def teacher(loaded: tuple[Transformer, Tokenizer]) -> Teacher:
    return taught(parameters_of(loaded[0]))


def counted(model: Transformer, tokenizer: Tokenizer, examples: list[Example]) -> Counter[tuple[int, int | None]]:
    hits: Counter[tuple[int, int | None]] = Counter()
    for source, target in examples:
        text = tokenizer.decode(source[:-1])
        side = Side(text, tokenizer.source_spans(text))
        found = [text[start:stop] for start, stop in words(side)]
        once = [word for word in words(side) if found.count(text[slice(*word)]) == 1] if len(found) >= 3 else []
        maps = [each.weights for each in attention_maps(model, source, target) if each.title.endswith("to the source")]
        for layer, weights in enumerate(maps):
            for head, seen in [*enumerate(weights), (None, weights.mean(0))]:
                # The token at `place` of the text is chosen at position `place + 1` of the decoder.
                aligned = Alignment(seen[1:][: len(side.spans), :-1].numpy(), side, side)
                hits[layer, head] += sum(aligned.target_of(*word) == word for word in once)
    return hits


@pytest.mark.parametrize("batch", [7, 125])
def test_the_head_that_aligns_most_words_is_chosen(
    loaded: tuple[Transformer, Tokenizer],
    teacher: Teacher,
    copies: list[Example],
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
) -> None:
    monkeypatch.setattr("export.examples.BATCH", batch)
    model, tokenizer = loaded
    hits = counted(model, tokenizer, copies)
    chosen = choose_heads(teacher.run(batches(copies, 0)), copies, [2] * len(copies), tokenizer)
    assert chosen is not None
    head = chosen.heads[0] if len(chosen.heads) == 1 else None
    assert hits[chosen.layer, head] == max(hits.values()) > min(hits.values())


def test_too_few_words_choose_nothing(
    loaded: tuple[Transformer, Tokenizer], teacher: Teacher, copies: list[Example]
) -> None:
    others = [Example(source, [START, *reversed(copies[0].target)]) for source, _ in copies[1:2]]
    for few in (others, copies[:1]):
        assert choose_heads(teacher.run(batches(few, 0)), few, [1], loaded[1]) is None


@pytest.mark.parametrize(("layers", "layer"), [(1, 0), (2, 1), (3, 2), (6, 4), (12, 10)])
def test_without_words_a_layer_is_taken_as_a_whole(layers: int, layer: int) -> None:
    assert mean_of_layer(layers, 4).model_dump() == {"layer": layer, "heads": (0, 1, 2, 3)}
