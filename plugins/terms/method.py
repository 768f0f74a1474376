"""The method ListGlossaries."""

from typing import Final

from dragoman.v1 import translation_pb2 as pb
from plugins.terms.glossaries import StoredGlossaries
from service.handlers import validation
from service.handlers.answer import page
from service.handlers.context import CallContext
from service.handlers.methods import Method
from service.handlers.translation import TranslationHandlers


async def list_glossaries(
    handlers: TranslationHandlers, request: pb.ListGlossariesRequest, context: CallContext
) -> pb.ListGlossariesResponse:
    """List the stored glossaries."""
    with handlers.opened(LIST_GLOSSARIES.name, context) as record:
        handlers.gate.catalog()
        validation.check_page(request)
        record.admitted = True
        stored = handlers.glossaries if isinstance(handlers.glossaries, StoredGlossaries) else ()
        listed, token = page(stored, request)
        messages = [
            pb.StoredGlossary(
                name=glossary.name,
                source_language_code=glossary.source_language,
                target_language_code=glossary.target_language,
                entries=glossary.entries,
            )
            for glossary in listed
        ]
        return pb.ListGlossariesResponse(glossaries=messages, next_page_token=token)


LIST_GLOSSARIES: Final = Method("ListGlossaries", list_glossaries, pb.ListGlossariesRequest, pb.ListGlossariesResponse)
