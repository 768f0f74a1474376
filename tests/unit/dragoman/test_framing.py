from typing import NamedTuple

import pytest

from dragoman.framing import Frame
from dragoman.language_marks import LanguageMarks, Languages


class Ends(NamedTuple):
    start_id: int = 1
    eos_id: int = 2


def framed(languages: Languages, source: str = "", target: str = "") -> Frame:
    return Frame.of(languages, Ends(), source, target)


def test_a_pair_has_the_end_of_the_sentence_and_nothing_else() -> None:
    frame = framed(Languages.pair("en", "de"))
    assert frame.around([7, 8]) == [7, 8, Ends().eos_id]
    assert (frame.start_ids, frame.tokens) == ((), 1)


@pytest.mark.parametrize("target", ["", "de"])
def test_all_marks_stand_in_their_places(target: str) -> None:
    languages = Languages(
        sources=("en", "fr"),
        targets=("de", "fr"),
        marks={
            "en": LanguageMarks(source_prefix=(10,), source_suffix=(11,), target_tag=(12,)),
            "de": LanguageMarks(source_prefix=(20,), target_tag=(21,), target_prefix=(22, 23), start_id=24),
        },
    )
    frame = framed(languages, "en", target)
    assert frame.around([7]) == [10, 21, 7, Ends().eos_id, 11]
    assert (frame.start_ids, frame.tokens) == ((24, 22, 23), 4)
    assert framed(languages, "fr", "fr") == ((), (Ends().eos_id,), ())


def test_forced_tokens_come_behind_the_start_of_the_model() -> None:
    languages = Languages(sources=("en",), targets=("de",), marks={"de": LanguageMarks(target_prefix=(22,))})
    assert framed(languages).start_ids == (Ends().start_id, 22)
