import re
from collections.abc import Callable
from functools import partial
from html import unescape

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from turbohtml import TokenType, parse_fragment, tokenize

from plugins.alignment.alignment import Alignment
from plugins.markup.html import Block, parse
from service.text.alignment import Side
from service.text.markup import protect
from service.text.piece import Piece
from service.text.segmentation import split

TAGS = """<b> </b> <i_class=x> </i> <p> </p> <div_> </div> <br> <br/> <img> <li> <td> <table> </table>
<textarea> </textarea> <title> </title> <style> <script> </script> <svg> </svg> <plaintext> <math>
<code> </code> <pre> </pre> <SPAN> </SPAN> </a> <p_translate=no> <i_class='a_notranslate'> <a_href="a>b">"""
OTHERS = "< > / ! - b p br = \" ' & &amp; &lt &# &nbsp; &quot; <!-- --> <![CDATA[ ]]> <!DOCTYPE <? é 😀 你 Tom ann. 12"
PIECES = st.sampled_from([*re.findall(r"\S+", TAGS), *re.findall(r"\S+", OTHERS)]).map(
    lambda tag: tag.replace("_", " ")
)
BLANKS = st.sampled_from([" ", "\n", "\r\n", "\x00", "\t", "\xa0", ". "])
HTML = st.lists(st.one_of(PIECES, BLANKS, st.characters(exclude_categories=["Cs"])), max_size=40).map("".join)


def translated(html: str, translate: Callable[[str], str] = lambda text: text, limit: int = 500) -> str:
    """The HTML with each segment translated so."""
    written = []
    for piece in protect(parse(html), partial(split, language="en", fits=lambda text: len(text) <= limit)):
        written.append(piece.kept)
        if piece.text:
            assert piece.tags is not None
            written.append(piece.tags.restore(translate(piece.text), None))
    return "".join(written)


def segments(html: str) -> list[str]:
    found: list[str] = []
    translated(html, lambda text: found.append(text) or text)
    return found


def tags(html: str) -> list[str]:
    kinds = (TokenType.TEXT, TokenType.CHARACTER_REFERENCE)
    return [
        token.source
        for token in tokenize(html, resolve_references=False, capture_source=True)
        if token.type not in kinds
    ]


def words(html: str) -> str:
    """All that is text, without blanks, of which NUL is one; whatever is escaped."""
    return "".join(unescape(html).replace("\x00", " ").split())


@given(HTML)
@example("<p>A &amp B&nbsp;C\r\n</p foo><unfinished a='")
@example("<plaintext>\x00\r\n</plaintext>")
def test_the_sources_of_the_parts_are_the_whole(html: str) -> None:
    assert (
        "".join(
            part if isinstance(part, str) else "".join(piece.kept for piece in part.protect(lambda text: [Piece(text)]))
            for part in parse(html)
        )
        == html
    )


@given(HTML)
@example("0<i translate=no>0")
@example("<b>\x00</b>0")
def test_a_text_that_is_its_own_translation_changes_in_blanks_and_references_only(html: str) -> None:
    assert words(translated(html)) == words(html)


@given(
    HTML, st.integers(1, 60), st.sampled_from([str.upper, lambda text: text[::-1], lambda text: "x", lambda text: ""])
)
@example("<0<b>", 1, lambda text: "x")
@example("&0", 1, lambda text: "lt;b>")
@example("<math>0<!--", 1, lambda text: "x")
def test_tags_and_their_order_stay(html: str, limit: int, translate: Callable[[str], str]) -> None:
    assert tags(translated(html, translate, limit)) == tags(html)


@given(HTML)
@example("<math><title><b>")
def test_what_is_nested_stays_nested(html: str) -> None:
    def skeleton(html: str) -> list[str]:
        return [str(element.tag) for element in parse_fragment(html).find_all()]

    assert skeleton(translated(html, lambda text: "Ein neuer Satz.")) == skeleton(html)


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ("", []),
        ("No tag at all. A &amp; B.", ["No tag at all.", "A & B."]),
        ("<p></p><br/><!-- Only a comment. -->", []),
        ("<h1>Title</h1><p>One. Two.</p><ul><li>Three<li>Four</ul>", ["Title", "One.", "Two.", "Three", "Four"]),
        ("One<br>two<hr>three", ["One", "two", "three"]),
        ("<p>The <b>big</b> <a href='x.y'>dog</a> came. <i>It left.</i></p>", ["The big dog came.", "It left."]),
        ("<p>The train\n   leaves.</p>", ["The train    leaves."]),
        ("H<sub>2</sub>O<img src=a.png> is<!-- yes --> wet", ["H2O is wet"]),
        ("A&nbsp;&lt;b&gt; &eacute;&#33;", ["A\xa0<b> é!"]),
        ("Hello<script>if (a < b) go('Tom')</script> there<style>p {}</style>", ["Hello there"]),
        ("<pre>Keep me.</pre><textarea>Me too</textarea>Not me", ["Not me"]),
        ("Run <code>make</code> first.", ["Run make first."]),
        ("Run <code>make test</code> first.", ["Run make test first."]),
        ("Run <code>make. Then | test</code> first.", ["Run make. Then | test first."]),
        (f"Run <code>{'a' * 201}</code> first.", ["Run", "first."]),
        ("<p translate=no>Keep <b>me</b>.</p><p>Not me</p>", ["Not me"]),
        ("<p translate=no>Keep me.<p>Not me", ["Not me"]),
        ("<div class='a notranslate'><p>Keep</p><div>me</div></div>Not me", ["Not me"]),
        ("<p translate=NO>Keep</p><p translate=yes>Not me</p>", ["Not me"]),
        ("<p class=donotranslate-x>Not me</p>", ["Not me"]),
        ("I met <span translate='no'>Tom</span>.", ["I met Tom."]),
        ("Tom\x00Ann<p title='\x00'>Eve</p><!--\x00-->Lee", ["Tom", "Ann", "Eve", "Lee"]),
        ("Tom\r\nAnn<p>Eve</p>", ["Tom  Ann", "Eve"]),
        ("<code>unclosed <p>Not me", ["Not me"]),
        ("a < b <unfinished", ["a < b"]),
        ("</p>stray</b> end <b>tags", ["stray end tags"]),
        ("<title>A title</title><noscript>Here</noscript>", ["A title", "Here"]),
        ("<NoScript>Switch <b>it</b> on.</NOSCRIPT>Not me", ["Switch it on.", "Not me"]),
        ("<x-widget>One</x-widget>two", ["One", "two"]),
    ],
)
def test_what_is_translated(html: str, texts: list[str]) -> None:
    assert segments(html) == texts


@pytest.mark.parametrize(
    ("html", "same"),
    [
        ("<p class='x'\n id=\"y\">He said: <b>no</b>.</p>\r\n\t<p>&copy; &#8212;</p>", None),
        ("<!DOCTYPE html><html><head><title>T</title></head><body>x</body></html>\n", None),
        ("A&nbsp;B &lt; C &amp; Dan. &quot;&#8212;&quot; <br/>", None),
        ("<b>One.</b> <i>Two.</i> <code>make</code> it", None),
        ("Hi <noscript><img style='x' src='a?id=1&amp;ev=2'></noscript> you<noscript><p>a<img src=", None),
        ("&quot;AT&T&quot; <b\n>x</b\n>", '"AT&amp;T" <b\n>x</b\n>'),
        ("one\ntwo", "one two"),
    ],
)
def test_all_but_segments_comes_back_byte_for_byte(html: str, same: str | None) -> None:
    assert translated(html) == (html if same is None else same)


def test_a_mark_between_blanks_stays_between_them_and_the_model_sees_one() -> None:
    html = "<p>Ann saw <img> <!-- x --> Tom and <br-x></br-x> Eve <b> too</b></p>"
    assert segments("<p>Ann saw <img> <!-- x --> Tom <b> too</b></p>") == ["Ann saw Tom  too"]
    assert translated("<p>Ann saw <img> <!-- x --> Tom</p>", str.upper) == "<p>ANN SAW <img> <!-- x --> TOM</p>"
    assert translated(html) == html


def test_blanks_at_the_start_of_a_line_and_between_words_make_no_columns() -> None:
    assert segments("<p>This is\n      a <b>long</b>    line.</p>") == ["This is       a long    line."]
    assert segments("<p>Name&nbsp;&nbsp;&nbsp;Total</p>") == ["Name", "Total"]


def test_a_tag_around_a_sentence_stays_around_it() -> None:
    html = "<p><b>Hello there.</b> <a href=x>How are <i>you</i>?</a></p>"
    assert translated(html, lambda text: "Neu.") == "<p><b>Neu.</b> <a href=x><i>Neu</i>.</a></p>"


@pytest.mark.parametrize("with_alignment", [True, False])
def test_a_kept_letter_is_not_found_inside_another_word(with_alignment: bool) -> None:
    html, translation = "Press <kbd>Ctrl</kbd>+<kbd>S</kbd> to save.", "Drücken Sie Ctrl+S zum Speichern."
    piece = next(protect(parse(html), partial(split, language="en", fits=lambda text: True)))
    assert piece.tags is not None
    alignment = aligned(piece.text, translation, swap=False) if with_alignment else None
    kept = [(translation.index("Ctrl"), translation.index("Ctrl") + 6)]
    assert piece.tags.restore(translation, alignment, kept).startswith("Drücken Sie <kbd>Ctrl</kbd>+<kbd>S</kbd> zum")


def aligned(source: str, translation: str, swap: bool) -> Alignment:
    """Words of both sides in their order, or in the opposite one."""
    sides = [Side(text, [word.span() for word in re.finditer(r"\w+", text)]) for text in (source, translation)]
    attention = np.eye(len(sides[1].spans), len(sides[0].spans), dtype=np.float32)
    return Alignment(attention[::-1] if swap else attention, *sides)


@pytest.mark.parametrize(
    ("html", "result"),
    [
        ("<p><b>Ann</b> saw <i>Tom</i>.</p>", "<p><i>MOT</i> WAS <b>NNA</b>.</p>"),
        # What encloses a sentence stays around it; what lies at its begin or end is part of it.
        ("<p><a><b>Ann</b> saw</a> Tom.</p>", "<p>MOT <a>WAS <b>NNA</b></a>.</p>"),
        ("<p><a><i>Ann</i> saw <b>Tom</b></a></p>", "<p><a><b>MOT</b> WAS <i>NNA</i></a></p>"),
        ("<i><img>Ann saw</i> Tom", "MOT <i>WAS <img>NNA</i>"),
        # Of an element of several sentences one end is in each.
        ("<p>Ann <b>saw Tom. Ann</b> ran.</p>", "<p>MOT <b>WAS NNA. NAR NNA</b>.</p>"),
        # Elements that overlap cannot move: their tags keep their order.
        ("<p>Ann <b>saw <i>us</b> now</i>.</p>", "<p>WON <b>SU <i>WAS</b> NNA</i>.</p>"),
    ],
)
def test_tags_go_with_their_words(html: str, result: str) -> None:
    def translate(text: str) -> str:
        return text[::-1].upper().lstrip(".") + "." * text.endswith(".")

    written = []
    for piece in protect(parse(html), partial(split, language="en", fits=lambda text: True)):
        written.append(piece.kept)
        if piece.text:
            assert piece.tags is not None
            translation = translate(piece.text)
            written.append(piece.tags.restore(translation, aligned(piece.text, translation, swap=True)))
    assert "".join(written) == result


@given(HTML, st.booleans(), st.integers(1, 60))
def test_no_tag_is_lost_where_words_are_aligned(html: str, swap: bool, limit: int) -> None:
    written = []
    for piece in protect(parse(html), partial(split, language="en", fits=lambda text: len(text) <= limit)):
        written.append(piece.kept)
        if piece.text:
            assert piece.tags is not None
            translation = "Ein neuer " + piece.text.upper()
            written.append(piece.tags.restore(translation, aligned(piece.text, translation, swap=swap)))
    assert sorted(tags("".join(written))) == sorted(tags(html))


def test_what_a_translation_holds_is_no_markup() -> None:
    assert translated("<p>x</p>", lambda text: "<script>&amp;") == "<p>&lt;script&gt;&amp;amp;</p>"


def test_a_place_has_few_marks_however_many_tags() -> None:
    [block] = [part for part in parse("a" + "</b><b></b><i>" * 1000 + "b") if isinstance(part, Block)]
    assert len(block.marks) == 2
