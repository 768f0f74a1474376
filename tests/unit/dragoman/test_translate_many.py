"""`translate_many` of both clients on a real gRPC server that echoes."""

import asyncio
import collections
import itertools
import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from dragoman import (
    AsyncClient,
    BatchTranslation,
    Client,
    DeadlineExceededError,
    DrainingError,
    InternalError,
    InvalidRequestError,
    QueueFullError,
    RateLimitedError,
    TextFailedError,
)
from dragoman.v1 import translation_pb2 as pb

pytestmark = pytest.mark.usefixtures("short_pauses")
both = pytest.mark.parametrize("kind", [Client, AsyncClient])
TEXTS = [f"text {number}" for number in range(1_000)]


def many(kind: type, address: str, texts: Any, settings: Any = None, **options: Any) -> Iterator[BatchTranslation]:
    """Yields the answers of either client, one after another."""
    settings = settings or {}
    if kind is Client:
        with Client(address, **settings) as client:
            yield from client.translate_many(texts, **options)
        return
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    async def collect() -> None:
        try:
            async with AsyncClient(address, **settings) as client:
                async for answer in client.translate_many(texts, **options):
                    answers.put(answer)
        except BaseException as error:
            answers.put(error)
        else:
            answers.put(None)

    thread = threading.Thread(target=lambda: asyncio.run(collect()))
    thread.start()
    try:
        while (answer := answers.get(timeout=60)) is not None:
            if isinstance(answer, BaseException):
                raise answer
            yield answer
    finally:
        thread.join(60)


@both
@pytest.mark.parametrize("in_order", [True, False])
def test_every_text_is_answered_once(kind: type, in_order: bool, echo) -> None:
    answers = list(many(kind, echo.address, iter(TEXTS), in_order=in_order))
    assert sorted(answer.content_index for answer in answers) == list(range(len(TEXTS)))
    assert all(answer.translation.text == TEXTS[answer.content_index] for answer in answers)
    if in_order:
        assert [index for index, _ in answers] == list(range(len(TEXTS)))
    assert max(map(len, echo.servicer.messages)) <= 128


@both
def test_no_texts_no_answers_and_a_string_is_one_text(kind: type, echo) -> None:
    assert list(many(kind, echo.address, [])) == []
    assert [answer.translation.text for answer in many(kind, echo.address, "tom")] == ["tom"]


@both
def test_every_option_reaches_its_field(kind: type, echo) -> None:
    options = {
        "source_language": "en",
        "target_language": "de",
        "model": "en-de",
        "mime_type": "text/plain",
        "max_target_tokens": 7,
        "mean_log_probability": True,
        "request_id": "mine",
        "priority": "interactive",
    }
    list(many(kind, echo.address, [], in_order=False, **options))
    assert echo.servicer.configs[0] == pb.BatchTranslateTextConfig(
        source_language_code="en",
        target_language_code="de",
        model="en-de",
        mime_type="text/plain",
        options=pb.TranslateOptions(max_target_tokens=7, mean_log_probability=True),
        request_id="mine",
        priority=pb.PRIORITY_INTERACTIVE,
    )


@both
def test_a_text_that_fails_is_an_answer(kind: type, echo) -> None:
    answers = list(many(kind, echo.address, ["a", "poison", "b"]))
    assert [isinstance(answer.translation.error, TextFailedError) for answer in answers] == [False, True, False]


def test_a_slow_iterable_delays_no_text_before(echo) -> None:
    texts: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    with Client(echo.address) as client:
        answers = client.translate_many(iter(texts.get, None))
        for text in ("a", "b"):
            texts.put(text)
            assert next(answers).translation.text == text  # else it waits for ever
        texts.put(None)
        assert list(answers) == []


async def test_a_slow_async_iterable_delays_no_text_before(echo) -> None:
    texts: asyncio.Queue[str] = asyncio.Queue()

    async def read():
        while text := await texts.get():
            yield text

    async with AsyncClient(echo.address) as client:
        answers = client.translate_many(read())
        for text in ("a", "b"):
            await texts.put(text)
            assert (await asyncio.wait_for(anext(answers), 60)).translation.text == text
        await texts.put("")
        assert [answer async for answer in answers] == []


@both
def test_an_endless_iterable_is_read_only_a_little_ahead(kind: type, echo) -> None:
    echo.servicer.blocks = True
    read = itertools.count()
    with pytest.raises(DeadlineExceededError):
        list(many(kind, echo.address, (f"{next(read)} {'x' * 100}" for _ in itertools.count()), timeout_s=0.5))
    assert next(read) < 2_500


@both
def test_what_a_lost_server_left_unanswered_is_sent_again(kind: type, echo) -> None:
    echo.servicer.breaks_after = 300
    answers = list(many(kind, echo.address, iter(TEXTS)))
    assert [answer.content_index for answer in answers] == list(range(len(TEXTS)))
    assert [answer.translation.text for answer in answers] == TEXTS
    assert len(echo.servicer.configs) >= 4


@both
def test_a_call_that_a_stopping_server_cancels_is_tried_again(kind: type, echo) -> None:
    echo.servicer.cancels = 2
    answers = list(many(kind, echo.address, iter(TEXTS)))
    assert [answer.translation.text for answer in answers] == TEXTS
    assert len(echo.servicer.configs) == 3


@both
def test_a_server_that_drains_when_all_is_answered_is_not_asked_again(kind: type, echo) -> None:
    echo.servicer.drains_at_end = True
    answers = list(many(kind, echo.address, iter(TEXTS)))
    assert [answer.translation.text for answer in answers] == TEXTS
    assert len(echo.servicer.configs) == 1


@both
def test_an_answer_that_nobody_waits_for_is_no_lost_call(kind: type, echo) -> None:
    echo.servicer.answers_twice = True
    with pytest.raises(InternalError, match="which is not open"):
        list(many(kind, echo.address, iter(TEXTS)))
    assert len(echo.servicer.configs) == 1


@both
def test_a_server_that_stays_away_is_given_up(kind: type, echo) -> None:
    echo.servicer.errors = [DrainingError("draining", retry_delay_s=0.0) for _ in range(4)]
    with pytest.raises(DrainingError):
        list(many(kind, echo.address, iter(TEXTS)))
    assert len(echo.servicer.configs) == 4


@both
@pytest.mark.parametrize("error", [InvalidRequestError("bad"), QueueFullError("full"), InternalError("broken")])
def test_other_errors_are_raised_at_once(kind: type, error, echo) -> None:
    echo.servicer.errors = [error]
    with pytest.raises(type(error), match=error.message):
        list(many(kind, echo.address, iter(TEXTS)))
    assert len(echo.servicer.configs) == 1


@both
def test_the_deadline_is_that_of_the_whole(kind: type, echo) -> None:
    echo.servicer.blocks = True
    with pytest.raises(DeadlineExceededError):
        list(many(kind, echo.address, iter(TEXTS), timeout_s=0.1))


@both
def test_an_error_of_the_iterable_comes_after_the_answers_before_it(kind: type, echo) -> None:
    def read() -> Iterable[str]:
        yield from ("a", "b")
        raise KeyError("the file is broken")

    answers: list[BatchTranslation] = []
    with pytest.raises(KeyError, match="the file is broken"):
        # Not extend, which would take none where one raises.
        collections.deque(map(answers.append, many(kind, echo.address, read())), maxlen=0)
    assert [answer.translation.text for answer in answers] == ["a", "b"]


async def test_a_cancelled_task_of_an_async_iterable_is_its_error(echo) -> None:
    inner = asyncio.create_task(asyncio.sleep(60))
    inner.cancel()

    async def read():
        for text in ("a", "b"):
            yield text
        await inner
        yield "c"

    async with AsyncClient(echo.address) as client:
        answers = client.translate_many(read())
        assert [(await anext(answers)).translation.text for _ in range(2)] == ["a", "b"]
        with pytest.raises(asyncio.CancelledError):
            await anext(answers)


@both
@pytest.mark.parametrize(
    ("bad", "error", "said"),
    [("\ud800", ValueError, r"^texts\[1\]: half a surrogate"), (7, TypeError, r"^texts\[1\]: must be str, is int")],
)
def test_what_no_message_can_hold_is_an_error(kind: type, bad: Any, error: type, said: str, echo) -> None:
    with pytest.raises(error, match=said):
        list(many(kind, echo.address, ["a", bad, "b"]))


@both
def test_what_is_no_iterable_is_an_error_before_anything_is_sent(kind: type, echo) -> None:
    must = "an iterable of str" if kind is Client else "an iterable or async iterable of str"
    with pytest.raises(TypeError, match=f"^texts: must be {must}, is NoneType$"):
        list(many(kind, echo.address, None))
    assert not echo.servicer.configs


@both
def test_a_server_that_is_away_is_called_as_often_as_told(kind: type, echo) -> None:
    echo.servicer.errors = [DrainingError("draining", retry_delay_s=0.0) for _ in range(6)]
    with pytest.raises(DrainingError):
        list(many(kind, echo.address, iter(TEXTS), settings={"retries": 1}))
    assert len(echo.servicer.configs) == 2


@both
def test_a_busy_server_is_waited_for_where_it_is_asked(kind: type, echo) -> None:
    echo.servicer.errors = [RateLimitedError("too many", retry_delay_s=0.1)]
    answers = list(many(kind, echo.address, iter(TEXTS), settings={"wait_when_busy": True}))
    assert [answer.translation.text for answer in answers] == TEXTS
    assert len(echo.servicer.configs) == 2


@both
def test_a_wrong_option_is_an_error_before_anything_is_sent(kind: type, echo) -> None:
    with pytest.raises(ValueError, match="priority"):
        list(many(kind, echo.address, ["a"], priority="urgent"))
    assert not echo.servicer.configs


def test_leaving_early_ends_the_call_and_the_threads(echo) -> None:
    with Client(echo.address) as client:
        answers = client.translate_many(str(number) for number in itertools.count())
        assert next(answers).translation.text == "0"
        answers.close()
        assert echo.servicer.call_ended.wait(60)
    for thread in threading.enumerate():
        if thread.name == "dragoman-feed":
            thread.join(60)
            assert not thread.is_alive()


async def test_leaving_an_async_one_early_ends_the_call(echo) -> None:
    async with AsyncClient(echo.address) as client:
        async with aclosing(client.translate_many(str(number) for number in itertools.count())) as answers:
            assert (await anext(answers)).translation.text == "0"
        assert await asyncio.to_thread(echo.servicer.call_ended.wait, 60)
