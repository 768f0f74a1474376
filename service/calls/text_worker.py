"""Work on the texts of calls, in and out: each by itself, so that a bad one does not hurt the others."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Final, NamedTuple, TypeVar

from dragoman.errors import DragomanError
from service.calls import limits
from service.calls.turns import Turns
from service.failures import told
from service.options import RequestOptions
from service.segment import Segment
from service.settings import Settings
from service.text.detection import LOOKED_AT, Detector, Guess, Tongues, agree, new_detector
from service.text.document import Document
from service.text.result import TextResult
from service.text.translator import Translator

# Texts with more characters in all are read portion by portion, in turns: these take some milliseconds.
SMALL: Final = 512
# Texts with more characters are read on a thread: a single part of one may take long.
_LARGE: Final = 8_192
# What it takes to detect the language of a text besides that of each of its characters, in such.
_DETECTION: Final = 128
_PORTION: Final = 64  # parts that are read in one turn; a text of one sentence has two
HEAVY: Final = 128  # segments and tags that are put together in one turn, see `Document.weight`

_T = TypeVar("_T")

# One text of a call: on its way, or the error that stands in place of its translation.
Text = Document | DragomanError
Result = TextResult | DragomanError
# Told the number of a text and the segment of it that has a new token or is finished.
Progress = Callable[[int, Segment], None]


class Read(NamedTuple):
    """What was read of one text.

    Attributes:
        number: of the text.
        segments: that were found.
        last: whether there are no more.
        error: in place of all that, why the text cannot be read.
    """

    number: int
    segments: Sequence[Segment] = ()
    last: bool = True
    error: DragomanError | None = None


class TextWorker:
    """Splits texts and puts translations together: what is small at once, all else slice by slice, in turns."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turns = Turns()
        # One thread: more would only take the interpreter lock from the event loop more often.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-texts")

    @cached_property
    def _detector(self) -> Detector:
        return new_detector()

    async def open(
        self, translator: Translator, options: RequestOptions, contents: Mapping[int, str], progress: Progress
    ) -> dict[int, Text]:
        """Make documents of texts: complete ones where the texts are small, else such as :meth:`read` reads.

        Args:
            contents: the texts, by their numbers within the call.
            progress: called on the event loop for their segments.

        Returns:
            Each text by its number, or its error.
        """
        bad = limits.bad_texts(contents.items(), self._settings)
        if sum(map(len, contents.values())) <= SMALL:
            return _opened(translator.prepare, options, contents.items(), progress, bad)
        if not options.has_tags:
            return _opened(translator.open, options, contents.items(), progress, bad)
        texts: dict[int, Text] = {}
        for group in _groups(contents.items()):
            async with self._turns.turn(options.client):
                texts |= await self._on_thread(partial(_opened, translator.open, options, group, progress, bad))
        return texts

    async def load_detector(self) -> None:
        """Read what languages are detected with; nothing happens where it has been read."""
        if not self._detector.is_loaded:
            await asyncio.to_thread(self._detector.load)  # not on the thread that others wait for

    async def languages(
        self, client: str, contents: Sequence[str], tongues: Tongues, *, html: bool
    ) -> list[list[Guess]]:
        """Say in which languages texts may be, each by itself.

        Returns:
            What `Detector.rank` says of each.
        """

        def ranked(group: Iterable[tuple[int, str]]) -> list[list[Guess]]:
            return [self._detector.rank(text, tongues, html=html) for _, text in group]

        await self.load_detector()
        numbered = enumerate(contents)
        if sum(map(_work_of_detection, contents)) <= SMALL:
            return ranked(numbered)
        rankings: list[list[Guess]] = []
        for group in _groups(numbered, _work_of_detection):
            async with self._turns.turn(client):
                rankings += await self._on_thread(partial(ranked, group))
        return rankings

    async def agreed_languages(
        self, client: str, contents: Sequence[str], tongues: Tongues, *, html: bool
    ) -> list[Guess | None]:
        """Say in which language each of the texts of a call is, taken together; arguments as :meth:`languages`.

        Returns:
            What `detection.agree` says of them.
        """
        rankings = await self.languages(client, contents, tongues, html=html)
        work = partial(agree, rankings, list(map(len, contents)))
        if sum(map(_work_of_detection, contents)) <= SMALL:
            return work()
        async with self._turns.turn(client):
            return await self._on_thread(work)

    async def read(self, client: str, texts: deque[tuple[int, Document]]) -> list[Read]:
        """Read the next portion of texts, when it is the client's turn.

        Args:
            texts: with their numbers; those that have been read to their end are removed.

        Returns:
            What was read, in the order of the texts.
        """
        portion: list[Read] = []
        async with self._turns.turn(client):
            parts = 0
            while texts and parts < _PORTION:
                number, document = texts[0]
                read = partial(isolated, partial(document.read, _PORTION - parts))
                if document.characters <= _LARGE:
                    found = read()
                elif portion:
                    break  # for the thread, in the next turn
                else:
                    found = await self._on_thread(read)
                if isinstance(found, DragomanError):
                    texts.popleft()
                    portion.append(Read(number, error=found))
                    continue
                last = len(found) < _PORTION - parts
                if last:
                    texts.popleft()
                parts += len(found)
                portion.append(Read(number, document.add(found, last=last), last=last))
        return portion

    async def results(self, client: str, texts: Mapping[int, Text]) -> dict[int, Result]:
        """Put the translations of finished texts together, in turns where there are many.

        Returns:
            The translation of each, or its error, in the order of the texts.
        """
        results: dict[int, Result] = {}
        group: dict[int, Text] = {}
        total = 0
        for number, text in texts.items():
            group[number] = text
            weight = 1 if isinstance(text, DragomanError) else text.weight
            total += weight
            if total > HEAVY:
                async with self._turns.turn(client):
                    work = partial(_put_together, group)
                    results |= await self._on_thread(work) if weight > HEAVY else work()
                group, total = {}, 0
        return results | _put_together(group)

    async def _on_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _opened(
    make: Callable[..., Document],
    options: RequestOptions,
    numbered: Iterable[tuple[int, str]],
    progress: Progress,
    bad: Mapping[int, DragomanError],
) -> dict[int, Text]:
    """Make a document of each text but the bad ones, which have their errors."""
    texts: dict[int, Text] = {}
    for number, text in numbered:
        work = partial(make, text, options, partial(progress, number), f"contents[{number}]")
        texts[number] = bad[number] if number in bad else isolated(work)
    return texts


def _put_together(texts: Mapping[int, Text]) -> dict[int, Result]:
    return {number: text if isinstance(text, DragomanError) else text.outcome() for number, text in texts.items()}


def _work_of_detection(text: str) -> int:
    return _DETECTION + min(len(text), LOOKED_AT)


def _groups(
    numbered: Iterable[tuple[int, str]], work_of: Callable[[str], int] = len
) -> Iterator[list[tuple[int, str]]]:
    """Yield the texts in groups, each just large enough for the thread."""
    group: list[tuple[int, str]] = []
    work = 0
    for number, text in numbered:
        group.append((number, text))
        work += work_of(text)
        if work > _LARGE:
            yield group
            group, work = [], 0
    if group:
        yield group


def isolated(work: Callable[[], _T]) -> _T | DragomanError:
    """Give what comes of work on one text, or the error in its place."""
    try:
        return work()
    except Exception as error:
        return told(error)
