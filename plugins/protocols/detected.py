"""The languages of the texts of an answer, for protocols that name one for each."""

from collections.abc import Sequence

from dragoman.v1 import translation_pb2 as pb
from service.registry.catalog import Catalog
from service.text.detection import Guess, most_frequent


def languages_of(texts: Sequence[pb.TranslatedText], catalog: Catalog, target: str) -> list[str]:
    """Give the detected language of each text.

    A text without a detected language gets the language from which it was translated, see `group_by_language`.
    """
    detected = [Guess(each.detected_language_code, each.detection_confidence) for each in texts]
    common = most_frequent(detected, catalog.sources("", target), catalog.first_source(target))
    return [guess.language or common for guess in detected]
