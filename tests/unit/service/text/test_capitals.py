import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.text.capitals import in_capitals, in_small_letters


@pytest.mark.parametrize(
    ("text", "language", "small"),
    [
        ("DO NOT ENTER", "en", "Do not enter"),
        ("WHERE AM I, TOM?", "en-GB", "Where am I, tom?"),
        ("»BETRETEN VERBOTEN!«", "de", "»Betreten verboten!«"),
        ("MIT I UND J", "de", "Mit i und j"),
        ("ΔΕΝ ΕΙΝΑΙ", "", "Δεν ειναι"),
        ("NATO", "en", ""),
        ("USB 3", "en", ""),
        ("Do NOT ENTER", "en", ""),
        ("我在 NATO OTAN", "zh", ""),
        ("İSTANBUL", "tr", ""),
        ("DIE STRAẞE", "de", ""),
    ],
)
def test_a_sentence_in_capitals_is_read_in_small_letters(text: str, language: str, small: str) -> None:
    assert in_small_letters(text, language) == small


@given(st.text(st.sampled_from("ABÄßẞÉ ΣΟ5.,!İ你a"), max_size=30), st.sampled_from(["en", "de", ""]))
def test_places_stay_those_of_the_text(text: str, language: str) -> None:
    small = in_small_letters(text, language)
    assert small == "" or (len(small) == len(text) and small.upper() == text)


@given(st.text(max_size=30))
@example("Straße")
def test_a_translation_in_capitals_is_that_of_python(text: str) -> None:
    assert in_capitals(text).text == text.upper()


def test_places_of_a_translation_in_capitals() -> None:
    written = in_capitals("Die Straße ist da")
    assert written.text[slice(*written.after((4, 10)))] == "STRASSE"
    assert written.before((15, 18)) == (14, 17)
