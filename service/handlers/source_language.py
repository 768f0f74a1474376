"""The source language of a request, as the request itself says it."""

from typing import NamedTuple

from dragoman.errors import UnknownModelError
from dragoman.language import AUTO
from dragoman.v1 import translation_pb2 as pb
from service.registry.catalog import Catalog

_Asked = pb.TranslateTextRequest | pb.BatchTranslateTextConfig | pb.ScoreTextRequest


class SourceLanguage(NamedTuple):
    """The language of texts, or the languages among which it is to be detected.

    Attributes:
        code: code of the language; "" where the model needs no language, or where it is to be detected.
        among: the languages from which the request can be translated; empty where nothing is to be detected.
    """

    code: str
    among: tuple[str, ...] = ()


def source_language_of(asked: _Asked, catalog: Catalog) -> SourceLanguage:
    """Find the source language of a request, or the languages to detect.

    Args:
        asked: its message, not yet checked: where no model can serve the request, nothing is to be detected.
    """
    source = asked.source_language_code
    detects = source.lower() == AUTO
    if source and not detects:
        return SourceLanguage(source)
    try:
        if asked.model and not detects and not catalog.named(asked.model).manifest.languages.needs_source:
            return SourceLanguage("")
        sources = catalog.sources(asked.model, asked.target_language_code)
    except UnknownModelError:
        return SourceLanguage("")
    if detects or len(sources) > 1:
        return SourceLanguage("", sources)
    return SourceLanguage("".join(sources))
