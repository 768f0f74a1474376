"""Texts of several calls: small ones at once, others portion by portion, in the turns of their clients."""

import asyncio
import threading
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.errors import InvalidRequestError
from plugins.detection.detector import LanguageDetector
from service.calls.text_worker import TextWorker
from service.options import RequestOptions
from service.settings import Settings
from service.text.detection import CandidateLanguages
from service.text.document import Document
from tests.unit.service.calls.played_texts import CharacterTranslator
from tests.unit.service.played_engine import until
from tests.unit.service.played_segments import end

PORTION = 64
LARGE = 10_000  # characters: such a text is read on a thread


async def prepare(work: TextWorker, translator: CharacterTranslator, *contents: str) -> dict[int, Any]:
    return await work.open(translator, RequestOptions(), dict(enumerate(contents, 7)), lambda *_: None)  # type: ignore[arg-type]


async def read_all(work: TextWorker, client: str, documents: dict[int, Document]) -> list[int]:
    """Reads texts to their ends; gives the segments of each portion."""
    unread, portions = deque(documents.items()), []
    while unread:
        portions.append(sum(len(read.segments) for read in await work.read(client, unread)))
    return portions


async def test_small_texts_are_numbered_and_read_at_once() -> None:
    texts = await prepare(TextWorker(Settings()), CharacterTranslator(), "a", "bb")
    assert {number: (text.complete, len(text.segments)) for number, text in texts.items()} == {
        7: (True, 1),
        8: (True, 2),
    }


async def test_others_are_read_in_portions_on_the_loop_or_on_a_thread_where_one_text_is_large() -> None:
    work, translator = TextWorker(Settings()), CharacterTranslator()
    texts = await prepare(work, translator, "a" * 600, "b", "c" * 40)
    assert not any(text.complete for text in texts.values())
    assert not translator.read
    portions = await read_all(work, "x", texts)
    assert max(portions) <= PORTION
    assert sum(portions) == 641
    assert translator.threads == {threading.get_ident()}
    assert translator.read == [*"a" * 600, "b", *"c" * 40]
    assert all(text.complete for text in texts.values())
    translator.threads.clear()
    await read_all(work, "x", await prepare(work, translator, "d" * LARGE))
    assert threading.get_ident() not in translator.threads


@pytest.mark.parametrize("characters", [1_000, LARGE], ids=["on the loop", "on the thread"])
async def test_a_client_with_many_texts_waits_for_the_text_of_another_and_not_the_other_way_round(
    characters: int,
) -> None:
    work, translator = TextWorker(Settings()), CharacterTranslator()
    flood = [
        asyncio.create_task(read_all(work, "a", await prepare(work, translator, "a" * characters))) for _ in range(12)
    ]
    await until(lambda: len(translator.read) > 0)
    before = len(translator.read)
    await read_all(work, "b", await prepare(work, translator, "b" * 600))
    turns = -(-601 // PORTION)
    # The portion that ran, and one before each of its own.
    assert len(translator.read) - before - 600 <= (turns + 2) * PORTION
    assert not any(task.done() for task in flood)
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)
    assert len(translator.read) < 12 * characters


async def test_a_small_call_waits_for_no_turn() -> None:
    work, translator = TextWorker(Settings()), CharacterTranslator()
    translator.may_go_on.clear()
    large = asyncio.create_task(read_all(work, "a", await prepare(work, translator, "a" * LARGE)))
    await until(lambda: bool(translator.read))
    small = CharacterTranslator()
    assert len(await prepare(work, small, "b")) == 1
    translator.may_go_on.set()
    large.cancel()
    with pytest.raises(asyncio.CancelledError):
        await large


async def test_a_call_that_is_cancelled_is_read_no_further() -> None:
    work, translator = TextWorker(Settings()), CharacterTranslator()
    translator.may_go_on.clear()
    task = asyncio.create_task(read_all(work, "a", await prepare(work, translator, "a" * LARGE)))
    await until(lambda: bool(translator.read))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    translator.may_go_on.set()
    await read_all(work, "b", await prepare(work, translator, "b" * LARGE))
    assert translator.read.count("a") <= PORTION


async def test_a_text_that_cannot_be_read_is_an_error_among_the_others() -> None:
    work, translator = TextWorker(Settings()), CharacterTranslator(ValueError())
    texts = await prepare(work, translator, "!" * 600, "b")
    bad, good = await work.read("x", deque(texts.items()))
    assert (bad.number, bad.error.reason, bad.last) == (7, "INTERNAL", True)
    assert (good.number, good.error, len(good.segments)) == (8, None, 1)


def finished(segments: int) -> Document:
    document = CharacterTranslator().prepare("a" * segments)
    for segment in document.segments:
        end(segment)
    return document


async def test_many_translations_are_put_together_in_turns_and_in_order() -> None:
    work = TextWorker(Settings())
    texts, others = ({index: finished(index % 3 + 1) for index in range(1_000)} for _ in range(2))
    theirs = asyncio.create_task(work.results("b", others))
    await asyncio.sleep(0)  # the other client has its turn
    few = await work.results("a", {index: finished(index % 3 + 1) for index in range(3)})
    assert not theirs.done()
    many = asyncio.create_task(work.results("a", texts))
    await asyncio.sleep(0)
    assert not many.done()
    assert list(await theirs) == list(range(1_000))
    results = await many
    assert list(results) == list(range(1_000))
    assert [result.text for result in few.values()] == ["x", "xx", "xxx"]
    assert [result.text for result in results.values()] == ["x" * (index % 3 + 1) for index in range(1_000)]


@pytest.mark.parametrize(("weight", "on_the_loop"), [(128, True), (129, False)])
async def test_a_text_that_takes_long_to_put_together_leaves_the_event_loop_alone(
    weight: int, on_the_loop: bool
) -> None:
    text: Any = SimpleNamespace(weight=weight, outcome=threading.get_ident)
    results = await TextWorker(Settings()).results("a", {0: text})
    assert (results[0] == threading.get_ident()) is on_the_loop


async def test_languages_of_long_texts_are_detected_on_a_thread_and_so_is_the_model_read(monkeypatch) -> None:
    candidates, threads = CandidateLanguages(("de", "en"), ()), []
    rank, load = LanguageDetector.rank, LanguageDetector.load

    def ranked(self: LanguageDetector, *arguments: Any, **options: Any) -> Any:
        threads.append(("rank", threading.current_thread() is threading.main_thread()))
        return rank(self, *arguments, **options)

    def loaded(self: LanguageDetector) -> None:
        if not self.is_loaded:
            threads.append(("load", threading.current_thread() is threading.main_thread()))
        load(self)

    monkeypatch.setattr(LanguageDetector, "rank", ranked)
    monkeypatch.setattr(LanguageDetector, "load", loaded)
    work = TextWorker(Settings())
    texts = ["Wo ist der Bahnhof?", "Where is the station?"]
    small = await work.languages("x", texts, candidates, html=False)
    assert [ranking[0].language for ranking in small] == ["de", "en"]
    assert threads == [("load", False), ("rank", True), ("rank", True)]
    assert await work.languages("x", texts * 1_000, candidates, html=False) == small * 1_000
    assert threads[3:] == [("rank", False)] * 2_000
    agreed = await work.agreed_languages("x", texts, candidates, html=False)
    assert agreed == [ranking[0] for ranking in small]
    assert await work.agreed_languages("x", texts * 1_000, candidates, html=False) == agreed * 1_000
    del threads[2_003:]
    await work.languages("x", ["a"] * 10, candidates, html=False)  # each takes its time, however short
    assert threads[2_003:] == [("rank", False)] * 10


async def test_the_end_of_the_process_does_not_wait_for_the_detector_to_be_loaded(monkeypatch) -> None:
    began, may_go_on, before = threading.Event(), threading.Event(), set(threading.enumerate())

    def load(_: LanguageDetector) -> None:
        began.set()
        may_go_on.wait()

    monkeypatch.setattr(LanguageDetector, "load", load)
    loading = asyncio.create_task(TextWorker(Settings()).load_detector())
    try:
        await until(began.is_set)
        assert all(thread.daemon for thread in set(threading.enumerate()) - before)
    finally:
        may_go_on.set()
        await loading


async def test_the_detector_is_loaded_once_for_all_that_wait_and_again_after_a_failure(monkeypatch) -> None:
    loads, may_go_on = list[int](), threading.Event()

    def load(_: LanguageDetector) -> None:
        loads.append(threading.get_ident())
        may_go_on.wait(60)
        if len(loads) == 1:
            raise OSError("the data cannot be read")

    monkeypatch.setattr(LanguageDetector, "load", load)
    worker = TextWorker(Settings())
    waiting = [asyncio.create_task(worker.load_detector()) for _ in range(9)]
    await until(lambda: bool(loads))
    waiting[0].cancel()  # the others wait on
    may_go_on.set()
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] + 8 * [OSError]
    assert len(loads) == 1
    await asyncio.gather(*(worker.load_detector() for _ in range(9)))
    assert len(loads) == 2


async def test_a_small_text_may_be_too_large_where_the_limit_is_small() -> None:
    texts = await prepare(TextWorker(Settings(max_text_bytes=12)), CharacterTranslator(), "a" * 12, "a" * 13)
    assert isinstance(texts[7], Document)
    assert isinstance(texts[8], InvalidRequestError)
