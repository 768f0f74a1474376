"""In which language the texts of a request are, by the request itself."""

from typing import NamedTuple

from dragoman.errors import UnknownModelError
from dragoman.language import AUTO
from dragoman.v1 import translation_pb2 as pb
from service.registry.catalog import Catalog

_Asked = pb.TranslateTextRequest | pb.BatchTranslateTextConfig | pb.ScoreTextRequest


class Spoken(NamedTuple):
    """The language of texts, or the languages among which it is to be detected.

    Attributes:
        source: its code; "" where the model need not be told, or where it is to be detected.
        among: the languages from which the request can be translated; empty where nothing is to be detected.
    """

    source: str
    among: tuple[str, ...] = ()


def spoken_of(asked: _Asked, catalog: Catalog) -> Spoken:
    """Say which language a request means.

    Args:
        asked: its message, not yet checked: where it can be served by no model, nothing is to be detected.
    """
    source = asked.source_language_code
    detects = source.lower() == AUTO
    if source and not detects:
        return Spoken(source)
    try:
        if asked.model and not detects and not catalog.named(asked.model).manifest.languages.needs_source:
            return Spoken("")
        sources = catalog.sources(asked.model, asked.target_language_code)
    except UnknownModelError:
        return Spoken("")
    if detects or len(sources) > 1:
        return Spoken("", sources)
    return Spoken("".join(sources))
