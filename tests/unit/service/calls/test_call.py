"""A call of small texts on a real mailbox."""

import pytest

from dragoman import QueueFullError
from dragoman.errors import InternalError, InvalidRequestError, TextFailedError
from service.calls.call import Call
from service.calls.large_call import LargeCall
from service.decode import FinishReason
from service.options import RequestOptions
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.telemetry.access_log import CallStats
from service.telemetry.metrics import Metrics
from service.text.result import TextResult
from tests.unit.service.calls.played_calls import bound, call_of, fail_one, finish
from tests.unit.service.calls.played_texts import CharacterTranslator
from tests.unit.service.played_engine import until

FAILED = TextFailedError("the engine fails on this text")


async def test_a_text_is_finished_when_all_its_segments_have_ended(mailbox, intake) -> None:
    async with call_of(Call, intake) as call:
        await call.add(["ab", "c"])
        [first, *others] = mailbox.take(0, 3, wait=False) or []
        for decode, finished in ((first, [False, False]), (others[1], [False, True]), (others[0], [True, True])):
            decode.finish(FinishReason.EOS, 0.0)
            mailbox.deliver([decode])
            await until(lambda finished=finished: [call.finished(number) for number in range(2)] == finished)
        await call.done()


async def test_texts_without_segments_are_finished_at_once(mailbox, intake) -> None:
    error = TextFailedError("cannot be read")
    async with call_of(Call, intake, translator=CharacterTranslator(error)) as call:
        await call.add(["", "a", "!"])
        assert [call.finished(number) for number in range(3)] == [True, False, True]
        assert await call.moved() == {0, 2}
        finish(mailbox, 1)
        await call.done()
        assert call.finished(1)
        assert (await call.results([2]))[2] is error


async def test_an_error_takes_the_place_of_a_text_and_its_other_segments_are_withdrawn_once(mailbox, intake) -> None:
    record = CallStats("TranslateText")
    async with call_of(Call, intake, record=record) as call:
        await call.add(["abc", "d"])
        fail_one(mailbox, FAILED)
        await until(lambda: mailbox.unfinished == 1)
        assert [call.finished(number) for number in range(2)] == [True, False]
        finish(mailbox, 3)
        await call.done()
        failed, fine = (await call.results([0, 1])).values()
    assert failed is FAILED
    assert isinstance(fine, TextResult)
    assert record.segments == 4


async def test_what_is_unfinished_is_withdrawn_at_the_end(mailbox, intake) -> None:
    async with call_of(Call, intake) as call:
        await call.add(["a" * 200, "b" * 200])
        assert mailbox.unfinished == 400
    assert mailbox.unfinished == len(mailbox.waiting) == 0


def narrow(options: RequestOptions, text_bytes: int) -> None:
    if text_bytes > 5:
        raise QueueFullError("full")


async def test_plain_texts_are_not_asked_for_again(mailbox, intake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox.admission, "precheck", narrow)
    async with call_of(Call, intake) as call:
        await call.add(["a" * 6])
        assert len(mailbox.waiting) == 6


@pytest.mark.parametrize(("kind", "length"), [(Call, 6), (LargeCall, 600)])
async def test_html_is_refused_when_it_is_known_how_much_of_it_is_text(
    kind: type[Call], length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox, record = bound(Mailbox(20_000)), CallStats("TranslateText")
    intake = Intake(mailbox, Metrics().of("en-de"), limit_bytes=0, coalesce=False)
    monkeypatch.setattr(mailbox.admission, "precheck", narrow)
    async with call_of(kind, intake, html=True, record=record) as call:
        with pytest.raises(QueueFullError):
            await call.add(["a" * length])
    assert len(mailbox.waiting) == 0
    assert not record.admitted
    async with call_of(kind, intake, html=True) as call:
        await call.add(["a" * 5])
        assert len(mailbox.waiting) == 5


async def test_a_small_call_is_let_in_or_refused_as_a_whole(mailbox, intake) -> None:
    record = CallStats("TranslateText")
    async with call_of(Call, intake) as first, call_of(Call, intake, record=record, translator=long_segments()) as call:
        await first.add(["aa"])
        with pytest.raises(QueueFullError):
            await call.add(["a" * 300, "a" * 100])
        assert len(mailbox.waiting) == 2
        assert not record.admitted
    assert mailbox.unfinished == 0


def long_segments() -> CharacterTranslator:
    return CharacterTranslator(segment_tokens=100)


async def test_a_bad_text_ends_a_call_of_all_or_nothing_before_any_is_queued(mailbox, intake) -> None:
    async with call_of(LargeCall, intake, all_or_nothing=True) as call:
        with pytest.raises(InvalidRequestError, match=r"contents\[1\]"):
            await call.add(["a", "a" * 2_000_000])
    assert len(mailbox.waiting) == 0


async def test_a_call_whose_segments_have_all_ended_before_anybody_waits_still_has_its_error(mailbox, intake) -> None:
    async with call_of(Call, intake) as call:
        await call.add(["a"])
        fail_one(mailbox, InternalError("the engine ended"))
        await until(lambda: mailbox.unfinished == 0 and call.finished(0))
        with pytest.raises(InternalError, match="the engine ended"):
            await call.done()
