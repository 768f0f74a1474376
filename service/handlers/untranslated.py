"""Texts that need no translation, for protocols whose clients expect them back."""

from typing import Final

from dragoman import language
from dragoman.errors import UnknownLanguagePairError, from_text_error
from dragoman.v1 import translation_pb2 as pb

_UNKNOWN_PAIR: Final = UnknownLanguagePairError.reason


def or_itself(translated: pb.TranslatedText, text: str, target: str) -> pb.TranslatedText:
    """Give the translation of a text: the text itself where it was found to be in the target language already.

    Args:
        translated: what became of it.
        text: as it came.
        target: the language that is wanted; "": that of the model.

    Raises:
        DragomanError: why it has no translation.
    """
    if not translated.HasField("text_error"):
        return translated
    detected = translated.detected_language_code
    in_target = detected and target and language.covers(detected, target)
    if translated.text_error.reason == _UNKNOWN_PAIR and in_target:
        confidence = translated.detection_confidence
        return pb.TranslatedText(translated_text=text, detected_language_code=detected, detection_confidence=confidence)
    raise from_text_error(translated.text_error)
