from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.segmentation import join, split


def at_most(characters: int) -> Callable[[str], bool]:
    return lambda piece: len(piece) <= characters


ALPHABET = st.one_of(
    st.sampled_from(" \t\n\r\x00\x1f\x85\u00a0\u2028\u200d\u3000.!?…,;:–—。！？；、，\"'”»)aAzZI19éß你😀\u0301"),
    st.characters(exclude_categories=["Cs"]),
)
TEXTS = st.text(ALPHABET, max_size=200)


@given(TEXTS, st.integers(1, 50))
@example("", 1)
@example(" \x00 ", 1)
@example("e\u0301" * 20, 3)
def test_identity_translation_reproduces_the_text(text: str, limit: int) -> None:
    result = split(text, at_most(limit))
    assert join(*result) == text
    assert len(result.separators) == len(result.segments) + 1


@given(TEXTS, st.integers(1, 50))
def test_segments_fit_and_hold_no_blank_ends_and_no_control_characters(text: str, limit: int) -> None:
    for segment in split(text, at_most(limit)).segments:
        assert 0 < len(segment) <= limit
        assert segment == segment.strip()
        assert any(character.isalnum() for character in segment)
        assert not any(character < " " or "\x7f" <= character <= "\x9f" for character in segment)


@given(TEXTS, st.integers(1, 50))
def test_separators_hold_no_words(text: str, limit: int) -> None:
    for separator in split(text, at_most(limit)).separators:
        assert not any(character.isalnum() for character in separator)


@given(TEXTS)
def test_a_segment_is_not_split_again(text: str) -> None:
    for segment in split(text, at_most(500)).segments:
        assert split(segment, at_most(500)).segments == [segment]


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("Hello there. How are you?  I am fine!", ["Hello there.", "How are you?", "I am fine!"]),
        ("No full stop\nin these lines", ["No full stop", "in these lines"]),
        ("Mr. Smith met Dr. J. R. Brown. They talked.", ["Mr. Smith met Dr. J. R. Brown.", "They talked."]),
        ("Das ist z.B. gut, d. h. nicht schlecht. Ja.", ["Das ist z.B. gut, d. h. nicht schlecht.", "Ja."]),
        ("Use tools, e.g. Emacs. Or vi.", ["Use tools, e.g. Emacs.", "Or vi."]),
        ("Pi is 3.14 or so. It costs $2.50 now.", ["Pi is 3.14 or so.", "It costs $2.50 now."]),
        ("He is No. 5 today. I said no. She left.", ["He is No. 5 today.", "I said no.", "She left."]),
        ("It was in 1999. Then it ended.", ["It was in 1999.", "Then it ended."]),
        ("1. Buy milk\n2. Drink it", ["1. Buy milk", "2. Drink it"]),
        ("So am I. You too.", ["So am I.", "You too."]),
        ('"Stop!" he cried. "Why?" She ran.', ['"Stop!" he cried.', '"Why?"', "She ran."]),
        ("Well... perhaps. Wait… No.", ["Well... perhaps.", "Wait…", "No."]),
        ("(It rained.) We left.", ["(It rained.)", "We left."]),
        ("你好。我很好！「是吗？」对；好", ["你好。", "我很好！", "「是吗？」", "对；", "好"]),
        ("one\ttwo\x00three", ["one", "two", "three"]),
        ("Good 😀. Fine.", ["Good 😀.", "Fine."]),
        ("example.com is up. Version 1.2.3 is out.", ["example.com is up.", "Version 1.2.3 is out."]),
        ("Is it? yes it is", ["Is it?", "yes it is"]),
    ],
)
def test_sentences(text: str, segments: list[str]) -> None:
    assert split(text, at_most(1000)).segments == segments


@pytest.mark.parametrize("text", ["", " ", "\n\n", "...", "* * *", "😀", "\x00", "—", "\u200b"])
def test_a_text_without_words_is_one_separator(text: str) -> None:
    assert split(text, at_most(1000)) == ([text], [])


def test_separators_are_kept_exactly() -> None:
    result = split("  Hello there.\r\n\r\n\tHow are you? \u00a0 ", at_most(100))
    assert result.separators == ["  ", "\r\n\r\n\t", " \u00a0 "]


def test_a_long_sentence_is_split_at_the_clause_nearest_to_its_middle() -> None:
    text = "When it rains, and it often does, we stay at home, where it is warm"
    assert split(text, at_most(40)).segments == [
        "When it rains, and it often does,",
        "we stay at home, where it is warm",
    ]


def test_clauses_are_only_split_when_too_long() -> None:
    text = "When it rains, we stay at home; you know – so it is"
    assert split(text, at_most(100)).segments == [text]


def test_a_dash_begins_a_clause() -> None:
    assert split("We stayed at home  — nobody knows why", at_most(25)).segments == [
        "We stayed at home",
        "— nobody knows why",
    ]


def test_a_long_clause_is_split_at_words() -> None:
    text = "one two three four five six seven eight"
    assert split(text, at_most(20)).segments == ["one two three four", "five six seven eight"]


def test_an_endless_word_is_split_between_characters() -> None:
    assert split("abcdefghij", at_most(3)).segments == ["ab", "cde", "fg", "hij"]


def test_an_endless_word_is_not_split_in_front_of_a_mark() -> None:
    assert split("ae\u0301" * 2, at_most(4)).segments == ["ae\u0301", "ae\u0301"]


def test_a_character_that_never_fits_is_a_segment() -> None:
    assert split("ab", lambda piece: False).segments == ["a", "b"]


@pytest.mark.parametrize(
    "unit",
    ["a", " ", ".", "word ", "a, ", "Hi there. ", "好。", '!"', "\n", "a.b.", ". ", " —", "\u0301", "\x00", "Mr. "],
)
def test_a_megabyte_of_anything_is_linear(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    measured = 0

    def fits(piece: str) -> bool:
        nonlocal measured
        measured += len(piece)
        return len(piece) <= 300

    assert join(*split(text, fits)) == text
    assert measured <= 16 * len(text)


def test_join_refuses_the_wrong_number_of_segments() -> None:
    with pytest.raises(ValueError, match="zip"):
        join(["", ""], [])
