"""What a model is asked before the work on texts begins."""

import asyncio

import pytest

from dragoman.errors import QueueFullError
from dragoman.v1 import translation_pb2 as pb
from service.handlers.context import CallContext
from service.options import RequestOptions
from service.queue.admission import Admission
from service.security.access import Caller
from service.wire import HTML, XML
from tests.unit.service.played_engine import PlayedEngine, until


@pytest.fixture
def asked(monkeypatch) -> list[int]:
    """For how many bytes the admission was asked."""
    sizes: list[int] = []
    precheck = Admission.precheck

    def remember(admission: Admission, options: RequestOptions, text_bytes: int) -> None:
        sizes.append(text_bytes)
        precheck(admission, options, text_bytes)

    monkeypatch.setattr(Admission, "precheck", remember)
    return sizes


def translate(played: PlayedEngine, *texts: str, mime_type: str = "") -> "asyncio.Task[pb.TranslateTextResponse]":
    request = pb.TranslateTextRequest(contents=texts, model="en-de", mime_type=mime_type)
    return asyncio.create_task(played.handlers.translate(request, CallContext(Caller("alice"))))


async def leave(call: asyncio.Task) -> None:
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)


async def test_plain_texts_are_asked_for_by_their_bytes(played, asked) -> None:
    call = translate(played, "aé", "你")
    await until(lambda: len(played.mailbox.waiting) > 0)
    assert asked == [6]
    await leave(call)


@pytest.mark.parametrize("mime_type", [HTML, XML])
async def test_of_what_has_tags_the_text_is_asked_for_once_it_is_known(played, asked, mime_type: str) -> None:
    call = translate(played, "<p>aé</p>", mime_type=mime_type)
    await until(lambda: len(played.mailbox.waiting) > 0)
    assert asked == [0, 3]
    await leave(call)


@pytest.mark.parametrize("mime_type", ["", HTML])
async def test_what_a_full_model_refuses_is_refused(played, monkeypatch, mime_type: str) -> None:
    def refuse(*_: object) -> None:
        raise QueueFullError("full")

    monkeypatch.setattr(Admission, "precheck", refuse)
    with pytest.raises(QueueFullError):
        await translate(played, "a", mime_type=mime_type)
    assert len(played.mailbox.waiting) == 0
