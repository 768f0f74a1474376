"""Every kind of augmentation on any text."""

import re
from collections import Counter
from random import Random
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.augmentation.augmenter import Augmenter
from model.augmentation.kinds import Kind
from model.augmentation.spelling import Pair
from model.stand_ins import STAND_INS

KINDS: tuple[Kind, ...] = get_args(Kind)
WORD = st.one_of(
    st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=8),
    st.sampled_from(["Sarah", "the", "Straße", "Boston,", "{name}", "42", "3.5", "a@b.de", "https://x.org", "(Tilda)"]),
)
TEXT = st.lists(WORD, min_size=1, max_size=14).map(" ".join)
ENDING = st.sampled_from(["", ".", "!", "?"])
PAIRS = st.tuples(TEXT, TEXT, ENDING).map(lambda made: (made[0] + made[2], made[1] + made[2]))
RATES = st.dictionaries(st.sampled_from(KINDS), st.sampled_from([0.0, 0.5, 1.0]))
OTHER = ("It rains.", "Es regnet.")


def augmented(rates: dict[Kind, float], pair: Pair, seed: int = 0) -> Pair:
    return Augmenter(rates).augment(pair, Random(seed), lambda: OTHER)


@given(rates=RATES, pair=PAIRS, seed=st.integers())
def test_any_kinds_together(rates: dict[Kind, float], pair: Pair, seed: int) -> None:
    changed = augmented(rates, pair, seed)
    assert changed == augmented(dict(reversed(rates.items())), pair, seed)
    for side in changed:
        assert side.strip()
        assert not re.search(r"[\t\r\n]", side)


@given(pair=PAIRS, seed=st.integers())
def test_nothing_is_changed_without_rates(pair: Pair, seed: int) -> None:
    assert augmented({}, pair, seed) == augmented({"lower": 0.0}, pair, seed) == pair


@given(pair=PAIRS, kind=st.sampled_from(["names", "copies", "stand-ins", "emoji"]), seed=st.integers())
def test_what_is_copied_is_put_into_both_sides_equally_often(pair: Pair, kind: Kind, seed: int) -> None:
    """Of each word, the sides have as many more, or fewer, as before."""
    before, after = [
        [Counter(re.findall(r"\w+", side)) for side in each] for each in (pair, augmented({kind: 1}, pair, seed))
    ]
    for word in after[0] | after[1]:
        assert after[0][word] - after[1][word] == before[0][word] - before[1][word]


@given(pair=PAIRS, rates=RATES, seed=st.integers())
def test_stand_ins_stand_once_in_each_side(pair: Pair, rates: dict[Kind, float], seed: int) -> None:
    """As the server writes them, whatever else is changed: 1 to 8, none of them in the text before."""
    rates = rates | {"stand-ins": 1}
    without = augmented(rates | {"stand-ins": 0}, pair, seed)
    sides = augmented(rates, pair, seed)
    taken = " ".join(without).casefold()
    new = [name for name in STAND_INS if name.casefold() not in taken and name in sides[0]]
    if not {"names", "copies"} & rates.keys():
        assert 1 <= len(new) <= 8
    for name in new:
        assert [len(re.findall(rf"(?<!\w){name}(?!\w)", side)) for side in sides] == [1, 1]


def test_one_to_eight_stand_ins() -> None:
    pair = ("We can say nothing, so we wait.", "Wir können nichts sagen, also warten wir.")
    counts = Counter(
        sum(name in augmented({"stand-ins": 1}, pair, seed)[1] for name in STAND_INS) for seed in range(200)
    )
    assert set(counts) == set(range(1, 9))


def test_joined() -> None:
    assert augmented({"join": 1}, ("Yes.", "Ja.")) in [
        ("Yes. It rains.", "Ja. Es regnet."),
        ("Yes. It rains. It rains.", "Ja. Es regnet. Es regnet."),
    ]
    assert augmented({"join": 1}, ("Save", "Speichern")) == ("Save", "Speichern")
    long = ("a " * 40 + "b.", "c.")
    assert augmented({"join": 1}, long) == long


def test_emoji() -> None:
    source, target = augmented({"emoji": 1}, ("Yes.", "Ja."))
    assert source.removeprefix("Yes. ") == target.removeprefix("Ja. ") != "Ja."


@pytest.mark.parametrize("kind", KINDS)
def test_a_rate_is_a_share_of_the_pairs(kind: Kind) -> None:
    pair = ("The 4 p.m. train to Boston is 5 minutes late, $9.", "Der Zug um 16 Uhr nach Boston hat 5 Minuten, 9 $.")
    changed = sum(augmented({kind: 0.3}, pair, seed) != pair for seed in range(1000))
    assert 240 < changed < 360
