"""Work on the texts of calls, before and after decoding: each text alone, so that a bad text does not affect others."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Final, NamedTuple, TypeVar

from dragoman.errors import DragomanError
from service.calls import limits
from service.calls.turns import Turns
from service.engine.workers import Workers
from service.failures import told
from service.options import RequestOptions
from service.registry import allocator
from service.segment import Segment
from service.settings import Settings
from service.text.detection import LOOKED_AT, CandidateLanguages, Detector, Guess, agree, new_detector
from service.text.document import Document
from service.text.result import TextResult
from service.text.translator import Translator

# Texts with more characters in total are read portion by portion, in turns; this number takes some milliseconds.
SMALL: Final = 512
# A text with more characters is read on a thread: a single part of the text may take long.
_LARGE: Final = 8_192
# Fixed cost of detecting the language of a text, in addition to its characters, in characters.
_DETECTION: Final = 128
_PORTION: Final = 64  # parts that are read in one turn; a text of one sentence has two
HEAVY: Final = 128  # segments and tags that are put together in one turn, see `Document.weight`

_T = TypeVar("_T")

# One text of a call: its document, or the error in place of its translation.
Text = Document | DragomanError
Result = TextResult | DragomanError
# Called with the number of a text, and with its segment that has a new token or is finished.
Progress = Callable[[int, Segment], None]


class Read(NamedTuple):
    """The result of reading a portion of one text.

    Attributes:
        last: whether there are no more segments.
        error: why the text cannot be read; None: it can.
    """

    number: int
    segments: Sequence[Segment] = ()
    last: bool = True
    error: DragomanError | None = None


class TextWorker:
    """Splits texts and puts translations together: small texts at once, all others slice by slice, in turns."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turns = Turns()
        # One thread: more would only take the interpreter lock from the event loop more often.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-texts")
        self._loading: asyncio.Future[None] | None = None  # of the detector

    @cached_property
    def _detector(self) -> Detector:
        return new_detector()

    async def open(
        self,
        translator: Translator,
        options: RequestOptions,
        contents: Mapping[int, str],
        progress: Progress,
        *,
        of_caller: bool = True,
    ) -> dict[int, Text]:
        """Make documents of texts: small texts are read at once, all others have to be read by :meth:`read`.

        Args:
            contents: the texts, by their numbers within the call.
            progress: called on the event loop for their segments.
            of_caller: whether the caller sent them; translations into a pivot language are never too large.

        Returns:
            Each text by its number, or its error.
        """
        bad = limits.bad_texts(contents.items(), self._settings) if of_caller else {}
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
        """Load the data of the language detector; does nothing where they have been loaded."""
        if not self._detector.is_loaded:
            if self._loading is None or self._loading.done():  # done: it failed, and is tried again
                # Not on the thread that other calls need, and on one that the end of the process does not wait for.
                loading = Workers("detector", [self._load_detector])
                loading.start()
                self._loading = asyncio.wrap_future(loading.ended)
            await asyncio.shield(self._loading)  # other calls wait, too

    def _load_detector(self) -> None:
        with allocator.loading:
            self._detector.load()

    async def languages(
        self, client: str, contents: Sequence[str], candidates: CandidateLanguages, *, html: bool
    ) -> list[list[Guess]]:
        """Estimate which languages texts may be in, each text alone.

        Returns:
            The result of `Detector.rank` for each text.
        """

        def ranked(group: Iterable[tuple[int, str]]) -> list[list[Guess]]:
            return [self._detector.rank(text, candidates, html=html) for _, text in group]

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
        self, client: str, contents: Sequence[str], candidates: CandidateLanguages, *, html: bool
    ) -> list[Guess | None]:
        """Choose the language of each text of a call, by all texts together; arguments as :meth:`languages`.

        Returns:
            The result of `detection.agree`.
        """
        rankings = await self.languages(client, contents, candidates, html=html)
        work = partial(agree, rankings, list(map(len, contents)))
        if sum(map(_work_of_detection, contents)) <= SMALL:
            return work()
        async with self._turns.turn(client):
            return await self._on_thread(work)

    async def read(self, client: str, texts: deque[tuple[int, Document]]) -> list[Read]:
        """Read the next portion of texts, when it is the client's turn.

        Args:
            texts: texts with their numbers; a text that has been read to its end is removed.

        Returns:
            The results of reading, in the order of the texts.
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
                    break  # this text is for the thread, in the next turn
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
            The translation of each text, or its error, in the order of the texts.
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
    """Make a document of each text; a bad text gets its error instead."""
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
    """Give the result of work on one text, or the error in its place."""
    try:
        return work()
    except Exception as error:
        return told(error)
