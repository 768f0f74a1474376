"""Work on the texts of a call, in and out: each by itself, so that a bad one does not hurt the others."""

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

import structlog

from dragoman.errors import DragomanError, InternalError
from service.calls import limits
from service.calls.call import Call, Read, Text
from service.calls.turns import Turns
from service.options import RequestOptions
from service.registry.catalog import ServedModel
from service.settings import Settings
from service.text.document import Document, TextResult

# Texts with more characters in all are read portion by portion, in turns: these take some milliseconds.
_SMALL: Final = 512
# Texts with more characters are read on a thread: a single part of one may take long.
_LARGE: Final = 8_192
_PORTION: Final = 64  # parts that are read in one turn; a text of one sentence has two
_HEAVY: Final = 128  # segments and tags that are put together in one turn, see `Document.weight`

_T = TypeVar("_T")
_log = structlog.get_logger()


class TextWorker:
    """Splits texts and puts translations together: what is small at once, all else slice by slice, in turns."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turns = Turns()
        # One thread: more would only take the interpreter lock from the event loop more often.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-texts")

    async def prepare(
        self, model: ServedModel, options: RequestOptions, call: Call, contents: Sequence[str], first: int = 0
    ) -> dict[int, Text]:
        """Make documents of texts: complete ones where the texts are small, else such as :meth:`read` reads.

        Args:
            model: that is to translate them.
            options: of the call.
            call: that is told of their progress.
            contents: the texts.
            first: the number of the first of them within the call.

        Returns:
            Each text by its number, or its error.
        """
        bad = limits.bad_texts(contents, self._settings, first)
        translator = model.translator
        small = sum(map(len, contents)) <= _SMALL
        make = translator.prepare if small else translator.open

        def made(index: int, text: str) -> Text:
            if index in bad:
                return bad[index]
            return _isolated(partial(make, text, options, partial(call.progress, index)))

        def prepare(group: Iterable[tuple[int, str]]) -> dict[int, Text]:
            return {index: made(index, text) for index, text in group}

        numbered = enumerate(contents, first)
        if small or not options.html:
            return prepare(numbered)
        texts: dict[int, Text] = {}
        for group in _groups(numbered):
            async with self._turns.turn(options.client):
                texts |= await self._on_thread(partial(prepare, group))
        return texts

    async def read(self, client: str, texts: deque[tuple[int, Document]]) -> list[Read]:
        """Read the next portion of texts, when it is the client's turn.

        Args:
            client: whose texts they are.
            texts: with their numbers; those that have been read to their end are removed.

        Returns:
            What was read, in the order of the texts.
        """
        portion: list[Read] = []
        async with self._turns.turn(client):
            parts = 0
            while texts and parts < _PORTION:
                index, document = texts[0]
                read = partial(_isolated, partial(document.read, _PORTION - parts))
                if document.characters <= _LARGE:
                    found = read()
                elif portion:
                    break  # for the thread, in the next turn
                else:
                    found = await self._on_thread(read)
                if isinstance(found, DragomanError):
                    texts.popleft()
                    portion.append(Read(index, error=found))
                    continue
                last = len(found) < _PORTION - parts
                if last:
                    texts.popleft()
                parts += len(found)
                portion.append(Read(index, document.add(found, last=last), last=last))
        return portion

    async def outcomes(self, client: str, call: Call, indices: Iterable[int]) -> dict[int, TextResult | DragomanError]:
        """Put the translations of finished texts together; gives each, or its error, by its number."""
        outcomes: dict[int, TextResult | DragomanError] = {}
        texts: dict[int, Text] = {}
        total = 0
        for index in indices:
            text = texts[index] = call.text(index)
            weight = 1 if isinstance(text, DragomanError) else text.weight
            total += weight
            if total > _HEAVY:
                async with self._turns.turn(client):
                    work = partial(_put_together, texts)
                    outcomes |= await self._on_thread(work) if weight > _HEAVY else work()
                texts, total = {}, 0
        return outcomes | _put_together(texts)

    async def _on_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def unexpected(error: Exception) -> InternalError:
    """Log an error of ours: its class and where, not its message, which may hold a text."""
    _log.error("unexpected error", error=type(error).__name__, at=traceback.format_tb(error.__traceback__))
    return InternalError("the server failed; its log says more")


def _put_together(texts: dict[int, Text]) -> dict[int, TextResult | DragomanError]:
    return {index: text if isinstance(text, DragomanError) else _isolated(text.result) for index, text in texts.items()}


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
