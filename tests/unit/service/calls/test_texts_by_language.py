"""Texts by their languages: each goes somewhere, or says why not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InternalError, UnknownLanguagePairError
from service.calls.texts_by_language import group_by_language
from service.text.detection import Guess

guesses = st.lists(st.none() | st.sampled_from([Guess(code, 0.9) for code in ("de", "fr", "en", "ru")]), max_size=12)


@given(guesses, st.sets(st.integers(0, 11)))
def test_each_text_is_in_one_place(detected: list[Guess | None], bad_numbers: set[int]) -> None:
    bad = {number: InternalError("bad") for number in bad_numbers if number < len(detected)}
    found = group_by_language(detected, ["de", "fr"], "en", "", bad)
    placed = [number for numbers in found.texts.values() for number in numbers]
    assert sorted([*placed, *found.refused]) == list(range(len(detected)))
    assert found.texts.keys() <= {"de", "fr"}
    for number, error in found.refused.items():
        guess = detected[number]
        assert error is bad.get(number) or (guess and guess.language in ("en", "ru") and error.metadata)
    for language, numbers in found.texts.items():
        assert all(detected[number] is None or detected[number].language == language for number in numbers)


def test_a_text_that_says_nothing_goes_with_most_that_are_served() -> None:
    russian, german, french = (Guess(code, 0.9) for code in ("ru", "de", "fr"))
    found = group_by_language([russian, russian, french, french, german, None], ["de", "fr"], "en", "", {})
    assert found.texts == {"fr": [2, 3, 5], "de": [4]}
    assert group_by_language([russian, None], ["de", "fr"], "en", "", {}).texts == {"de": [1]}


def test_an_error_names_the_language_the_text_and_what_is_served() -> None:
    served = [f"l{place}" for place in range(9)]
    found = group_by_language([Guess(served[0], 0.9), Guess("ru", 0.876)], served, "", "many", {})
    error = found.refused[1]
    assert error.message == (
        "contents[1]: is in 'ru', as detected (confidence 0.88); there is translation by model many from "
        "l0, l1, l2, l3, l4, l5, l6, l7, ..."
    )
    with pytest.raises(UnknownLanguagePairError, match=r"^contents\[0\]: is in 'ru'.*from de \(and 1 more\)$"):
        group_by_language([Guess("ru", 1.0)] * 2, ["de"], "en", "", {}, all_or_nothing=True)
