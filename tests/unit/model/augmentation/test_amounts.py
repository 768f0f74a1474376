"""Amounts of money: others on both sides, and the same."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.augmentation.amounts import amounts

OTHER_WAY = str.maketrans(",.", ".,")


@given(
    amount=st.integers(1, 9_999_999),
    has_decimals=st.booleans(),
    sign=st.sampled_from("$€£"),
    is_german_first=st.booleans(),
    seed=st.integers(),
)
def test_both_sides_have_the_same_other_amount(
    amount: int, has_decimals: bool, sign: str, is_german_first: bool, seed: int
) -> None:
    number = f"{amount / 100:,.2f}" if has_decimals else f"{amount:,}"
    english, german = f"It costs {sign}{number}.", f"Es kostet {number.translate(OTHER_WAY)} {sign}."
    if is_german_first:
        german, english = amounts((german, english), Random(seed))
    else:
        english, german = amounts((english, german), Random(seed))
    found = re.fullmatch(r"It costs ([$€£])(\d{1,3}(?:,\d{3})*(?:\.\d\d)?)\.", english)
    assert found
    assert german == f"Es kostet {found[2].translate(OTHER_WAY)} {found[1]}."


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("It costs $5.", "Es kostet 6 $."),
        ("It costs $5.", "Es kostet $5."),
        ("It costs $5.", "Es kostet fünf Dollar."),
        ("It costs 5 dollars.", "Es kostet 5 Dollar."),
        ("Room 5 costs $5.", "Zimmer 5 kostet 5 $."),
        ("It costs $5 million.", "Es kostet 5 Millionen $."),
        ("It costs $5m.", "Es kostet 5 Mio. $."),
        ("It costs $5-10.", "Es kostet 5-10 $."),
        ("It costs $5 or $6.", "Es kostet 5 $."),
        ("It costs $5.5.", "Es kostet 5,5 $."),
        ("It costs $1,000.", "Es kostet 1,000 $."),
    ],
)
def test_a_pair_without_the_same_amounts_stays(english: str, german: str) -> None:
    assert amounts((english, german), Random(0)) == (english, german)
    assert amounts((german, english), Random(0)) == (german, english)


def test_each_of_several_amounts_changes_and_no_other_number() -> None:
    pair = ("Lot 7: was $8, now $5.50.", "Los 7: bisher 8 $, jetzt 5,50 $.")
    for english, german in {amounts(pair, Random(n)) for n in range(50)}:
        found = re.fullmatch(r"Lot 7: was ([$€£])([\d,.]+), now \1([\d,.]+)\.", english)
        assert found
        sign, first, second = found.groups()
        assert (
            german == f"Los 7: bisher {first.translate(OTHER_WAY)} {sign}, jetzt {second.translate(OTHER_WAY)} {sign}."
        )


@pytest.mark.parametrize("german", ["Es kostet 5 Dollar.", "Es kostet 5 US-$.", "Es kostet 5 US$."])
def test_a_sign_that_only_one_side_has_alone_stays(german: str) -> None:
    drawn = [amounts(("It costs $5.", german), Random(n)) for n in range(50)]
    assert {re.sub(r"[\d,.]*\d", "5", side) for pair in drawn for side in pair} == {"It costs $5.", german}
    assert len(set(drawn)) > 40
