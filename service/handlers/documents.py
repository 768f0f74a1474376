"""Documents: their texts are translated by one call of BatchTranslateText, and each gets its translation back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from dragoman.documents.document import Document, DocumentText
from dragoman.documents.formats import format_of, read_document
from dragoman.errors import DragomanError, InvalidRequestError, from_text_error
from dragoman.language import AUTO
from dragoman.v1 import translation_pb2 as pb
from service.calls.text_worker import unexpected
from service.handlers.context import CallContext
from service.handlers.delivery import deliver
from service.handlers.gate import Gate
from service.handlers.translation import TranslationHandlers
from service.handlers.validation import HTML

METHOD: Final = "BatchTranslateText"
_MESSAGE_TEXTS: Final = 64
_SHOWN: Final = 100  # characters of a name
_LOOKED_AT: Final = 2_000  # characters of a document whose language is detected
_EXTRA: Final = 'pip install "dragoman-server[documents]"'

_T = TypeVar("_T")


class AskedDocument(NamedTuple):
    """A document that is to be translated.

    Attributes:
        name: of its file, whose suffix says the format.
        content: of its file.
        source_language: `AUTO`: is to be detected, one for the whole document.
        target_language: that is wanted.
        glossaries: the names of stored ones.
    """

    name: str
    content: bytes
    source_language: str
    target_language: str
    glossaries: Sequence[str] = ()


def check_name(name: str) -> str:
    """Give back the name of a file whose format is known.

    Raises:
        InvalidRequestError: no format has its suffix.
    """
    try:
        format_of(name[-_SHOWN:])
    except ValueError as error:
        raise _invalid(error) from None
    return name


class Documents:
    """Translates documents; they are read and written on a thread of their own, one at a time.

    Args:
        handlers: of the methods.
        gate: of the server.
        max_contents: texts of one message.
    """

    def __init__(self, handlers: TranslationHandlers, gate: Gate, max_contents: int) -> None:
        self._handlers = handlers
        self._gate = gate
        self._message_texts = min(_MESSAGE_TEXTS, max_contents)
        self._thread = ThreadPoolExecutor(1, "documents")

    async def translate(self, asked: AskedDocument, context: CallContext) -> bytes:
        """Translate a document.

        Args:
            asked: the document.
            context: of the call.

        Returns:
            The content of the translated document.

        Raises:
            DragomanError: why there is none; of a text that cannot be translated, its place is named.
        """
        try:
            document = await self._converted(context, _read, asked)
        except Exception as error:
            self._handlers.refuse(METHOD, context, error if isinstance(error, DragomanError) else unexpected(error))
        source = asked.source_language
        if source.lower() == AUTO:
            source = await self._detected(document.texts, context)
        config = pb.BatchTranslateTextConfig(
            source_language_code=source,
            target_language_code=asked.target_language,
            mime_type=HTML,
            options=pb.TranslateOptions(
                protect_placeholders=document.protects_placeholders,
                glossary=pb.Glossary(names=asked.glossaries) if asked.glossaries else None,
            ),
        )
        translations = await self._translations(document.texts, config, context)
        try:
            return await self._converted(context, document.write, translations)
        except DragomanError:
            raise
        except Exception as error:
            raise unexpected(error) from None

    async def _translations(
        self, texts: Sequence[DocumentText], config: pb.BatchTranslateTextConfig, context: CallContext
    ) -> list[str | None]:
        translations: list[str | None] = [None] * len(texts)

        async def take(message: pb.BatchTranslateTextResponse) -> None:
            for each in message.translations:
                if each.translation.HasField("text_error"):
                    raise _at(texts[each.content_index], from_text_error(each.translation.text_error))
                translations[each.content_index] = each.translation.translated_text

        await deliver(self._handlers.batch(self._messages(texts, config), context), take)
        return translations

    async def _messages(
        self, texts: Sequence[DocumentText], config: pb.BatchTranslateTextConfig
    ) -> AsyncIterator[pb.BatchTranslateTextRequest]:
        yield pb.BatchTranslateTextRequest(config=config)
        waiting = (text.html for text in texts)
        while contents := list(islice(waiting, self._message_texts)):
            yield pb.BatchTranslateTextRequest(contents=contents)

    async def _detected(self, texts: Sequence[DocumentText], context: CallContext) -> str:
        """Detect the language of the texts that come first; the first that is served where they do not say it."""
        sample = ""
        for text in texts:
            sample += f"<p>{text.html}</p>"
            if len(sample) > _LOOKED_AT:
                break
        answer = await self._handlers.detect(pb.DetectLanguageRequest(contents=[sample], mime_type=HTML), context)
        languages = answer.detections[0].languages
        return languages[0].language_code if languages else self._gate.catalog().first_source

    async def _converted(self, context: CallContext, convert: Callable[..., _T], *args: object) -> _T:
        """Call a function on the thread.

        Raises:
            DragomanError: the deadline of the call passed meanwhile, or the server ends; or as the function.
        """
        async with self._gate.limited(context):
            return await asyncio.get_running_loop().run_in_executor(self._thread, convert, *args)


def _read(asked: AskedDocument) -> Document:
    try:
        return read_document(asked.name, asked.content)
    except ModuleNotFoundError as error:
        raise InvalidRequestError(
            f'file: {asked.name[-_SHOWN:]!r} needs the extra "documents" of dragoman-server, which is not installed '
            f"(no module {error.name!r}): {_EXTRA}"
        ) from None
    except ValueError as error:
        raise _invalid(error) from None


def _invalid(error: ValueError) -> InvalidRequestError:
    return InvalidRequestError(f"file: {error}", violations=[("file", str(error))])


def _at(text: DocumentText, error: DragomanError) -> DragomanError:
    """Name the place of a text in its error."""
    reason = "; ".join(violation.description for violation in error.violations) or error.message
    error.message = f"{text.place}: {reason}"
    return error
