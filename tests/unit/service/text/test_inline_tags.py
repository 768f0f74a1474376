import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.inline_tags import InlineTag, TaggedText

TEXTS = st.text(st.sampled_from('Tom ann12 .,("<&\xa0你\u0301'), max_size=30)


def tagged(html: str) -> TaggedText:
    """Reads `{b}`, `{/b}` and `{=kept}` as marks: an opening one, a closing one, an element that is kept."""
    text, marks = "", []
    for number, piece in enumerate(html.replace("}", "{").split("{")):
        if number % 2 == 0:
            text += piece
        elif piece.startswith("="):
            marks.append(InlineTag(len(text), f"<code>{piece[1:]}</code>", width=len(piece) - 1))
            text += piece[1:]
        else:
            marks.append(InlineTag(len(text), f"<{piece}>", closes=piece.startswith("/")))
    return TaggedText(text, marks)


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
        ("Type {=make} now.", "Jetzt machen.", "Jetzt <code>make</code>machen."),
        ("Take 1 of {=1} now.", "Nimm jetzt 1 von 1.", "Nimm jetzt 1 von <code>1</code>."),
        ("a{=aa} a", "aaa a", "a<code>aa</code> a"),
        ("Take 1 of {=1} now.", "Nimm 1.", "Nimm <code>1</code>."),
        ("{=make} it.", "make, make.", "<code>make</code>, make."),
        ("{=a}{=a}", "a aa", "<code>a</code> <code>a</code>a"),
        ("{b}word{/b}", "", "<b></b>"),
    ],
)
def test_marks_go_where_their_words_went(source: str, translation: str, html: str) -> None:
    assert tagged(source).restore(translation) == html


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
    html = source.restore(translation)
    place = 0
    for mark in source.marks:
        place = html.index(mark.source, place)
        html = html[:place] + html[place + len(mark.source) :]
    assert html == TaggedText("").restore(translation)


@given(tagged_texts())
def test_a_text_that_is_its_own_translation_keeps_the_places(source: TaggedText) -> None:
    pieces, done = [], 0
    for mark in source.marks:
        pieces += [TaggedText("").restore(source.text[done : mark.place]), mark.source]
        done = mark.place
    assert source.restore(source.text) == "".join([*pieces, TaggedText("").restore(source.text[done:])])
