import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.alignment.alignment import Alignment
from plugins.markup.inline_tags import TaggedText
from plugins.markup.mark import InlineTag, partners
from service.text.alignment import Side

TEXTS = st.text(st.sampled_from('Tom ann12 .,("<&\xa0你\u0301'), max_size=30)


def tagged(html: str) -> TaggedText:
    """Reads `{b}`, `{/b}`, `{=kept}` and `{-img}` as marks: of an element, an element that is kept, something else."""
    text, marks = "", []
    for number, piece in enumerate(html.replace("}", "{").split("{")):
        if number % 2 == 0:
            text += piece
        elif piece.startswith("="):
            marks.append(InlineTag(len(text), f"<code>{piece[1:]}</code>", width=len(piece) - 1))
            text += piece[1:]
        elif piece.startswith("-"):
            marks.append(InlineTag(len(text), f"<{piece[1:]}>"))
        else:
            marks.append(InlineTag(len(text), f"<{piece}>", closes=piece.startswith("/"), name=piece.strip("/")))
    return TaggedText(text, marks)


def aligned(text: str, translation: str, links: str) -> Alignment:
    """Words of a text and of its translation; links as "0-1 1-0:0.5", of a source word and a target word."""
    source = Side(text, [word.span() for word in re.finditer(r"\w+", text)])
    target = Side(translation, [word.span() for word in re.finditer(r"\w+", translation)])
    attention = np.zeros((len(target.spans), len(source.spans)), np.float32)
    for link in links.split():
        pair, _, weight = link.partition(":")
        ours, theirs = map(int, pair.split("-"))
        attention[theirs, ours] = float(weight or 1)
    return Alignment(attention, source, target)


@pytest.mark.parametrize(
    ("source", "translation", "html"),
    [
        ("No marks at all.", "A < B & C\xa0D", "A &lt; B &amp; C&nbsp;D"),
        # Beside a word that the translation has too: names, numbers.
        ("I saw {b}Tom{/b} today.", "Heute sah ich Tom.", "Heute sah ich <b>Tom</b>."),
        ("I saw {b}Tom{/b} and {i}Ann Lee{/i}.", "Tom und Ann Lee sah ich.", "<b>Tom</b> und <i>Ann Lee</i> sah ich."),
        ("It costs {b}12{/b} euros.", "Es kostet 12 Euro.", "Es kostet <b>12</b> Euro."),
        ("He drank H{sub}2{/sub}O.", "Er trank H2O.", "Er trank H<sub>2</sub>O."),
        # As far into the translation, at the edges of words.
        ("A {b}big{/b} dog came.", "Ein großer Hund kam.", "Ein <b>großer</b> Hund kam."),
        ("The {b}last train{/b} left.", "Der letzte Zug fuhr.", "Der <b>letzte Zug</b> fuhr."),
        # Punctuation stays inside or outside.
        ("{b}Note:{/b} it rains.", "Achtung: es regnet.", "<b>Achtung:</b> es regnet."),
        ("She said {b}“Tom!”{/b} again.", "Sie sagte wieder “Tom!”", "Sie sagte wieder <b>“Tom!”</b>"),
        # In their order, whatever the order of the words; none that held a word becomes empty.
        ("{b}Tom{/b} saw {i}Ann{/i}.", "Ann sah Tom.", "Ann sah <b>Tom</b><i>.</i>"),
        ("{b}{i}one{/i} two{/b} three", "eins zwei drei", "<b><i>eins</i> zwei</b> drei"),
        ("{b}{i}Ann,{/i} {/b}Lee", "Ann,Li", "<b><i>Ann,</i></b>Li"),
        ("see{br}", "sehen", "sehen<br>"),
        # What is kept takes the place of its text; else it stands where it stood, beside the rest.
        ("Type {=make} now.", "Jetzt make eingeben.", "Jetzt <code>make</code> eingeben."),
        ("Type {=make} now.", "Jetzt machen.", "Jetzt <code>make</code> machen."),
        ("I love {=you}.", "Ich liebe dich.", "Ich liebe <code>you</code> dich."),
        ("{=one}{=two} three", "drei", "<code>one</code> <code>two</code> drei"),
        ("Type {=make} {=it} now.", "你好", "<code>make</code><code>it</code>你好"),
        ("Take 1 of {=1} now.", "Nimm jetzt 1 von 1.", "Nimm jetzt 1 von <code>1</code>."),
        ("a{=aa} a", "aaa a", "a<code>aa</code> a"),
        ("Take 1 of {=1} now.", "Nimm 1.", "Nimm <code>1</code>."),
        ("{=make} it.", "make, make.", "<code>make</code>, make."),
        ("{=a}{=a}", "a aa", "<code>a</code> <code>a</code>a"),
        ("{b}word{/b}", "", "<b></b>"),
    ],
)
def test_marks_go_where_their_words_went(source: str, translation: str, html: str) -> None:
    assert tagged(source).restore(translation, None) == html


@st.composite
def tagged_texts(draw: st.DrawFn) -> TaggedText:
    text = draw(TEXTS.filter(bool))
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    sources = [f"<{number}>" for number in range(len(places))]
    return TaggedText(
        text, [InlineTag(place, source, draw(st.booleans())) for place, source in zip(places, sources, strict=True)]
    )


@given(tagged_texts(), TEXTS)
def test_no_mark_and_no_text_is_lost_and_marks_keep_their_order(source: TaggedText, translation: str) -> None:
    html = source.restore(translation, None)
    place = 0
    for mark in source.marks:
        place = html.index(mark.source, place)
        html = html[:place] + html[place + len(mark.source) :]
    assert html == TaggedText("").restore(translation, None)


@given(tagged_texts())
def test_a_text_that_is_its_own_translation_keeps_the_places(source: TaggedText) -> None:
    pieces, done = [], 0
    for mark in source.marks:
        pieces += [TaggedText("").restore(source.text[done : mark.place], None), mark.source]
        done = mark.place
    assert source.restore(source.text, None) == "".join([*pieces, TaggedText("").restore(source.text[done:], None)])


@pytest.mark.parametrize(
    ("source", "translation", "links", "html"),
    [
        ("I saw {b}him{/b} today.", "Heute sah ich ihn.", "0-2 1-1 2-3 3-0", "Heute sah ich <b>ihn</b>."),
        # The words of an element need not be in their order, nor those beside them.
        ("{b}Ann{/b} saw {i}us{/i}.", "Uns sah Anna.", "0-2 1-1 2-0", "<i>Uns</i> sah <b>Anna</b>."),
        ("{b}I {i}saw{/i} him{/b} today.", "Heute sah ich ihn.", "0-2 1-1 2-3 3-0", "Heute <b><i>sah</i> ich ihn</b>."),
        ("the {b}red wine{/b} here", "le vin rouge ici", "0-0 1-2 2-1 3-3", "le <b>vin rouge</b> ici"),
        # A word among others belongs to them; one far from them does not.
        ("{b}of red wine{/b} we", "von dem roten Wein wir", "0-0 1-2 2-3 3-4", "<b>von dem roten Wein</b> wir"),
        ("{b}get up{/b} early", "stehen sehr sehr früh auf", "0-0 1-4 2-3", "<b>stehen</b> sehr sehr früh auf"),
        # What stands beside a word there too is inside or outside as it was.
        ("He: {b}“Go!”{/b} {i}Ann{/i}", "Er Anna: “Los!”", "0-0 1-2 2-1", "Er <i>Anna</i>: <b>“Los!”</b>"),
        ("{b}Note:{/b} it rains", "es regnet, Achtung:", "0-2 1-0 2-1", "es regnet, <b>Achtung:</b>"),
        # A part of a word stays a part of that word, if it is the same.
        ("H{b}2{/b}O and {i}salt{/i}", "Salz und H2O", "0-2 1-1 2-0", "<i>Salz</i> und H<b>2</b>O"),
        ("un{b}lucky{/b} man", "Mann glücklos", "0-1 1-0", "Mann <b>glücklos</b>"),
        # Where words are too few, the clearest goes first; none is lost.
        ("{b}ice{/b} {i}cream{/i} here", "hier Eis", "0-1 1-1 2-0", "<i>hier</i> <b>Eis</b>"),
        ("{b}ice{/b} {i}cream{/i} here", "hier Eis", "0-1:0.2 1-1:0.8 2-0", "<b>hier</b> <i>Eis</i>"),
        ("{b}ice{/b} {i}cream{/i}", "Eis", "0-0 1-0", "<i></i><b>Eis</b>"),
        ("{b}ice{/b} {i}cream{/i}", "Sahne zu Eis", "1-0", "<i>Sahne</i> <b>zu</b> Eis"),
        # Without words: beside the word that they stood beside.
        ("Go{b}!{/b} Ann", "Anna, los!", "0-1 1-0", "Anna, los<b>!</b>"),
        ("Go{b}!{/b} Ann", "Anna, los", "0-1 1-0", "Anna, los<b></b>"),
        ("{i}Let us{/i} go{b}!{/b}", "Gehen wir", "0-0 1-1 2-0", "<i>Gehen wir</i><b></b>"),
        ("see {-img}us {b}now{/b}", "jetzt uns sehen", "0-2 1-1 2-0", "<b>jetzt</b> <img>uns sehen"),
        ("see{-br}", "gut sehen", "0-1", "gut sehen<br>"),
        # An end that the sentence does not have: before or behind it.
        ("I {b}saw him", "ihn sah ich", "0-2 1-1 2-0", "ihn <b>sah ich"),
        ("I saw{/b} him", "ihn sah ich", "0-2 1-1 2-0", "ihn sah</b> ich"),
        # What is kept takes the place of its text, the one that is meant; else it stands beside the rest.
        ("Take {=1} of 1", "von 1 nimm 1", "0-2 1-3 2-0 3-1", "von 1 nimm <code>1</code>"),
        ("{b}Type {=make}{/b} now", "jetzt make tippen", "0-2 1-1 2-0", "jetzt <b><code>make</code> tippen</b>"),
        ("{b}Type {=make}{/b} now", "tippen jetzt make", "0-0 2-1", "<b><code>make</code> tippen</b> jetzt make"),
        ("now {b}{=make} type{/b}", "make jetzt tippen", "0-1 2-2", "make jetzt <b><code>make</code> tippen</b>"),
        ("Type {=make} now", "jetzt machen bitte", "0-2 1-1 2-0", "jetzt <code>make</code> machen bitte"),
        ("{b}word{/b}", "", "", "<b></b>"),
        ("{b}word{/b}", "...", "", "<b></b>..."),
    ],
)
def test_marks_go_where_the_aligned_words_went(source: str, translation: str, links: str, html: str) -> None:
    text = tagged(source)
    assert text.restore(translation, aligned(text.text, translation, links)) == html


def test_tags_without_number_keep_their_order() -> None:
    text = tagged("{b}Ann{/b} saw {i}Tom{/i}" + "{-img}" * 2_000)
    html = text.restore("Tom sah Ann", aligned(text.text, "Tom sah Ann", "0-2 1-1 2-0"))
    assert html.index("<b>") < html.index("<i>")


@st.composite
def aligned_texts(draw: st.DrawFn) -> tuple[TaggedText, str, Alignment]:
    """A text with marks of all kinds, a text in its place, and any attention between both."""
    text, translation = draw(TEXTS.filter(bool)), draw(TEXTS)
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    marks = []
    for number, place in enumerate(places):
        name = draw(st.sampled_from(["b", "i", ""]))
        following = min([*places[number + 1 :], len(text)])
        width = draw(st.integers(0, following - place)) if not name else 0
        marks.append(InlineTag(place, f"<{number}>", draw(st.booleans()) and not width, width, name))
    sides = [Side(each, draw(spans_of(each))) for each in (text, translation)]
    numbers = st.lists(st.sampled_from([0, 0.1, 0.5, 1]), min_size=len(sides[0].spans), max_size=len(sides[0].spans))
    rows = [draw(numbers) for _ in sides[1].spans]
    attention = np.array(rows, np.float32).reshape(len(sides[1].spans), len(sides[0].spans))
    return TaggedText(text, marks), translation, Alignment(attention, *sides)


@st.composite
def spans_of(draw: st.DrawFn, text: str) -> list[tuple[int, int]]:
    cuts = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=6))})
    return list(pairwise(cuts))


def tree(marks: Sequence[InlineTag]) -> Iterator[tuple[str, str]]:
    """Each mark with the element that it is in; both ends of an element are in the element around it."""
    around = [""]
    for index, (mark, partner) in enumerate(zip(marks, partners(marks), strict=True)):
        if partner is not None and partner < index:
            around.pop()
        yield mark.source, around[-1]
        if partner is not None and partner > index:
            around.append(mark.source)


@given(aligned_texts())
def test_each_mark_stands_once_and_what_was_inside_stays_inside(case: tuple[TaggedText, str, Alignment]) -> None:
    source, translation, alignment = case
    html = source.restore(translation, alignment)
    by_source = {mark.source: mark for mark in source.marks}
    written = re.findall(r"<\d+>", html)
    assert sorted(written) == sorted(by_source)
    if not any(mark.width for mark in source.marks):
        assert re.sub(r"<\d+>", "", html) == TaggedText("").restore(translation, None)
    after = [by_source[each] for each in written]
    pairs = [
        {
            (marks[index].source, marks[partner].source)
            for index, partner in enumerate(partners(marks))
            if partner is not None
        }
        for marks in (source.marks, after)
    ]
    assert pairs[0] == pairs[1]
    assert sorted(tree(source.marks)) == sorted(tree(after))
    may_move = {each for pair in pairs[0] for each in pair} | {mark.source for mark in source.marks if mark.width}
    for element in {around for _, around in tree(source.marks)}:
        assert [each for each, around in tree(after) if around == element and each not in may_move] == [
            each for each, around in tree(source.marks) if around == element and each not in may_move
        ]


@pytest.mark.parametrize(
    ("source", "translation", "links", "part", "html"),
    [
        ("Set {b}it{/b} to %(x)s", "Setz %(x)s", "0-0 1-1 3-1 4-2", "%(x)s", "Setz <b>%(x)s</b>"),
        ("Set {b}it{/b} to %(x)s", "Setz %(x)s", None, "%(x)s", "Setz <b>%(x)s</b>"),
        ("See {-img}a@b.de", "Sieh a@b.de an", "0-0 1-2 2-2 3-2", "a@b.de", "Sieh <img>a@b.de an"),
        ("See {-img}this a@b.de", "Sieh a@b.de", None, "a@b.de", "Sieh <img>a@b.de"),
        # Its signs are no punctuation beside it.
        ('Say {b}"%(x)s"{/b}', 'Sag "%(x)s"', "0-0 1-1 2-2", "%(x)s", 'Sag <b>"%(x)s"</b>'),
        ("Say {b}%%{/b} now", "Sag jetzt %%", None, "%%", "Sag jetzt <b>%%</b>"),
        # A content is not found in it, and no mark is moved out of it, unless that was so in the text.
        ("Type {=x} now", "Tipp %(x)s", "0-0 1-1 2-2", "%(x)s", "Tipp <code>x</code>%(x)s"),
        ("Type {=x} now", "Tipp %(x)s", None, "%(x)s", "Tipp <code>x</code>%(x)s"),
        ("Type %({=x})s", "Tipp %(x)s", "0-0 1-1 2-2", "%(x)s", "Tipp %(<code>x</code>)s"),
        ("Type %({=x})s", "Tipp %(x)s", None, "%(x)s", "Tipp %(<code>x</code>)s"),
        ("See a{b}@b.{/b}de", "Sieh a@b.de", "0-0 1-1 2-2 3-3", "a@b.de", "Sieh a<b>@b.</b>de"),
        ("See a{b}@b.{/b}de", "Sieh a@b.de", None, "a@b.de", "Sieh a<b>@b.</b>de"),
    ],
)
def test_a_kept_part_counts_as_one_word(source: str, translation: str, links: str | None, part: str, html: str) -> None:
    text, start = tagged(source), translation.index(part)
    alignment = None if links is None else aligned(text.text, translation, links)
    assert text.restore(translation, alignment, [(start, start + len(part))]) == html


@st.composite
def texts_with_kept_parts(draw: st.DrawFn) -> tuple[TaggedText, str, Alignment, list[tuple[int, int]]]:
    source, translation, alignment = draw(aligned_texts())
    borders = sorted(draw(st.sets(st.integers(0, len(translation)), max_size=6)))
    marks = [mark._replace(width=0) for mark in source.marks]
    return source._replace(marks=marks), translation, alignment, list(zip(borders[::2], borders[1::2], strict=False))


@given(texts_with_kept_parts(), st.booleans())
def test_no_mark_goes_into_a_kept_part(
    case: tuple[TaggedText, str, Alignment, list[tuple[int, int]]], is_aligned: bool
) -> None:
    source, translation, alignment, kept = case
    html = source.restore(translation, alignment if is_aligned else None, kept)
    places = [len(unescape(re.sub(r"<\d+>", "", html[: mark.start()]))) for mark in re.finditer(r"<\d+>", html)]
    for start, stop in kept:
        if any(start < place < stop for place in places):
            own = re.finditer(f"(?={re.escape(translation[start:stop])})", source.text)
            begins = [found.start() for found in own]
            assert any(begin < mark.place < begin + stop - start for begin in begins for mark in source.marks)
