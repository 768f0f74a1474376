import re
import tracemalloc
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.text import segmentation


class Split(NamedTuple):
    """A text in pieces: a separator before, between and after the segments, one more than there are segments."""

    separators: list[str]
    segments: list[str]
    inside: bool


def split(text: str, language: str, fits: Callable[[str], bool]) -> Split:
    separators, segments, inside = [""], [], False
    for piece in segmentation.split(text, language, fits):
        separators[-1] += piece.kept
        inside |= piece.inside
        if piece.text:
            segments.append(piece.text)
            separators.append("")
    return Split(separators, segments, inside)


def at_most(characters: int) -> Callable[[str], bool]:
    return lambda piece: len(piece) <= characters


ALPHABET = st.one_of(
    st.sampled_from(" |\t\n\r\x00\x1f\x85\u00a0\u2028\u200d\u3000.!?…,;:–—。！？；、，\"'”»)aAzZI19éß你😀\u0301"),
    st.characters(exclude_categories=["Cs"]),
)
TEXTS = st.text(ALPHABET, max_size=200)
LANGUAGES = st.sampled_from(["en", "de", "fr", "es", "ru", "zh", "ja", "ar", "hi", "el", "he", "th", "tlh", "EN-us"])


@given(TEXTS, LANGUAGES, st.integers(1, 50))
@example("", "en", 1)
@example(" \x00 ", "en", 1)
@example("e\u0301" * 20, "en", 3)
@example("A\u3000…‘.（,“ 《、\u3000）", "ja", 9)
def test_identity_translation_reproduces_the_text(text: str, language: str, limit: int) -> None:
    pieces = segmentation.split(text, language, at_most(limit))
    assert "".join(piece.kept + piece.text for piece in pieces) == text


@given(TEXTS, st.integers(1, 50))
def test_segments_fit_and_hold_no_blank_ends_and_no_control_characters(text: str, limit: int) -> None:
    for segment in split(text, "en", at_most(limit)).segments:
        assert 0 < len(segment) <= limit
        assert segment == segment.strip()
        assert any(character.isalnum() for character in segment)
        assert not any(character < " " or "\x7f" <= character <= "\x9f" for character in segment)


@given(TEXTS, st.integers(1, 50))
def test_separators_hold_no_words(text: str, limit: int) -> None:
    for separator in split(text, "en", at_most(limit)).separators:
        assert not any(
            character.isalnum() for character in re.sub(r"(?m)^[\s#>*+–—-]*(\d{1,2}|[a-z])\.\s", "", separator)
        )


@given(TEXTS)
def test_a_segment_is_not_split_again(text: str) -> None:
    for segment in split(text, "en", at_most(500)).segments:
        assert split(segment, "en", at_most(500)).segments == [segment]


# Texts by the language of their sentences; a bar stands where one ends.
SENTENCES = {
    "en": """
        Hello there. | How are you? | I am fine!
        Mr. Smith met Dr. J. R. Brown. | They talked.
        Use tools, e.g. Emacs. | Or vi.
        I have a Ph.D. in physics. | So has Prof. Jones.
        The U.S. government said so. | He lives in the U.S. | He likes it.
        We met at 5 p.m. yesterday. | At 6 p.m. Tom left.
        Apple Inc. makes phones. | They sell.
        J. K. Rowling wrote it. | He works at Yahoo! Inc. now.
        Pi is 3.14 or so. | It costs $2.50 now.
        He is No. 5 today. | I said no. | She left.
        It was in 1999. | Then it ended. | It ended in Jan. 2020.
        So am I. | You too.
        "Stop!" he cried. | "Why?" | She ran.
        “Yes. | No.” | He went.
        He said: "I am here. | Where are you?" | Then he left.
        ‘It’s Tom’s.’ | He doesn’t care.
        Well... perhaps. | He lost... | Then he won. | He lost. . . everything.
        Wait… | No. | Well… perhaps [...] not.
        (It rained.) | We left. | (It rained. | We stayed.)
        Good 😀. | Fine.
        example.com is up. | Version 1.2.3 is out. | ASP.NET too.
        See https://example.com/a.b?c=d. | Mail a.b@example.com. | Thanks.
        Is it? | yes it is
        It was great! | No! | So ok. | Tom waved.
        Call at 5 p.m. EST or at 6 a.m. Friday. | At 6 p.m. Tom left.
        See Vol. 3 of it. | Eq. 5 holds. | Ch. 4 too. | Cf. pp. 3-5.
        The temp. is high. | Nobody has seen the max. speed.
        I came. | iPhone sales rose. | He said: “Go. | (He said.) | Now.
        i came. | you went. | he stayed
        He saw me. | I said so. | She is OK. | Tom waved.
        It is 10 °C. | Wait – what? | Oh.
        I met Ms. Lee (approx. 50 people came). | Price excl. VAT. | Natl. Park.
        Approx. 5 people came. | Excl. VAT it costs 5 dollars. | Attn. Mr. Smith.
    """,
    "de": """
        Das ist z.B. gut, d. h. nicht schlecht. | Ja.
        Am 3. Oktober feiern wir. | Im 19. Jahrhundert nicht. | Der 1. FC Köln gewann.
        1. FC Köln
        Nr. 5 lebt. | Siehe S. 5 ff. bzw. Abb. 7 unten. | Es war 1999. | Dann kam er.
        Herr Dr. Müller kam. | Prof. Dr. h. c. Meier sprach. | Das kostet ca. 5 Euro.
        „Komm!“, rief er. | „Geh. | Jetzt.“ | Er ging. | »Nein.« | »Doch.«
        Er sah mich. | Sie sagt, dass sie ihn mag. | Magst du ihn?
        An Hrn. Meier (Tel. Büro). | Es kostet inkl. MwSt. und zzgl. Versand mind. Fünf Euro. | Nein.
        Inkl. Versand kostet es 5 Euro. | Zzgl. Porto. | Das Boot heisst Max. | Es schwimmt.
        Die techn. Daten zw. Ulm und Köln. | Der Dipl.-Ing. Weber hat die Kundennr. Acht. | Das gesetzl. Alter.
        Monatl. Kosten fallen an. | Es ist in html. | Gut.
        Wie edel. | Er soll. | Ist es kühl. | Ok. | Gut.
        Es geht u. a. um Geld. | Die Meier GmbH & Co. KG zahlt.
    """,
    "fr": """
        M. Dupont est là. | Il mange. | Je vois M. Durand.
        Vous venez ? | Oui ! | « Bonjour ! » dit-il. | « Bonjour. » | Elle rit.
        C'est bien, p. ex. ici. | Le n° 5 est là. | Il coûte 3,14 €. | C'est cher.
        En 52 av. J.-C. il y avait la guerre. | C'était l'été.
    """,
    "es": """
        El Sr. García vino. | La Dra. López habló. | Todos oyeron.
        ¿Cómo estás? | ¡Bien! | —¿Vienes? | —Sí.
        Vive en EE. UU. desde hace años. | Ud. es amable. | Cuesta 3.14 dólares.
    """,
    "pt-BR": "O Sr. Silva saiu. | A Dra. Ana ficou.",
    "zh": """
        你好。|我很好！|「是吗？」|对；好
        他说：“你好。|我走了。”|然后走了。
        价格是3.14元。|好。 | A公司。
    """,
    "ja": "「行く。」と言った。|「行く。」|元気ですか？ | はい！|これは3.14です。",
    "hi": "यह घर है। | वह लाल है।",
    "xx": "Nobody knows. | Nobody asks.",
}


@pytest.mark.parametrize(
    ("language", "line"),
    [(language, line.strip()) for language, lines in SENTENCES.items() for line in lines.strip().splitlines()],
)
def test_sentences(language: str, line: str) -> None:
    sentences = [sentence.strip() for sentence in line.split("|")]
    text = line.replace(" | ", " ").replace("|", "")
    assert split(text, language, at_most(1000)).segments == sentences


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("No full stop\nin these lines", ["No full stop", "in these lines"]),
        ("1. Buy milk\n2. Drink it\n\n5. Sleep", ["Buy milk", "Drink it", "5. Sleep"]),
        ("one\ttwo\x00three", ["one", "two", "three"]),
        ("Dr.\nSmith", ["Dr.", "Smith"]),
        ("“Yes.\r\nNo.”", ["“Yes.", "No.”"]),
    ],
)
def test_a_line_break_ends_a_segment(text: str, segments: list[str]) -> None:
    assert split(text, "en", at_most(1000)).segments == segments


@pytest.mark.parametrize(
    ("text", "separators", "segments"),
    [
        ("Home | My page. It is new. | Help", ["", " | ", " ", " | ", ""], ["Home", "My page.", "It is new.", "Help"]),
        ("| a  ||  b |", ["| ", "  ||  ", " |"], ["a", "b"]),
        ("Home › News » Help", ["", " › ", " » ", ""], ["Home", "News", "Help"]),
        ("Il dit « oui » et ‹ non › | oui", ["", " | ", ""], ["Il dit « oui » et ‹ non ›", "oui"]),
        ("Er sagt »ja« und ›nein‹", ["", ""], ["Er sagt »ja« und ›nein‹"]),
        ("=== Title ===", ["=== ", " ==="], ["Title"]),
        ("Chapter 1 ........ 12", ["", " ........ ", ""], ["Chapter 1", "12"]),
        ("Price   12 EUR    Total", ["", "   ", "    ", ""], ["Price", "12 EUR", "Total"]),
        ("Hello,   you there", ["", ""], ["Hello,   you there"]),
        ("Pictures (*.png);;All (*); for (;;) {", ["", ";;", ""], ["Pictures (*.png)", "All (*); for (;;) {"]),
        (
            "Good luck 🎂👍🏽 See you! I ❤️ New York",
            ["", " 🎂👍🏽 ", " ", ""],
            ["Good luck", "See you!", "I ❤️ New York"],
        ),
        ("Das neue 📱 Handy ist da", ["", ""], ["Das neue 📱 Handy ist da"]),
        ("-----BEGIN A MESSAGE-----", ["-----", "-----"], ["BEGIN A MESSAGE"]),
        ("See example.com/a----b and f****** it", ["", ""], ["See example.com/a----b and f****** it"]),
        ("Is a === b? Well... f**** it", ["", " ", ""], ["Is a === b?", "Well... f**** it"]),
        ("a|b, a| b and a |b", ["", ""], ["a|b, a| b and a |b"]),
    ],
)
def test_a_divider_between_blanks_ends_a_segment(text: str, separators: list[str], segments: list[str]) -> None:
    assert split(text, "en", at_most(1000)) == (separators, segments, False)


@pytest.mark.parametrize(
    ("text", "kept", "segments"),
    [
        ("## Title\n> - Quote\n– Yes", ["## ", "\n> - ", "\n– ", ""], ["Title", "Quote", "Yes"]),
        ("a. Milk\nb. Bread\nx. y", ["a. ", "\nb. ", "\n", ""], ["Milk", "Bread", "x. y"]),
        ("1. Mai", ["", ""], ["1. Mai"]),
        ("No!!! What?! I know??", ["", " ", "! ", "?"], ["No!!!", "What?", "I know?"]),
        ("1. Platz: Anna\n2. Platz: Ben", ["", "\n", ""], ["1. Platz: Anna", "2. Platz: Ben"]),
        ("24. Dezember\n25. Heute", ["", "\n", ""], ["24. Dezember", "25. Heute"]),
        ("c. es\nd. h. viele\ne. V.", ["", "\n", "\n", ""], ["c. es", "d. h. viele", "e. V."]),
        ("Eh - no", ["", ""], ["Eh - no"]),
    ],
)
def test_signs_at_the_ends_of_a_line_or_sentence_stay(text: str, kept: list[str], segments: list[str]) -> None:
    assert split(text, "de", at_most(1000)) == (kept, segments, False)


def test_signs_that_a_term_may_have_belong_to_it() -> None:
    pieces = segmentation.split("# Yahoo!!", "en", at_most(1000), lambda text: [])
    assert [piece.text for piece in pieces] == ["# Yahoo!!", ""]


def test_a_divider_inside_a_term_does_not() -> None:
    def terms(text: str) -> list[tuple[int, int]]:
        return [found.span() for found in re.finditer(r"\{.*?\}", text)]

    pieces = segmentation.split("Open it. See {a | b}, then {c | d} | here.", "en", at_most(1000), terms)
    assert [piece.text for piece in pieces] == ["Open it.", "See {a | b}, then {c | d}", "here.", ""]


def test_a_sentence_longer_than_the_window_is_one() -> None:
    unbroken = "Word, " * 1_000
    text = f"It began. {unbroken}and so on. It ended."
    assert split(text, "en", at_most(10_000)).segments == ["It began.", f"{unbroken}and so on.", "It ended."]


SENTENCES = ["Dr. Smith came.", "He said: “Go.”", "Why?", "It costs 3.14.", "It was me.", "Is it (OK)?"]


@given(st.lists(st.sampled_from(SENTENCES), min_size=1))
def test_the_window_is_not_seen(sentences: list[str]) -> None:
    assert split(" ".join(sentences * 50), "en", at_most(1000)).segments == sentences * 50


def test_it_says_whether_a_sentence_was_split_inside() -> None:
    assert not split("One two. Three four.\nFive six", "en", at_most(12)).inside
    assert split("One two. Three four.", "en", at_most(8)).inside


@pytest.mark.parametrize("text", ["", " ", "\n\n", "...", "* * *", "😀", "\x00", "—", "\u200b"])
def test_a_text_without_words_is_one_separator(text: str) -> None:
    assert split(text, "en", at_most(1000)) == ([text], [], False)


@pytest.mark.parametrize(
    ("text", "separators", "segments"),
    [
        ("🎉 Great news! 🎉🎉", ["🎉 ", " 🎉🎉"], ["Great news!"]),
        ("Family time ❤️", ["", " ❤️"], ["Family time"]),
        ("👨\u200d👩\u200d👧 ok👍🏽", ["👨\u200d👩\u200d👧 ", "👍🏽"], ["ok"]),
        ("• Milk\n• Bread →", ["• ", "\n• ", " →"], ["Milk", "Bread"]),
        ("\u202eGood morning.\u202c\u200e", ["\u202e", "\u202c\u200e"], ["Good morning."]),
        ("I ❤️ you", ["", ""], ["I ❤️ you"]),
        ("5 € ©", ["", ""], ["5 € ©"]),
        ("Yes \u200d", ["", ""], ["Yes \u200d"]),
    ],
)
def test_pictures_around_a_sentence_are_kept(text: str, separators: list[str], segments: list[str]) -> None:
    assert split(text, "en", at_most(1000)) == (separators, segments, False)


def test_pictures_that_belong_to_a_term_stay_with_its_sentence() -> None:
    pieces = segmentation.split("🎉 party", "en", at_most(1000), lambda text: [(0, len(text))])
    assert [piece.text for piece in pieces] == ["🎉 party", ""]


def test_separators_are_kept_exactly() -> None:
    result = split("  Hello there.\r\n\r\n\tHow are you? \u00a0 ", "en", at_most(100))
    assert result.separators == ["  ", "\r\n\r\n\t", " \u00a0 "]


def test_a_long_sentence_is_split_at_the_clause_nearest_to_its_middle() -> None:
    text = "When it rains, and it often does, we stay at home, where it is warm"
    assert split(text, "en", at_most(40)).segments == [
        "When it rains, and it often does,",
        "we stay at home, where it is warm",
    ]


@pytest.mark.parametrize("gap", [",  ", "，\u3000 ", "   –"])
def test_a_boundary_anywhere_in_a_large_sentence_is_found(gap: str) -> None:
    """Boundaries are searched for in portions of 10,000 characters."""
    for before in range(9_990, 10_004):
        text = "a" * before + gap + "b" * 10_000
        assert split(text, "en", at_most(10_010)).segments == re.split(r"\s+", text)


def test_clauses_are_only_split_when_too_long() -> None:
    text = "When it rains, we stay at home; you know – so it is"
    assert split(text, "en", at_most(100)).segments == [text]


def test_a_dash_begins_a_clause() -> None:
    assert split("We stayed at home  — nobody knows why", "en", at_most(25)).segments == [
        "We stayed at home",
        "— nobody knows why",
    ]


def test_a_long_clause_is_split_at_words() -> None:
    text = "one two three four five six seven eight"
    assert split(text, "en", at_most(20)).segments == ["one two three four", "five six seven eight"]


def test_an_endless_word_is_split_between_characters() -> None:
    assert split("abcdefghij", "en", at_most(3)).segments == ["ab", "cde", "fg", "hij"]


def test_an_endless_word_is_not_split_in_front_of_a_mark() -> None:
    assert split("ae\u0301" * 2, "en", at_most(4)).segments == ["ae\u0301", "ae\u0301"]


# What reads as one character, in at most four: marks on a letter, a joined emoji, a skin colour.
CLUSTERS = ["a", "é", "e\u0301\u0323", "o\u0302\u0301\u0323", "👍🏽", "👩\u200d💻", "你"]


@given(st.lists(st.sampled_from(CLUSTERS), max_size=40), st.integers(8, 20))
@example(["a", "a", "a", "e\u0301\u0323", "a", "a", "a"], 8)
def test_an_endless_word_is_split_between_whole_characters_however_many_marks_they_have(
    clusters: list[str], limit: int
) -> None:
    result = split("".join(clusters), "en", at_most(limit))
    # What has no letter is no segment but a separator; a character may be split into neither.
    pieces = [piece for pair in zip(result.separators, [*result.segments, ""], strict=True) for piece in pair]
    borders = set(accumulate(map(len, pieces)))
    assert borders <= {0, *accumulate(map(len, clusters))}


def test_a_character_that_never_fits_is_a_segment() -> None:
    assert split("ab", "en", lambda piece: False).segments == ["a", "b"]


UNITS = ["a", " ", ".", "word ", "a, ", "Hi there. ", "好。", '!"', "\n", "a.b.", ". ", " —", "\u0301", "\x00", "Mr. "]
MARKED_UNITS = ["“a. ", "«", "(", "\"a.' ", "1) ", "… ", "\u3000", "好。「", "me.", "|", "a | ", " » "]


@pytest.mark.parametrize("unit", UNITS + MARKED_UNITS)
def test_a_long_text_of_anything_is_linear(unit: str) -> None:
    text = unit * (40_000 // len(unit))
    measured = 0

    def fits(piece: str) -> bool:
        nonlocal measured
        measured += len(piece)
        return len(piece) <= 300

    pieces = segmentation.split(text, "en", fits)
    assert "".join(piece.kept + piece.text for piece in pieces) == text
    assert measured <= 16 * len(text)


def test_the_first_sentence_of_a_large_line_takes_no_work_on_all_of_it() -> None:
    text = "(Who) went there? " * 60_000
    tracemalloc.start()
    try:
        assert next(segmentation.split(text, "en", at_most(300))).text == "(Who) went there?"
        assert tracemalloc.get_traced_memory()[1] < len(text) // 2  # the most so far: no copy of the line
    finally:
        tracemalloc.stop()


def unbroken(*parts: str) -> segmentation.FindSpans:
    found = re.compile("|".join(map(re.escape, parts)))
    return lambda text: (match.span() for match in found.finditer(text))


@given(st.text(st.sampled_from("ab. !\n,Z"), max_size=60), st.integers(1, 20))
def test_what_belongs_together_is_never_split(text: str, limit: int) -> None:
    whole = unbroken("a. Z", "b, a", "! ")
    pieces = list(segmentation.split(text, "en", at_most(limit), whole))
    assert "".join(piece.kept + piece.text for piece in pieces) == text
    borders, place = set(), 0
    for piece in pieces:
        borders |= {place + len(piece.kept), place + len(piece.kept) + len(piece.text)}
        place += len(piece.kept) + len(piece.text)
        assert len(piece.text) <= limit or piece.text in ("a. Z", "b, a")
    for start, stop in unbroken("a. Z", "b, a")(text):
        assert not any(start < border < stop for border in borders)


def test_a_company_or_an_address_ends_no_sentence() -> None:
    text = "We bought Yahoo! Inc. in May. It was good."
    assert split(text, "en", at_most(99)).segments != [text]
    pieces = segmentation.split(text, "en", at_most(99), unbroken("Yahoo! Inc. in May. It"))
    assert [piece.text for piece in pieces if piece.text] == [text]
