"""Work on the texts of a call, in and out: each by itself, so that a bad one does not hurt the others."""

import asyncio
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

import structlog

from dragoman.errors import DragomanError, InternalError
from service import validation
from service.call import Call, Text
from service.catalog import ServedModel
from service.settings import Settings
from service.terms import Terms
from service.translator import TextResult

# Texts with more characters are split and put together off the event loop, which they would hold up.
_LARGE: Final = 8_192
_HEAVY: Final = 128  # the same in segments and tags, see `Document.weight`

_T = TypeVar("_T")
_log = structlog.get_logger()


class TextWork:
    """Splits texts and puts translations together: on the event loop where they are small, else on a thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # One thread: more would only take the interpreter lock from the event loop more often.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-texts")

    async def prepare(
        self, model: ServedModel, terms: Terms, call: Call, contents: Sequence[str], first: int = 0
    ) -> dict[int, Text]:
        """Make documents of texts.

        Args:
            model: that is to translate them.
            terms: of the call.
            call: that is told of their progress.
            contents: the texts.
            first: the number of the first of them within the call.

        Returns:
            Each text by its number, or its error.
        """
        bad = validation.bad_texts(contents, self._settings, first)

        def make(index: int, text: str) -> Text:
            if index in bad:
                return bad[index]
            return _isolated(partial(model.translator.prepare, text, terms, partial(call.progress, index)))

        def prepare(group: Iterable[tuple[int, str]]) -> dict[int, Text]:
            return {index: make(index, text) for index, text in group}

        numbered = enumerate(contents, first)
        if sum(map(len, contents)) <= _LARGE:
            return prepare(numbered)
        texts: dict[int, Text] = {}
        # Not all at once: the calls take turns on the thread, and one that is cancelled leaves it.
        for group in _groups(numbered):
            texts |= await self._run(partial(prepare, group), large=True)
        return texts

    async def outcomes(self, call: Call, indices: Iterable[int]) -> dict[int, TextResult | DragomanError]:
        """Put the translations of finished texts together; gives each, or its error, by its number."""
        texts = {index: call.text(index) for index in indices}
        weight = sum(0 if isinstance(text, DragomanError) else text.weight for text in texts.values())

        def put_together() -> dict[int, TextResult | DragomanError]:
            return {
                index: text if isinstance(text, DragomanError) else _isolated(text.result)
                for index, text in texts.items()
            }

        return await self._run(put_together, large=weight > _HEAVY)

    async def _run(self, work: Callable[[], _T], *, large: bool) -> _T:
        if not large:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def text_bytes_of(texts: Iterable[Text]) -> int:
    """Bytes that are to be translated, in UTF-8."""
    documents = (text for text in texts if not isinstance(text, DragomanError))
    return sum(segment.text_bytes for document in documents for segment in document.segments)


def unexpected(error: Exception) -> InternalError:
    """Log an error of ours: its class and where, not its message, which may hold a text."""
    _log.error("unexpected error", error=type(error).__name__, at=traceback.format_tb(error.__traceback__))
    return InternalError("the server failed; its log says more")


def _groups(numbered: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Yield the texts in groups, each just large enough for the thread."""
    group: list[tuple[int, str]] = []
    characters = 0
    for index, text in numbered:
        group.append((index, text))
        characters += len(text)
        if characters > _LARGE:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _isolated(work: Callable[[], _T]) -> _T | DragomanError:
    try:
        return work()
    except DragomanError as error:
        return error
    except Exception as error:
        return unexpected(error)
