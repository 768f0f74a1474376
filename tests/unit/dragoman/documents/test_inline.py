import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents.inline import Kind, Tagged, Token, from_html, has_words, to_html

TAG = re.compile(r"<(?P<end>/)?(?P<name>\w+)>|(?P<stop>\|)|\{\d\}")


def tagged(text: str) -> Tagged:
    return Tagged.read(text, TAG)


def test_pairs_single_tags_and_stops_become_elements() -> None:
    text = "a <b>c & {1} <d></b>|</e>"
    html = 'a <span id="0">c &amp; <wbr id="1"> <wbr id="2"></span><br id="3"><wbr id="4">'
    assert to_html(tagged(text).tokens) == html
    assert tagged(text).source(from_html(html, tagged(text).tokens)) == text


def test_pairs_are_nested_where_tags_overlap() -> None:
    kinds = [token.kind for token in tagged("<a><b></a></b>").tokens]
    assert kinds == [Kind.BEGIN, Kind.ALONE, Kind.END, Kind.ALONE]


def test_a_translation_moves_tags() -> None:
    text = tagged("one <b>two</b> {3}")
    html = '<wbr id="1"> <span id="0">deux</span> &lt;un&gt;'
    assert text.source(from_html(html, text.tokens)) == "{3} <b>deux</b> <un>"


@pytest.mark.parametrize(
    "html", ["<p>", "</span>", '<span id="0">', "<", '<wbr id="x">', '<wbr id="0">', '<br id="9">']
)
def test_html_of_others_is_refused(html: str) -> None:
    with pytest.raises(ValueError, match="a translation has"):
        from_html(html, tagged("<a>b</a>").tokens)


@given(st.lists(st.sampled_from(["<a>", "</a>", "<b>", "</b>", "{1}", "|", "x", " ", "&", "&amp;", "<", "\xa0"])))
def test_any_text_comes_back(pieces: list[str]) -> None:
    text = "".join(pieces)
    read = tagged(text)
    assert read.source(from_html(to_html(read.tokens), read.tokens)) == text


def test_many_tags_that_stay_open_do_not_take_long() -> None:
    text = "<a>" * 20_000 + "</b>" * 20_000
    assert tagged(text).source(tagged(text).tokens) == text


def test_words_have_a_letter() -> None:
    assert has_words([Token(Kind.TEXT, "12 "), Token(Kind.TEXT, "é")])
    assert not has_words([Token(Kind.TEXT, "12 - _ …"), Token(Kind.ALONE, tag=1)])
