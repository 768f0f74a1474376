from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.bundle import target_limit
from dragoman.errors import DataError
from dragoman.tokenizer import Tokenizer
from model.corpus import Corpus
from model.decoding import greedy
from model.evaluate import check_lengths, translate
from model.transformer import Transformer


@pytest.mark.parametrize("count", [1, 5, 300])
def test_translations_come_in_the_order_of_the_texts_and_as_alone(
    build: Callable[..., Transformer], tokenizer: Tokenizer, corpus: Corpus, count: int
) -> None:
    model = build(source_vocabulary_size=400, target_vocabulary_size=400, max_positions=99, encoder_layers=1)
    texts = corpus.sources[:count]
    translations = translate(model, tokenizer, texts)
    assert len(translations) == count
    for row in range(0, count, 50):
        source = [*tokenizer.encode(texts[row]), model.config.eos_id]
        limit = target_limit(len(source), model.config.max_positions)
        alone = tokenizer.decode(greedy(model, [source], max_target_tokens=limit)[0])
        assert translations[row] == alone


def test_a_text_beyond_the_positions(build: Callable[..., Transformer], tokenizer: Tokenizer) -> None:
    model = build(source_vocabulary_size=400, target_vocabulary_size=400, max_positions=20)
    translate(model, tokenizer, ["a " * 9])
    with pytest.raises(DataError, match=r"a text has \d+ tokens, the model 20 positions"):
        translate(model, tokenizer, ["short", "a " * 99])


def test_a_text_beyond_the_positions_is_named_by_its_line(
    build: Callable[..., Transformer], tokenizer: Tokenizer
) -> None:
    config = build(source_vocabulary_size=400, target_vocabulary_size=400, max_positions=20).config
    corpus = Corpus(["short", "a " * 99], ["kurz", "lang"], [1, 3, 4, 9])
    with pytest.raises(DataError, match=r"^dev\.tsv: line 5 has \d+ tokens, the model 20 positions$"):
        check_lengths(Path("dev.tsv"), corpus, tokenizer, config)
    check_lengths(Path("dev.tsv"), Corpus(["short"], ["kurz"], []), tokenizer, config)
