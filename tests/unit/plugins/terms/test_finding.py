"""Where terms stand in a text, and which of them a translation lacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.glossary import GlossaryEntry
from plugins.terms import placeholders
from plugins.terms.finding import Index, Match, missing, occurrences
from plugins.terms.terms import Terms

# Words that share letters, signs and scripts without blanks, so that they often stand beside and inside each other.
PIECES = st.sampled_from(
    ["New", "York", "new", " ", " ", "-", "C++", "a", "ab", "é", "e\u0301", "東京", "都", "{x}", "_", "9"]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
ENTRIES = st.lists(
    st.builds(
        GlossaryEntry,
        st.lists(PIECES, min_size=1, max_size=3).map("".join).filter(lambda term: term == term.strip() != ""),
        st.lists(st.sampled_from(["Haus", "Häuser", "York"]), max_size=2).map(tuple),
        st.booleans(),
    ),
    max_size=8,
)


def found(text: str, *entries: GlossaryEntry, protects_placeholders: bool = False) -> list[str]:
    terms = Terms([Index(entries)], placeholders.find if protects_placeholders else None)
    return [text[match.start : match.stop] for match in terms.find(text)]


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("house", "a house, houses, a house.", 2),
        ("house", "House housework lighthouse", 0),
        ("C++", "C++ and C++.", 2),
        ("C", "C++", 1),
        ("New York", "New York, New  York", 1),
        ("cafe", "cafe\u0301", 0),
        ("हिन्दी", "हिन्दी में", 1),
        ("हिन", "हिन्दी", 0),
        ("東京", "東京都東京", 2),
        ("ไทย", "ภาษาไทยง่าย", 1),
        ("name", "my_name name", 1),
        ("Tom", "Tom's Tom-like 'Tom'", 3),
    ],
)
def test_terms_are_whole_words_but_in_scripts_without_blanks(term: str, text: str, expected: int) -> None:
    assert found(text, GlossaryEntry(term)) == [term] * expected


def test_case_counts_unless_it_is_ignored() -> None:
    assert found("NASA Nasa nasa", GlossaryEntry("Nasa")) == ["Nasa"]
    assert found("NASA Nasa nasa", GlossaryEntry("Nasa", (), True)) == ["NASA", "Nasa", "nasa"]


def test_the_longest_term_counts_and_of_equal_ones_the_first_glossary() -> None:
    short, long = GlossaryEntry("New York", ("kurz",)), GlossaryEntry("New York City", ("lang",))
    assert found("New York City, New York", short, long) == ["New York City", "New York"]
    terms = Terms([Index([short]), Index([GlossaryEntry("New York", ("anders",)), long])])
    assert [match.forms for match in terms.find("New York City, New York")] == [("lang",), ("kurz",)]


def test_entries_of_one_term_are_one_with_the_forms_of_all() -> None:
    [match] = Terms([Index([GlossaryEntry("a", ("b",)), GlossaryEntry("a", ("c", "b")), GlossaryEntry("a")])]).find("a")
    assert match == Match(0, 1, "a", ("b", "c", "a"), kept=False)
    [kept] = Terms([Index([GlossaryEntry("nasa", (), True)])]).find("NASA")
    assert kept == Match(0, 4, "nasa", ("NASA",), kept=True)


def test_no_term_overlaps_a_placeholder() -> None:
    entries = [GlossaryEntry("price %"), GlossaryEntry("price"), GlossaryEntry("name")]
    assert found("price %d {name} name", *entries, protects_placeholders=True) == ["price", "%d", "{name}", "name"]


@given(ENTRIES, TEXTS)
def test_what_is_found_is_a_term_at_each_place_where_one_can_be(entries: list[GlossaryEntry], text: str) -> None:
    matches = list(Terms([Index(entries)]).find(text))
    stop = 0
    for match in matches:
        assert stop <= match.start < match.stop
        stop = match.stop
    for entry in entries:  # each occurrence of its own is found, or something that begins before or is longer
        for place in range(len(text)):
            alone = [each for each in Terms([Index([entry])]).find(text) if each.start == place]
            if alone:
                assert any(each.start <= place < each.stop for each in matches)
                assert not any(each.start == place and each.stop < alone[0].stop for each in matches)


@given(ENTRIES, TEXTS)
def test_nothing_is_missing_in_the_text_that_was_searched(entries: list[GlossaryEntry], text: str) -> None:
    kept = [entry._replace(target_terms=()) for entry in entries]
    assert missing(Terms([Index(kept)]).find(text), text) == []


def test_a_term_is_missing_as_often_as_it_is() -> None:
    terms = Terms([Index([GlossaryEntry("house", ("Haus", "Hauses")), GlossaryEntry("home", ("Haus",))])])
    matches = list(terms.find("house, house, home"))
    assert missing(matches, "Haus Hauses Haus") == []
    assert missing(matches, "Hauses Haus") == [matches[0]] or missing(matches, "Hauses Haus") == [matches[1]]
    assert missing(matches, "Haushalt Häuser") == matches


def test_a_form_inside_of_another_counts_once() -> None:
    assert occurrences(["Haus", "Haus am See"], "Haus am See") == [(0, 11)]


def test_a_thousand_terms_are_found_in_a_long_text_as_fast_as_one() -> None:
    entries = [GlossaryEntry(f"term {number}") for number in range(1_000)]
    assert len(found("word " * 20_000 + "term 7 term 999 term 1000", *entries)) == 2
