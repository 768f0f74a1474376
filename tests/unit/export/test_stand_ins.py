import re
from collections.abc import Sequence

import pytest

from export.stand_ins import _chosen

TEXTS = [f"yesterday Tilda saw {number} birds." for number in range(12)]


def chosen(texts: Sequence[str], translate) -> tuple[str, ...]:
    return _chosen(texts, translate, len)


def copies(*names: str, but: Sequence[str] = ()):
    """A model that copies these names, and writes others, and the sentences of `but`, in its own way."""

    def translate(texts: Sequence[str]) -> list[str]:
        known = "|".join(names)
        return [
            text if re.search(rf"\b({known})\b", text) and not any(word in text for word in but) else text.lower()
            for text in texts
        ]

    return translate


def test_names_that_are_copied_arechosen() -> None:
    assert set(chosen(TEXTS, copies("Tilda", "Tom", "Paris"))) == {"Tilda", "Tom", "Paris"}


def test_a_name_may_be_lost_in_few_sentences() -> None:
    assert set(chosen(TEXTS, copies("Tilda", "Tom", but=["Tom saw 3"]))) == {"Tilda", "Tom"}
    assert chosen(TEXTS, copies("Tilda", "Tom", but=["Tom saw 3", "Tom saw 4"])) == ("Tilda",)


def test_a_name_that_is_written_twice_is_not_copied() -> None:
    assert chosen(TEXTS, lambda texts: [text.replace("Tom", "Tom Tom") for text in texts])[:1] == ("Mary",)
    assert "Tom" not in chosen(TEXTS, lambda texts: [text.replace("Tom", "Tom Tom") for text in texts])


def test_names_of_few_pieces_come_first() -> None:
    pieces = {"Tilda": 4, "Tom": 1, "London": 1}
    names = _chosen(TEXTS, copies(*pieces, but=["Tom saw 3"]), lambda name: pieces.get(name, 9))
    assert names == ("London", "Tom", "Tilda")


@pytest.mark.parametrize("texts", [TEXTS[:9], [text.replace("Tilda", "somebody") for text in TEXTS], []])
def test_too_few_sentences_say_nothing(texts: list[str]) -> None:
    assert chosen(texts, copies("Tilda", "Tom")) == ()
