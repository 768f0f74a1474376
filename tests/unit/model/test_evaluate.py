from collections.abc import Callable

import pytest

from dragoman.bundle import target_limit
from dragoman.errors import DataError
from dragoman.tokenizer import Tokenizer
from model.corpus import Corpus
from model.decoding import greedy
from model.evaluate import translate
from model.transformer import Transformer


@pytest.mark.parametrize("count", [1, 5, 300])
def test_translations_come_in_the_order_of_the_texts(
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
        assert translations[row].startswith(alone)


def test_a_text_beyond_the_positions(build: Callable[..., Transformer], tokenizer: Tokenizer) -> None:
    model = build(source_vocabulary_size=400, target_vocabulary_size=400, max_positions=20)
    translate(model, tokenizer, ["a " * 9])
    with pytest.raises(DataError, match=r"a text has \d+ tokens, the model 20 positions"):
        translate(model, tokenizer, ["short", "a " * 99])
