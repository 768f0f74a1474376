"""Feeds for `translate_many`: texts from the caller's iterable into messages, for both clients."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

from dragoman.answers import BatchTranslation
from dragoman.many import MESSAGE_TEXTS, Entry, Unanswered, take_message
from dragoman.options import checked_text
from dragoman.v1 import translation_pb2 as pb


class Feed:
    """Reads an iterable on its own thread, one message ahead, so that a slow iterable delays no text already read."""

    def __init__(self, texts: Iterable[str]) -> None:
        if not isinstance(texts, Iterable):
            raise _no_iterable("an iterable of str", texts)
        self._texts = [texts] if isinstance(texts, str) else texts
        self._ready: deque[Entry] = deque()
        self._unanswered = Unanswered()
        self._changed = threading.Condition()
        self._ended = False
        self._closed = False
        self._call = 0
        self._error: BaseException | None = None  # raised by the iterable, or for a text that no message can hold
        threading.Thread(target=self._read, name="dragoman-feed", daemon=True).start()

    def messages(self) -> Iterator[pb.BatchTranslateTextRequest]:
        """Return the messages of a new call, for a gRPC thread to iterate; the messages of the earlier call end."""
        with self._changed:
            self._call += 1
            call = self._call
            self._unanswered.begin()
            self._changed.notify_all()

        def generate() -> Iterator[pb.BatchTranslateTextRequest]:
            while True:
                with self._changed:
                    if (message := self._next(call)) is None:
                        return
                yield message

        return generate()

    def receive(self, message: pb.BatchTranslateTextResponse) -> list[BatchTranslation]:
        """Read answers of the current call; this makes room for more texts.

        Raises:
            InternalError: an answer belongs to no unanswered text.
        """
        with self._changed:
            answers = self._unanswered.receive(message)
            self._changed.notify_all()
            return answers

    def check_end(self) -> None:
        """Check, after the last call, that no error occurred and no answer is missing.

        Raises:
            InternalError: a text was not answered.
            Exception: the error of the iterable, or of a text that no message can hold.
        """
        if self._error is not None:
            raise self._error
        self._unanswered.check_end()

    @property
    def done(self) -> bool:
        """Whether the iterable has ended and all its texts are answered."""
        with self._changed:
            return self._ended and not self._ready and self._unanswered.none

    def close(self) -> None:
        """Stop sending and reading."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _next(self, call: int) -> pb.BatchTranslateTextRequest | None:
        while (source := self._unanswered.left or self._ready) or not self._ended:
            if self._closed or call != self._call:
                return None
            if source and self._unanswered.has_room:
                self._changed.notify_all()
                return self._unanswered.send(take_message(source))
            self._changed.wait()
        return None

    def _read(self) -> None:
        try:
            for place, text in enumerate(self._texts):
                entry = Entry(place, checked_text(place, text))
                with self._changed:
                    while len(self._ready) >= MESSAGE_TEXTS and not self._closed:
                        self._changed.wait()
                    if self._closed:
                        return
                    self._ready.append(entry)
                    self._changed.notify_all()
        except BaseException as error:  # an error of the caller's iterable, raised again for the caller
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()


class AsyncFeed:
    """Reads an iterable in its own task, one message ahead."""

    def __init__(self, texts: Iterable[str] | AsyncIterable[str]) -> None:
        if not isinstance(texts, Iterable | AsyncIterable):
            raise _no_iterable("an iterable or async iterable of str", texts)
        self._ready: deque[Entry] = deque()
        self._unanswered = Unanswered()
        self._sendable = asyncio.Event()  # there may be a message to send
        self._room = asyncio.Event()  # there may be room to read a text
        self._ended = False
        self._error: BaseException | None = None  # raised by the iterable, or for a text that no message can hold
        self._reader = asyncio.create_task(self._read(texts))

    async def send(self, call: Any, first: pb.BatchTranslateTextRequest) -> None:
        """Send the texts left by the last call, then new ones, over one call; cancel this when the call ends."""
        self._unanswered.begin()
        await call.write(first)
        await call.initial_metadata()  # else the server's refusal could coincide with a write, see `many.pause_s`
        while (source := self._unanswered.left or self._ready) or not self._ended:
            if source and self._unanswered.has_room:
                message = self._unanswered.send(take_message(source))
                self._room.set()
                await call.write(message)
            else:
                self._sendable.clear()
                await self._sendable.wait()
        await call.done_writing()

    def receive(self, message: pb.BatchTranslateTextResponse) -> list[BatchTranslation]:
        """Read answers as `Feed.receive` does."""
        self._sendable.set()
        return self._unanswered.receive(message)

    def check_end(self) -> None:
        """Check the end as `Feed.check_end` does."""
        if self._error is not None:
            raise self._error
        self._unanswered.check_end()

    @property
    def done(self) -> bool:
        """Whether all is done, see `Feed.done`."""
        return self._ended and not self._ready and self._unanswered.none

    async def close(self) -> None:
        """Stop reading."""
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self, texts: Iterable[str] | AsyncIterable[str]) -> None:
        index = 0
        try:
            async for text in _each(texts):
                while len(self._ready) >= MESSAGE_TEXTS:
                    self._room.clear()
                    await self._room.wait()
                self._ready.append(Entry(index, checked_text(index, text)))
                self._sendable.set()
                index += 1
        # An error of the caller's iterable, raised again for the caller; CancelledError if it awaited a cancelled task.
        except (Exception, asyncio.CancelledError) as error:
            self._error = error
        finally:
            self._ended = True
            self._sendable.set()


def _no_iterable(kind: str, texts: object) -> TypeError:
    return TypeError(f"texts: must be {kind}, is {type(texts).__name__}")


async def _each(texts: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            yield text
    else:
        for text in [texts] if isinstance(texts, str) else texts:
            yield text
