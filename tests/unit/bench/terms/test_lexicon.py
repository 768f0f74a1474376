import pytest

from bench.terms.lexicon import learn, words

PAIRS = [
    ("the house", "das Haus"),
    ("the dog", "der Hund"),
    ("a house", "ein Haus"),
    ("a dog", "ein Hund"),
]


def test_words_have_no_punctuation() -> None:
    assert words("Wie geht's dir, Tom?") == ["Wie", "geht", "s", "dir", "Tom"]


def test_words_that_meet_more_often_than_others_translate_each_other() -> None:
    lexicon = learn(PAIRS)
    for source, target in (("house", "Haus"), ("dog", "Hund"), ("a", "ein")):
        shares = lexicon[source]
        assert max(shares, key=shares.__getitem__) == target
        assert sum(shares.values()) == pytest.approx(1.0, abs=0.05)
    assert min(share for shares in lexicon.values() for share in shares.values()) >= 0.01
