"""BLEU beside sacreBLEU."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.bleu import bleu, words

ids = st.lists(st.integers(0, 5), max_size=12)
texts = st.text(st.sampled_from("ab 19.,-/'\"&;<>ü№"), max_size=20)


@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=5))
@example([([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])])
@example([([1, 2, 3], [1, 2, 3])])
def test_of_ids(pairs: list[tuple[list[int], list[int]]]) -> None:
    sacrebleu = pytest.importorskip("sacrebleu.metrics.bleu").BLEU(tokenize="none", force=True)
    translations, references = ([" ".join(map(str, side)) for side in sides] for sides in zip(*pairs, strict=True))
    expected = sacrebleu.corpus_score(translations, [references]).score
    assert bleu(*zip(*pairs, strict=True)) == pytest.approx(expected, abs=1e-6)


@given(texts)
@example("<skipped>A&quot;b&quot;, 1,000.5 - 3-4 &amp;lt; e.g. x-y's (z) ")
def test_the_words_of_a_text(text: str) -> None:
    tokenizer = pytest.importorskip("sacrebleu.tokenizers.tokenizer_13a").Tokenizer13a()
    assert words(text) == tokenizer(text.rstrip()).split()
