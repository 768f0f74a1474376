from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tokenizer import Tokenizer
from plugins.terms.unwritten import Unwritten
from tests.default_model import BUNDLE

TOKENIZER = Tokenizer.open(BUNDLE)
UNWRITTEN = Unwritten(TOKENIZER, "en")


def found(text: str, unwritten: Unwritten = UNWRITTEN) -> list[str]:
    return [text[start:stop] for start, stop in unwritten.find(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("My friend Иван lives here.", ["Иван"]),
        ("Иван Петров, Αθήνα and שלום", ["Иван Петров", "Αθήνα", "שלום"]),
        ("The word 日本 means Japan.", ["日本"]),
        ("Chișinău and Tiếng Việt", ["Chișinău", "Tiếng Việt"]),
        ("हिन्दी is a language", ["हिन्दी"]),
        ("I like it 👍🏽 and 👩‍👩‍👧‍👦.", ["👍🏽", "👩‍👩‍👧‍👦"]),
        ("It costs 10⁶ or 1,5³ dollars.", ["10⁶", "1,5³"]),
        ("15½ inches, ½ cup, 80 m², H₂O", ["15½", "½", "m²", "H₂O"]),
        ("the author says¹ so", []),  # the number of a note
        ("Łódź, Dvořák, café, £5, 20 °C, a → b, x ≥ y, „so“ – …", []),  # Latin, and signs
        ("ﬁnd １２ Ⅳ", []),  # the tokenizer makes plain letters and digits of them
        ("Straße", []),
        ("", []),
    ],
)
def test_what_the_default_model_has_no_pieces_for(text: str, words: list[str]) -> None:
    assert found(text) == words


@pytest.mark.parametrize(("language", "words"), [("en", ["日本"]), ("zh-Hans", []), ("ja", [])])
def test_a_model_that_reads_such_a_script_reads_its_characters(language: str, words: list[str]) -> None:
    assert found("The word 日本 means Japan.", Unwritten(TOKENIZER, language)) == words


@given(st.text(st.sampled_from("ab .-1,²½Иё日👍🏽\u200d\u0301"), max_size=12))
def test_places_are_in_order_and_apart(text: str) -> None:
    spans = list(UNWRITTEN.find(text))
    assert all(start < stop for start, stop in spans)
    assert all(one[1] < other[0] for one, other in pairwise(spans))
