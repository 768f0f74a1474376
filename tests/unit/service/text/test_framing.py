import pytest

from dragoman.bundle import Manifest
from dragoman.language_marks import LanguageMarks, Languages
from service.text.framing import Frame


def framed(manifest: Manifest, languages: Languages, source: str = "", target: str = "") -> Frame:
    return Frame.of(manifest.model_copy(update={"languages": languages}), source, target)


def test_a_pair_has_the_end_of_the_sentence_and_nothing_else(manifest: Manifest) -> None:
    frame = framed(manifest, Languages.pair("en", "de"))
    assert frame.around([7, 8]) == [7, 8, manifest.eos_id]
    assert (frame.start_ids, frame.tokens) == ((), 1)


@pytest.mark.parametrize("target", ["", "de"])
def test_all_marks_stand_in_their_places(manifest: Manifest, target: str) -> None:
    languages = Languages(
        sources=("en", "fr"),
        targets=("de", "fr"),
        marks={
            "en": LanguageMarks(source_prefix=(10,), source_suffix=(11,), target_tag=(12,)),
            "de": LanguageMarks(source_prefix=(20,), target_tag=(21,), target_prefix=(22, 23), start_id=24),
        },
    )
    frame = framed(manifest, languages, "en", target)
    assert frame.around([7]) == [10, 21, 7, manifest.eos_id, 11]
    assert (frame.start_ids, frame.tokens) == ((24, 22, 23), 4)
    assert framed(manifest, languages, "fr", "fr") == ((), (manifest.eos_id,), ())


def test_forced_tokens_come_behind_the_start_of_the_model(manifest: Manifest) -> None:
    languages = Languages(sources=("en",), targets=("de",), marks={"de": LanguageMarks(target_prefix=(22,))})
    assert framed(manifest, languages).start_ids == (manifest.start_id, 22)
