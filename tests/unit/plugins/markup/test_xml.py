import re
from collections.abc import Callable
from functools import partial
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plugins.markup.xml import parse
from service.options import XmlTags
from service.text.markup import protect
from service.text.piece import Piece
from service.text.segmentation import split

TAGS = XmlTags(splitting=frozenset(["p", "title"]), kept=frozenset(["x", "code"]))
PIECES = """<b> </b> <p> </p> <p_a="1"> <title> </title> <x> </x> <x_id="7"> <x/> <br/> <code> </code> <P>
<script> <a:b-c_d='>'> <!-- --> <![CDATA[ ]]> <? ?> <!DOCTYPE_a_[ ]> < > / & &amp; &lt; &apos; &#65; &nbsp; &own;
= " ' Tom ann. 12 é 😀 你 _ ."""
XML = st.lists(
    st.one_of(
        st.sampled_from(PIECES.split()).map(lambda piece: piece.replace("_", " ")),
        st.just(" "),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=40,
).map("".join)


def translated(xml: str, translate: Callable[[str], str] = lambda text: text, limit: int = 500) -> str:
    """The XML with each segment translated so."""
    written = []
    for piece in protect(parse(xml, TAGS), partial(split, language="en", fits=lambda text: len(text) <= limit)):
        written.append(piece.kept)
        if piece.text:
            assert piece.tags is not None
            written.append(piece.tags.restore(translate(piece.text), None))
    return "".join(written)


def untouched(xml: str) -> str:
    """The sources of all parts."""
    return "".join(
        part if isinstance(part, str) else "".join(piece.kept for piece in part.protect(lambda text: [Piece(text)]))
        for part in parse(xml, TAGS)
    )


def segments(xml: str) -> list[str]:
    found: list[str] = []
    translated(xml, lambda text: found.append(text) or text)
    return found


def tags(xml: str) -> list[str]:
    return re.findall(r"</?[a-z][^<>]*>", xml)


@given(XML)
@example("a <x/> <x/> b <!--")
@example("<!DOCTYPE a [ <!ENTITY b 'c'> ]> d")
@example("a &#1; &#xD800; &#0; &NotEqualTilde; b")
def test_the_sources_of_the_parts_are_the_whole(xml: str) -> None:
    assert untouched(xml) == xml


@given(XML, st.integers(1, 60))
def test_a_text_that_is_its_own_translation_changes_in_blanks_and_references_only(xml: str, limit: int) -> None:
    assert "".join(unescape(translated(xml, limit=limit)).split()) == "".join(unescape(xml).split())


@given(st.lists(st.sampled_from(["<b>", "</b>", "<x/>", "Tom", "saw", "<p>", "</p>", "<br/>"])).map(" ".join))
def test_tags_and_their_order_stay(xml: str) -> None:
    assert tags(translated(xml, lambda text: text[::-1].upper())) == tags(xml)


@pytest.mark.parametrize(
    ("xml", "texts"),
    [
        # What no list names is inside a sentence, whatever HTML knows by that name.
        ('I have <n id="7"></n> apples.', ["I have apples."]),
        ("I have <n/> <n/> apples.", ["I have apples."]),
        ("un<div>bro</div>ken <li>sentence</li>", ["unbroken sentence"]),
        ("<script>Run</script> <style>away</style>", ["Run away"]),
        ("<P>Names have</P> a letter case.", ["Names have a letter case."]),
        ("<p>One</p> and <title>two</title> three", ["One", "and", "two", "three"]),
        ('<p a="b>c">One<p/>two', ["One", "two"]),
        # Kept elements.
        ("Run <code>make</code> first.", ["Run make first."]),
        ("Run <code>make <b>all</b> of it</code> first.", ["Run make all of it first."]),
        ('I have <x id="7"></x> apples.', ["I have apples."]),
        ("Run <x>a <x>nested</x> one</x> now", ["Run a nested one now"]),
        ("Run <x>unended.", ["Run unended."]),
        # References, comments and the like.
        ("A &lt;b&gt; &amp; &apos;c&apos; &#100; &#x65; &eacute; &own; f", ["A <b> & 'c' d e é f"]),
        ("A <!-- not <b> --> b <![CDATA[ not <c> ]]> c <?not d?> d", ["A b c d"]),
        ("<?xml version='1.0'?><!DOCTYPE a [ <!ENTITY b 'c'> ]>Tom", ["Tom"]),
        ("A\r\nline", ["A  line"]),
        # What is no tag is text; what is cut off is kept.
        ("a < b <c", ["a < b <c"]),
        ("Tom <!-- cut <b>", ["Tom"]),
        ("</b> Tom </b", ["Tom </b"]),
    ],
)
def test_what_is_translated(xml: str, texts: list[str]) -> None:
    assert segments(xml) == texts


@pytest.mark.parametrize(
    ("xml", "written"),
    [
        ('I have <x id="7"></x> apples.', 'I HAVE <x id="7"></x> APPLES.'),
        ("<p>Tom &amp; <b>Ann</b></p>", "<p>TOM &amp; <b>ANN</b></p>"),
        ("A\xa0b&nbsp;c", "A\xa0B\xa0C"),  # &nbsp; is no reference of XML
        ("Tom &own;&notit; left", "TOM &own;&notit; LEFT"),
        ("Tom &#1; left", "TOM &#1; LEFT"),  # no character of Unicode
    ],
)
def test_what_is_written(xml: str, written: str) -> None:
    assert translated(xml, str.upper) == written


@pytest.mark.parametrize(
    "piece", ["<!--", "<![CDATA[", "<?", "<!DOCTYPE", "<!DOCTYPE[", "<a ", '<a "', "<a b='", "&#", "</", "<x>"]
)
def test_hostile_texts_are_read_in_linear_time(piece: str) -> None:
    assert untouched(piece * 100_000) == piece * 100_000
