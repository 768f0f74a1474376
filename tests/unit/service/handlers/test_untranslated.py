"""Texts that are in the target language already."""

import pytest

from dragoman.errors import TextFailedError, UnknownLanguagePairError, to_text_error
from dragoman.v1 import translation_pb2 as pb
from service.handlers.untranslated import or_itself


def failed(error: Exception, detected: str) -> pb.TranslatedText:
    return pb.TranslatedText(text_error=to_text_error(error), detected_language_code=detected, detection_confidence=0.5)


def test_a_translation_stays() -> None:
    translated = pb.TranslatedText(translated_text="ja", detected_language_code="en")
    assert or_itself(translated, "yes", "de") == translated


@pytest.mark.parametrize("target", ["de", "de-AT"])
def test_a_text_in_the_target_language_comes_back(target: str) -> None:
    told = or_itself(failed(UnknownLanguagePairError("de to de"), "de"), "ja", target)
    assert told == pb.TranslatedText(translated_text="ja", detected_language_code="de", detection_confidence=0.5)


@pytest.mark.parametrize(
    ("error", "detected", "target"),
    [
        (UnknownLanguagePairError("it to de"), "it", "de"),
        (UnknownLanguagePairError("it to any"), "it", ""),
        (UnknownLanguagePairError("unknown"), "", "de"),
        (TextFailedError("failed"), "de", "de"),
    ],
)
def test_any_other_error_is_raised(error: Exception, detected: str, target: str) -> None:
    with pytest.raises(type(error), match=str(error)):
        or_itself(failed(error, detected), "ja", target)
