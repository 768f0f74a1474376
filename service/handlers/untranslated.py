"""Answers of protocols whose clients expect each text back: in the target language already, or in an unknown one."""

from typing import Final

from dragoman import language
from dragoman.errors import UnknownLanguagePairError, from_text_error
from dragoman.language import AUTO
from dragoman.v1 import translation_pb2 as pb

_UNKNOWN_PAIR: Final = UnknownLanguagePairError.reason


def says_target(asked: pb.TranslateTextRequest) -> bool:
    """Tell whether a request says that its texts are in the target language already."""
    source, target = asked.source_language_code.lower(), asked.target_language_code.lower()
    return source == target and source not in ("", AUTO)


def texts_of(asked: pb.TranslateTextRequest, answer: pb.TranslateTextResponse) -> list[pb.TranslatedText]:
    """Give the translation of each text of a request, or the text itself; see :func:`or_itself`.

    Raises:
        DragomanError: the error of a text that has no translation.
    """
    target = asked.target_language_code
    return [or_itself(each, text, target) for each, text in zip(answer.translations, asked.contents, strict=True)]


def or_itself(translated: pb.TranslatedText, text: str, target: str) -> pb.TranslatedText:
    """Give the translation of a text: the text itself if its detected language is the target language already.

    Args:
        target: the wanted target language; "": the target language of the model.

    Raises:
        DragomanError: the error of the text, which has no translation.
    """
    if not translated.HasField("text_error"):
        return translated
    detected = translated.detected_language_code
    in_target = detected and target and language.covers(detected, target)
    if translated.text_error.reason == _UNKNOWN_PAIR and in_target:
        confidence = translated.detection_confidence
        return pb.TranslatedText(translated_text=text, detected_language_code=detected, detection_confidence=confidence)
    raise from_text_error(translated.text_error)
