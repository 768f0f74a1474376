import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents.plain import PlainText
from tests.unit.dragoman.documents.pretend import translated


def test_lines_keep_their_ends_and_the_blanks_around_them() -> None:
    content = "\ufeffOne & <two>.\r\n\r\n  three\tfive\t \n12\nfour"
    assert translated(PlainText(content.encode())).decode() == content.upper()
    assert [text.place for text in PlainText(content.encode()).texts] == ["line 1", "line 3", "line 5"]


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    content = text.encode(errors="replace")
    document = PlainText(content)
    assert document.write([None] * len(document.texts)) == content
    assert document.write([each.html for each in document.texts]) == content


def test_a_tab_ends_a_sentence_and_stays() -> None:
    document = PlainText(b"one\ttwo\n")
    assert document.texts[0].html == 'one<br id="0">two'
    assert document.write(['eins<br id="0">zwei']) == b"eins\tzwei\n"


def test_other_charsets_are_refused() -> None:
    with pytest.raises(ValueError, match="is not UTF-8"):
        PlainText(b"caf\xe9")
