import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.quotation import with_common_quotes


@pytest.mark.parametrize(
    ("language", "text", "read"),
    [
        ("de-CH", "Er sagte «ja» und ›nein‹.", 'Er sagte "ja" und "nein".'),
        ("de", "“Ja”, ‚nein‘, „doch“ und geht’s", '"Ja", "nein", „doch“ und geht’s'),
        ("en", "He said « yes », »no« or ‘don’t’.", 'He said  "yes" , "no" or "don’t".'),
        ("en", "“Yes”, the dogs’ ‘n’ cats, Next » and « »", "“Yes”, the dogs’ ‘n’ cats, Next » and « »"),
        ("en", "In the ‘90s the boys’ club, get ‘em, girls’ toys", "In the ‘90s the boys’ club, get ‘em, girls’ toys"),
        ("en", "‘It’s the boys’ ball.’ He ran.", '"It’s the boys’ ball." He ran.'),
        ("de", "Er nannte es “ ” und ‚ ‘", "Er nannte es “ ” und ‚ ‘"),
        ("fr", "Il dit « oui ».", "Il dit « oui »."),
        ("", "«oui»", "«oui»"),
    ],
)
def test_rare_quotation_marks_are_read_as_straight_ones(language: str, text: str, read: str) -> None:
    assert with_common_quotes(text, language) == read


@given(st.text(st.sampled_from("a ’‘‚„“”«»‹›\n"), max_size=20), st.sampled_from(["de", "en"]))
def test_the_length_and_all_but_marks_and_blanks_stay(text: str, language: str) -> None:
    read = with_common_quotes(text, language)
    assert len(read) == len(text)
    assert read.count("a") == text.count("a")
