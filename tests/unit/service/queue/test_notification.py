"""News of decodes, on the thread that tells or on the event loop."""

import asyncio
import threading

import pytest

from service.decode import Decode, notify
from service.queue.mailbox import Mailbox


def decode_of(heard: list[tuple[Decode, int]], **fields) -> Decode:
    """A decode that notes who is told of it, and on which thread."""
    return Decode([2], 9, on_progress=lambda each: heard.append((each, threading.get_ident())), **fields)


def test_all_are_told_but_those_that_were_cancelled() -> None:
    heard: list[tuple[Decode, int]] = []
    first, cancelled, last = decode_of(heard), decode_of(heard, cancel_requested=True), decode_of(heard)
    notify([first, cancelled, last])
    assert [each for each, _ in heard] == [first, last]


def test_the_fault_of_one_listener_keeps_the_news_from_nobody() -> None:
    heard: list[tuple[Decode, int]] = []

    def fail(_: Decode) -> None:
        raise ZeroDivisionError

    after = decode_of(heard)
    with pytest.raises(ZeroDivisionError):
        notify([Decode([2], 9, on_progress=fail), after])
    assert [each for each, _ in heard] == [after]


def test_without_a_loop_the_thread_that_tells_does_it_all() -> None:
    heard: list[tuple[Decode, int]] = []
    decode = decode_of(heard)
    Mailbox(9).deliver([decode])
    assert heard == [(decode, threading.get_ident())]


async def test_another_thread_is_heard_on_the_loop_in_order() -> None:
    heard: list[tuple[Decode, int]] = []
    mailbox, decodes = Mailbox(9), [decode_of(heard) for _ in range(3)]
    mailbox.bind(asyncio.get_running_loop())
    await asyncio.to_thread(lambda: (mailbox.deliver(decodes[:2]), mailbox.deliver(decodes[2:])))
    async with asyncio.timeout(60):
        while len(heard) < 3:
            await asyncio.sleep(0)
    assert heard == [(decode, threading.get_ident()) for decode in decodes]


def test_a_loop_that_is_closed_waits_for_nothing() -> None:
    heard: list[tuple[Decode, int]] = []
    mailbox, loop = Mailbox(9), asyncio.new_event_loop()
    mailbox.bind(loop)
    loop.close()
    mailbox.deliver([decode_of(heard)])
    assert heard == []


async def test_news_that_the_loop_refuses_is_an_error() -> None:
    class Refusing(asyncio.SelectorEventLoop):
        def call_soon_threadsafe(self, *_: object, **__: object) -> asyncio.Handle:
            raise RuntimeError("planted")

    mailbox, loop = Mailbox(9), Refusing()
    mailbox.bind(loop)
    try:
        with pytest.raises(RuntimeError, match="planted"):
            mailbox.deliver([decode_of([])])
    finally:
        loop.close()
