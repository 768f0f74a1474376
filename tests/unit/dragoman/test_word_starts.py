import pytest

from dragoman.word_starts import ends_word_before

BORDERS = ["▁Haus", "▁", "▁'", ".", "-Haus", "'s", "(", "<", "–", "€"]
UNSPACED = ["家", "は", "カ", "ไป", "ꩠ", "𠀀"]
REPEATS_OR_LENGTHENS = ["ー", "ๆ"]
PARTS = ["haus", "s", "Ж", "7", "²", "_", "́e", "가", "<0xC3>", "</s>", "<unk>", "<17>", ""]


@pytest.mark.parametrize("piece", [*BORDERS, *UNSPACED])
def test_before_it_a_word_has_ended(piece: str) -> None:
    assert ends_word_before(piece)


@pytest.mark.parametrize("piece", [*PARTS, *REPEATS_OR_LENGTHENS])
def test_a_word_may_go_on_with_it(piece: str) -> None:
    assert not ends_word_before(piece)
