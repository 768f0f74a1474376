import asyncio
from collections.abc import AsyncIterator

import pytest

from dragoman.errors import DeadlineExceededError
from dragoman.v1 import translation_pb2 as pb
from plugins.batch.inbox import Inbox
from tests.unit.service.played_engine import until

MESSAGES = [pb.BatchTranslateTextRequest(contents=[text]) for text in "ab"]


async def messages(error: Exception | None = None, *, ends: bool = True) -> AsyncIterator[pb.BatchTranslateTextRequest]:
    for message in MESSAGES:
        yield message
    if error is not None:
        raise error
    if not ends:
        await asyncio.Event().wait()


async def test_it_gives_all_messages_and_then_none() -> None:
    inbox = Inbox(messages())
    assert [await inbox.next() for _ in range(4)] == [*MESSAGES, None, None]
    assert not inbox.cut


async def test_closed_it_reads_no_further() -> None:
    inbox = Inbox(messages())
    await inbox.next()
    inbox.close()
    assert await inbox.next() is None
    assert inbox.cut


async def test_closing_ends_a_wait() -> None:
    inbox = Inbox(messages(ends=False))
    for _ in MESSAGES:
        await inbox.next()
    waiting = asyncio.create_task(inbox.next())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    inbox.close()
    await until(waiting.done)
    assert waiting.result() is None
    assert inbox.cut


async def test_an_error_of_the_transport_is_no_end() -> None:
    inbox = Inbox(messages(DeadlineExceededError("too slow")))
    for _ in MESSAGES:
        await inbox.next()
    with pytest.raises(DeadlineExceededError):
        await inbox.next()
