"""Document translation: one call of BatchTranslateText translates the texts of a document."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from dragoman.documents.document import DocumentText, check_languages
from dragoman.documents.formats import format_of
from dragoman.errors import DragomanError, from_text_error
from dragoman.language import AUTO
from dragoman.v1 import translation_pb2 as pb
from plugins.batch.method import batch
from plugins.documents.process import DocumentProcess, invalid
from service.calls.limits import raise_if_any
from service.handlers import validation
from service.handlers.context import CallContext
from service.handlers.delivery import deliver
from service.handlers.source_language import source_language_of
from service.handlers.translation import TranslationHandlers
from service.wire import HTML

METHOD: Final = "BatchTranslateText"
_MESSAGE_TEXTS: Final = 64
_SHOWN: Final = 100  # characters of a name
_LOOKED_AT: Final = 2_000  # characters of a document that language detection reads


class AskedDocument(NamedTuple):
    """A document to translate.

    Attributes:
        name: the name of its file; the suffix decides the format.
        source_language: `AUTO`: detect one language for the whole document.
        glossaries: the names of stored glossaries.
    """

    name: str
    content: bytes
    source_language: str
    target_language: str
    glossaries: Sequence[str] = ()


def check_name(name: str) -> str:
    """Return the name of a file after checking that its format is known.

    Raises:
        InvalidRequestError: the suffix belongs to no format.
    """
    try:
        format_of(name[-_SHOWN:])
    except ValueError as error:
        raise invalid(str(error)) from None
    return name


class Documents:
    """Translates documents, each read and written in its own process."""

    def __init__(self, handlers: TranslationHandlers) -> None:
        self._handlers = handlers
        self._gate = handlers.gate
        self._message_texts = min(_MESSAGE_TEXTS, handlers.settings.max_contents)

    def check(self, asked: AskedDocument) -> None:
        """Check the languages and the glossaries, before the document is read.

        Raises:
            DragomanError: the server has no such model or glossary, or is not ready.
        """
        catalog, config = self._gate.catalog(), _config(asked, asked.source_language)
        source, glossaries = source_language_of(config, catalog), self._handlers.glossaries
        if not source.among:
            validation.route(config, source.code, catalog, self._handlers.settings, glossaries, prefix="config.")
            return
        first, bad = validation.choose(config, source.among[0], catalog, (), "config.")
        raise_if_any(bad)
        others = [catalog.choose("", each, asked.target_language) for each in source.among]
        glossaries.terms_of(config.options, first, "config.", others)

    async def translate(self, asked: AskedDocument, context: CallContext) -> bytes:
        """Translate a document; it is read only after the limits of its client have admitted the call.

        Returns:
            The content of the translated document.

        Raises:
            DragomanError: the translation failed; for a text that cannot be translated, the message names its place.
        """
        with self._gate.counting():  # the call ends before the document is written
            async with DocumentProcess(self._handlers.planner.metrics) as document:
                await self._translate(asked, document, context)
                async with self._gate.limited(context):
                    return await document.write()

    async def _translate(self, asked: AskedDocument, document: DocumentProcess, context: CallContext) -> None:
        places: dict[int, str] = {}  # of the pending texts, by number

        async def take(message: pb.BatchTranslateTextResponse) -> None:
            for each in message.translations:
                place = places.pop(each.content_index)
                if each.translation.HasField("text_error"):
                    raise _at(place, from_text_error(each.translation.text_error))
            await document.take({each.content_index: each.translation.translated_text for each in message.translations})

        async with aclosing(self._messages(asked, document, places, context)) as messages:
            await deliver(batch(self._handlers, messages, context), take)

    async def _messages(
        self, asked: AskedDocument, document: DocumentProcess, places: dict[int, str], context: CallContext
    ) -> AsyncGenerator[pb.BatchTranslateTextRequest, None]:
        """Read the document, and make the messages of the call that translates it."""
        await document.read(asked.name, asked.content)
        try:
            check_languages(asked.name, document.languages, asked.source_language, asked.target_language)
        except ValueError as error:
            raise invalid(str(error)) from None
        texts = await document.texts(self._message_texts)
        source = asked.source_language
        if source.lower() == AUTO:
            source = await self._detected(texts, asked.target_language, context)
        await document.speak(source, asked.target_language)
        config = _config(asked, source)
        config.options.protect_placeholders = document.protects_placeholders
        yield pb.BatchTranslateTextRequest(config=config)
        count = 0
        while texts:
            places.update((number, text.place) for number, text in enumerate(texts, count))
            count += len(texts)
            yield pb.BatchTranslateTextRequest(contents=[text.html for text in texts])
            texts = await document.texts(self._message_texts)

    async def _detected(self, texts: Sequence[DocumentText], target: str, context: CallContext) -> str:
        """Detect the language from the first texts; if they show none, use the first one with the target language."""
        sample = ""
        for text in texts:
            sample += f"<p>{text.html}</p>"
            if len(sample) > _LOOKED_AT:
                break
        request = pb.DetectLanguageRequest(contents=[sample], mime_type=HTML)
        [languages] = await self._handlers.rankings(request, context)
        return languages[0].language if languages else self._gate.catalog().first_source(target)


def _config(asked: AskedDocument, source: str) -> pb.BatchTranslateTextConfig:
    """Make the config of the call that translates a document from a language."""
    return pb.BatchTranslateTextConfig(
        source_language_code=source,
        target_language_code=asked.target_language,
        mime_type=HTML,
        options=pb.TranslateOptions(glossary=pb.Glossary(names=asked.glossaries) if asked.glossaries else None),
    )


def _at(place: str, error: DragomanError) -> DragomanError:
    """Add the place of a text to its error."""
    reason = "; ".join(violation.description for violation in error.violations) or error.message
    error.message = f"{place}: {reason}"
    return error
