"""Texts that are in the target language already."""

import pytest

from dragoman.errors import TextFailedError, UnknownLanguagePairError, to_text_error
from dragoman.language_marks import Languages
from dragoman.v1 import translation_pb2 as pb
from plugins.protocols.detected import languages_of
from service.handlers.untranslated import or_itself, texts_of
from service.registry.catalog import Catalog, ServedModel


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


def test_each_text_of_a_request_has_its_own() -> None:
    asked = pb.TranslateTextRequest(contents=["yes", "ja"], target_language_code="de")
    answer = pb.TranslateTextResponse(
        translations=[pb.TranslatedText(translated_text="ja"), failed(UnknownLanguagePairError("de to de"), "de")]
    )
    assert [each.translated_text for each in texts_of(asked, answer)] == ["ja", "ja"]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["", "fr", ""], ["fr", "fr", "fr"]),
        (["en", "fr", "fr", ""], ["en", "fr", "fr", "fr"]),
        (["de", "fr"], ["de", "fr"]),
        (["de", ""], ["de", "en"]),  # the first text came back as it is
        ([""], ["en"]),
    ],
)
def test_a_text_that_says_nothing_is_in_the_language_it_was_translated_from(
    manifest, codes: list[str], expected: list[str]
) -> None:
    pairs = [("de", "en"), ("en", "de"), ("fr", "de")]
    catalog = Catalog(
        ServedModel(manifest.model_copy(update={"name": "-".join(pair), "languages": Languages.pair(*pair)}), 32)
        for pair in pairs
    )
    texts = [pb.TranslatedText(detected_language_code=code) for code in codes]
    assert languages_of(texts, catalog, "de") == expected
