"""The service on a real gRPC server and mailbox; the tests themselves play the engine, token by token."""

import asyncio
import contextlib
from types import SimpleNamespace

import grpc
import pytest
from structlog.testing import capture_logs

from dragoman import (
    AnswerTooLargeError,
    DeadlineExceededError,
    DrainingError,
    InternalError,
    InvalidRequestError,
    LoadingError,
    RequestCancelledError,
    TextFailedError,
)
from dragoman.errors import from_rpc_error, from_text_error
from dragoman.v1 import translation_pb2 as pb
from service.decode import Decode, FinishReason, Hypothesis
from service.options import Decoding
from service.queue import intake
from service.text.translator import Translator
from tests.unit.service.played_engine import PATIENCE_S, ServedEngine, until

both = pytest.mark.parametrize("method", ["TranslateText", "StreamTranslateText"])


def translate(served: ServedEngine, *texts: str, **options) -> asyncio.Task:
    return asyncio.create_task(served.client.translate(texts, model="en-de", **options))


async def test_texts_are_answered_when_their_last_segment_is_finished(served) -> None:
    call = translate(served, "tom. Good tom.", " ", "tom")
    segments = await served.taken(3)
    for segment in reversed(segments):
        assert not call.done()
        served.exhaust(segment)
    assert [translation.text for translation in await call] == ["tom. Good tom.", " ", "tom"]
    assert served.count("requests_total", "TranslateText", "OK") == 1


async def test_deltas_come_in_order_whatever_finishes_first(served) -> None:
    stream = aiter(served.client.stream("tom. Good tom.", model="en-de"))
    first_delta = asyncio.create_task(anext(stream))
    first, second = await served.taken(2)
    served.exhaust(second)
    served.step(first)
    begun = (await first_delta).text
    assert begun
    assert "tom.".startswith(begun)
    served.exhaust(first)
    rest = [delta async for delta in stream]
    assert begun + "".join(delta.text for delta in rest) == "tom. Good tom."
    assert rest[-1].result.text == "tom. Good tom."


async def results(served: ServedEngine, method: str, request: pb.TranslateTextRequest) -> list[pb.TranslatedText]:
    """The translations of either call, in the order of the texts."""
    call = getattr(served.stub, method)(request, timeout=PATIENCE_S)
    if method == "TranslateText":
        return list((await call).translations)
    last = {message.content_index: message.result async for message in call if message.HasField("result")}
    return [last[index] for index in sorted(last)]


@pytest.mark.parametrize("asked", [None, False, True])
@both
async def test_the_mean_log_probability_is_answered_to_who_asks(served, method, asked) -> None:
    options = pb.TranslateOptions(mean_log_probability=asked)
    request = pb.TranslateTextRequest(contents=["tom", " "], model="en-de", options=options)
    call = asyncio.create_task(results(served, method, request))
    [segment] = await served.taken(1)
    assert segment.decoding.wants_log_probability is bool(asked)
    segment.log_probability = -0.75 * len(segment.source_ids)
    served.exhaust(segment)
    tom, blank = await call
    assert tom.HasField("mean_log_probability") is bool(asked)
    assert tom.mean_log_probability == (-0.75 if asked else 0.0)
    assert not blank.HasField("mean_log_probability")


@both
async def test_the_hypotheses_of_a_beam_become_alternatives_of_the_text(served, method) -> None:
    options = pb.TranslateOptions(beam_size=4, length_penalty=2.0, alternatives=2)
    request = pb.TranslateTextRequest(contents=["tom. Good tom.", " "], model="en-de", options=options)
    call = asyncio.create_task(results(served, method, request))
    first, second = await served.taken(2, hypotheses=4)
    for segment in (first, second):
        assert segment.decoding._replace(stops_at_repetition=False) == Decoding.of(
            beam_size=4, length_penalty=2.0, alternatives=2
        )
    choose(first, [-1.0, -3.0])
    choose(second, [-1.0, -2.0])
    for segment in (first, second):
        served.exhaust(segment)
    text, blank = await call
    assert [(each.translated_text, each.score) for each in text.alternatives] == [
        ("tom. Good tom.", -2.0),
        ("tom. Good tom. Good tom.", -3.0),
    ]
    assert text.alternatives[0].finish_reason == pb.FINISH_REASON_EOS
    assert not text.HasField("mean_log_probability")
    assert [(each.translated_text, each.score) for each in blank.alternatives] == [(" ", 0.0)]
    assert text.beam_size == blank.beam_size == 4


def choose(segment: Decode, scores: list[float]) -> None:
    """Gives a decode hypotheses: its source, and its source once more for each further score."""
    ids = segment.source_ids[:-1]
    segment.hypotheses = [
        Hypothesis(ids * count, score * 4, score, FinishReason.EOS, len(ids) * count + 1)
        for count, score in enumerate(scores, 1)
    ]


@both
async def test_one_alternative_of_a_greedy_decode_is_the_translation(served, method) -> None:
    request = pb.TranslateTextRequest(contents=["tom"], model="en-de", options={"alternatives": 1})
    call = asyncio.create_task(results(served, method, request))
    [segment] = await served.taken(1)
    segment.log_probability = -0.75 * len(segment.source_ids)
    served.exhaust(segment)
    [tom] = await call
    expected = pb.Alternative(
        translated_text="tom", score=-0.75, finish_reason=pb.FINISH_REASON_EOS, mean_log_probability=-0.75
    )
    assert (list(tom.alternatives), tom.beam_size) == ([expected], 1)


@both
async def test_a_client_that_leaves_withdraws_its_segments(served, method) -> None:
    request = pb.TranslateTextRequest(contents=["tom. Good tom."], model="en-de")
    call = getattr(served.stub, method)(request)
    running = served.mailbox.take(0, 1, wait=False) or await served.taken(1)
    call.cancel()
    await until(lambda: served.count("requests_total", method, "CANCELLED") == 1)
    assert len(served.mailbox.waiting) == 0
    assert all(segment.cancel_requested for segment in running)
    with contextlib.suppress(asyncio.CancelledError):
        await call.code()


@both
async def test_a_passed_deadline_withdraws_the_segments(served, method) -> None:
    request = pb.TranslateTextRequest(contents=["tom. Good tom."], model="en-de")
    while not served.count("requests_total", method, "DEADLINE_EXCEEDED"):  # on a busy machine it may not arrive at all
        call = getattr(served.stub, method)(request, timeout=0.2)
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await served.gate.idle()
    assert len(served.mailbox.waiting) == 0


async def test_the_engine_may_tell_of_the_deadline_first(served, monkeypatch) -> None:
    call = translate(served, "tom")
    [segment] = await served.taken(1)
    assert segment.deadline_s is not None
    segment.fail(DeadlineExceededError("passed in the queue"), 0.0)
    later = SimpleNamespace(monotonic=lambda: segment.deadline_s + 1)
    monkeypatch.setattr(intake, "time", later)
    served.mailbox.deliver([segment])
    with pytest.raises(DeadlineExceededError, match="passed in the queue"):
        await call


def request_of(*texts: str, **fields) -> pb.TranslateTextRequest:
    return pb.TranslateTextRequest(contents=texts, model="en-de", **fields)


TOO_LARGE = "a" * 1_100_001


@both
async def test_a_text_that_is_too_large_is_an_error_of_its_own(served, method) -> None:
    call = asyncio.create_task(results(served, method, request_of("tom", TOO_LARGE, " ")))
    [segment] = await served.taken(1)
    served.exhaust(segment)
    tom, bad, blank = await call
    assert (tom.translated_text, blank.translated_text) == ("tom", " ")
    assert not tom.HasField("text_error")
    error = from_text_error(bad.text_error)
    assert type(error) is InvalidRequestError
    assert error.violations == [("contents[1]", "must be at most 1100000 bytes, is 1100001")]
    expected = pb.TranslatedText(model="en-de", text_error=bad.text_error)
    assert bad == expected
    assert served.count("requests_total", method, "OK") == 1


@both
async def test_a_single_bad_text_does_not_fail_the_call_either(served, method) -> None:
    [bad] = await results(served, method, request_of(TOO_LARGE))
    assert bad.HasField("text_error")


@both
async def test_all_or_nothing_fails_for_a_bad_text_and_names_all(served, method) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await results(served, method, request_of(TOO_LARGE, "tom", TOO_LARGE, all_or_nothing=True))
    error = from_rpc_error(caught.value)
    assert isinstance(error, InvalidRequestError)
    assert [violation.field for violation in error.violations] == ["contents[0]", "contents[2]"]
    assert len(served.mailbox.waiting) == 0


@both
async def test_a_text_on_which_the_engine_fails_does_not_hurt_the_others(served, method) -> None:
    call = asyncio.create_task(results(served, method, request_of("tom. Good tom.", "tom")))
    poisonous, sibling, healthy = await served.taken(3)
    poisonous.fail_alone(0.0)
    served.mailbox.deliver([poisonous])
    await until(lambda: sibling.cancel_requested)
    assert served.metrics.total("cancelled_segments_total") == 1
    served.exhaust(healthy)
    bad, good = await call
    assert good.translated_text == "tom"
    assert type(from_text_error(bad.text_error)) is TextFailedError
    assert bad.translated_text == ""


@both
async def test_all_or_nothing_fails_where_the_engine_fails_on_a_text(served, method) -> None:
    call = asyncio.create_task(results(served, method, request_of("tom", "Good tom", all_or_nothing=True)))
    poisonous, other = await served.taken(2)
    poisonous.fail_alone(0.0)
    served.mailbox.deliver([poisonous])
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert isinstance(from_rpc_error(caught.value), TextFailedError)
    await served.gate.idle()
    assert other.cancel_requested


@both
async def test_a_fault_of_ours_on_one_text_does_not_hurt_the_others(served, monkeypatch, method) -> None:
    prepare = Translator.prepare

    def explode(self, text, *arguments, **options):
        if text == "my secret":
            raise ValueError(f"cannot do {text}")
        return prepare(self, text, *arguments, **options)

    monkeypatch.setattr(Translator, "prepare", explode)
    with capture_logs() as log:
        bad, good = await results(served, method, request_of("my secret", " "))
    assert type(from_text_error(bad.text_error)) is InternalError
    assert good.translated_text == " "
    assert "secret" not in repr(log)
    assert "secret" not in repr(bad)


@both
async def test_a_request_id_is_echoed_or_made_up(served, method) -> None:
    async def echoed(**fields) -> str:
        call = getattr(served.stub, method)(request_of(" ", **fields), timeout=PATIENCE_S)
        answer = await call if method == "TranslateText" else [message async for message in call][-1]
        return answer.request_id

    assert await echoed(request_id="job-7:a.b_C") == "job-7:a.b_C"
    made_up = {await echoed() for _ in range(3)}
    assert len(made_up) == 3
    assert all(made_up)


@both
@pytest.mark.parametrize(
    ("fields", "request_id"),
    [({"request_id": "mine", "mime_type": "x"}, "mine"), ({"mime_type": "x"}, None), ({"request_id": "no no"}, None)],
)
async def test_an_error_names_the_request(served, method, fields, request_id) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await results(served, method, request_of("tom", **fields))
    error = from_rpc_error(caught.value)
    assert isinstance(error, InvalidRequestError)
    assert error.request_id
    assert request_id in (None, error.request_id)
    assert error.request_id != "no no"


@both
async def test_an_early_refusal_names_the_request_too(closed_served, method) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await results(closed_served, method, request_of("tom", request_id="early"))
    error = from_rpc_error(caught.value)
    assert isinstance(error, LoadingError)
    assert error.request_id == "early"


async def test_a_failed_segment_ends_its_call_at_once_and_no_other(served) -> None:
    bad = translate(served, "tom. Good tom.")
    poisonous, sibling = await served.taken(2)
    good = translate(served, "tom")
    [healthy] = await served.taken(1)
    poisonous.fail(InternalError("poisonous"), 0.0)
    served.mailbox.deliver([poisonous])
    with pytest.raises(InternalError, match="poisonous"):
        await bad
    assert sibling.cancel_requested
    assert served.metrics.total("cancelled_segments_total") == 1
    served.exhaust(healthy)
    assert (await good)[0].text == "tom"


async def test_calls_are_refused_while_loading(closed_served) -> None:
    for call in (closed_served.client.translate("tom", model="en-de"), closed_served.client.list_models()):
        with pytest.raises(LoadingError):
            await call
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await closed_served.stub.ListModels(pb.ListModelsRequest())
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert closed_served.count("rejected_total", "LOADING") >= 3


async def test_closing_refuses_what_is_new_and_finishes_what_runs(served) -> None:
    running = translate(served, "tom")
    [segment] = await served.taken(1)
    served.gate.close()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.stub.TranslateText(pb.TranslateTextRequest(contents=["tom"], model="en-de"))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert served.count("rejected_total", "DRAINING") == 1
    idle = asyncio.create_task(served.gate.idle())
    await asyncio.sleep(0)
    assert not idle.done()
    served.exhaust(segment)
    assert (await running)[0].text == "tom"
    await idle


async def test_abandoned_calls_are_answered(served) -> None:
    request = pb.TranslateTextRequest(contents=["tom"], model="en-de")
    calls = [served.stub.TranslateText(request), served.stub.StreamTranslateText(request)]
    await served.taken(2)
    served.gate.abandon(DrainingError("took too long"))
    for call in calls:
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert await call.details() == "took too long"
    await served.gate.idle()


async def test_a_fault_of_ours_is_internal_and_its_log_holds_no_text(served, monkeypatch) -> None:
    def explode(self, text, *arguments, **options) -> None:
        raise ValueError(f"cannot do {text}")

    monkeypatch.setattr(Translator, "prepare", explode)
    with capture_logs() as log, pytest.raises(InternalError) as caught:
        await translate(served, "my secret")
    assert "secret" not in str(caught.value)
    assert [entry["error"] for entry in log] == ["ValueError"]
    assert "secret" not in repr(log)
    assert served.count("requests_total", "TranslateText", "INTERNAL") == 1


@pytest.mark.parametrize("server_settings", [{"queue_source_tokens": 1_000}], indirect=True)
@pytest.mark.parametrize("method", ["TranslateText", "StreamTranslateText"])
async def test_a_request_without_prospects_is_refused_before_its_texts_are_split(served, monkeypatch, method) -> None:
    first = translate(served, "tom " * 1_100)
    # Of it, only a portion is queued; but all of it waits.
    await until(lambda: len(served.mailbox.waiting) > 0)
    assert served.mailbox.waiting.load.source_tokens < 1_000
    monkeypatch.setattr(Translator, "open", lambda *arguments: pytest.fail("was split"))
    call = getattr(served.stub, method)(pb.TranslateTextRequest(contents=["tom"], model="en-de"))
    assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert served.count("rejected_total", "QUEUE_FULL") == 1
    first.cancel()
    with pytest.raises((asyncio.CancelledError, RequestCancelledError)):
        await first


@pytest.mark.parametrize("server_settings", [{"queue_source_tokens": 1_000}], indirect=True)
@pytest.mark.parametrize("method", ["TranslateText", "StreamTranslateText"])
async def test_html_is_refused_for_its_text_and_not_for_its_tags(served, method) -> None:
    first = translate(served, "tom " * 200)
    await until(lambda: len(served.mailbox.waiting) > 0)
    tags = f'<p class="{"x" * 5_000}">'
    start = getattr(served.stub, method)
    accepted = start(pb.TranslateTextRequest(contents=[tags + "tom"], model="en-de", mime_type="text/html"))
    before = len(served.mailbox.waiting)
    await until(lambda: len(served.mailbox.waiting) > before or accepted.done())
    assert not accepted.done()
    refused = start(pb.TranslateTextRequest(contents=[tags + "tom " * 2_000], model="en-de", mime_type="text/html"))
    assert await refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    accepted.cancel()
    first.cancel()
    with pytest.raises((asyncio.CancelledError, RequestCancelledError)):
        await first


async def test_large_texts_do_not_hold_up_others(served) -> None:
    large = "tom " * 20_000
    call = translate(served, large, timeout_s=PATIENCE_S)
    small = translate(served, "   ")
    assert (await small)[0].text == "   "
    segments = await served.taken(1)
    call.cancel()
    with pytest.raises((asyncio.CancelledError, RequestCancelledError)):
        await call
    await until(lambda: len(served.mailbox.waiting) == 0)
    assert segments


async def test_time_to_the_first_token_is_observed_once_a_segment(served) -> None:
    call = translate(served, "tom. Good tom.")
    for segment in await served.taken(2):
        segment.first_token_s = segment.submitted_s + 250.0  # a decode is submitted microseconds before its segment
        served.exhaust(segment)
    await call
    assert served.metrics.total("time_to_first_token_seconds_sum") == pytest.approx(500.0, rel=0.01)


@pytest.mark.parametrize("text", ["tom", "tom " * 20_000])
async def test_a_model_is_needed_from_its_choice_to_the_last_end(served, monkeypatch, text: str) -> None:
    """Else its engine could be stopped while a text is prepared for it, which a large one is on another thread."""
    [model] = served.gate.catalog()
    open_text, needed = Translator.open, []

    def note(*arguments: object):
        needed.append(model.busy)
        return open_text(*arguments)

    monkeypatch.setattr(Translator, "open", note)
    call = translate(served, text, timeout_s=PATIENCE_S)
    segments = await served.taken(1)
    assert needed == [True]
    assert model.busy
    call.cancel()
    with pytest.raises((asyncio.CancelledError, RequestCancelledError)):
        await call
    await until(lambda: not len(served.mailbox.waiting))
    for segment in segments:
        segment.finish(FinishReason.CANCELLED, 0.0)
    served.mailbox.deliver(segments)
    await until(lambda: not model.busy)


async def test_a_call_leaves_one_record(served) -> None:
    call = translate(served, "tom. Good tom.", "tom")
    for segment in await served.taken(3):
        segment.admitted_s = segment.submitted_s + 1_000.0
        segment.encoded_s = segment.submitted_s + 3_000.0
        segment.target_ids.append(7)
        segment.finish(FinishReason.EOS, segment.submitted_s + 7_000.0)
        served.mailbox.deliver([segment])
    [first, second] = await call
    await until(lambda: served.records)
    [record] = served.records
    assert (record.method, record.code, record.reason) == ("TranslateText", grpc.StatusCode.OK, "")
    assert (record.model, record.caller) == ("en-de", "ipv4:127.0.0.1")
    assert (record.texts, record.segments, record.cached, record.coalesced) == (2, 3, 0, 0)
    assert record.source_tokens == first.source_tokens + second.source_tokens
    assert record.target_tokens == first.target_tokens + second.target_tokens == 3
    milliseconds = record.stages_ms()
    assert milliseconds == pytest.approx([1_000_000.0, 2_000_000.0, 4_000_000.0], rel=0.01)
    assert record.duration_s > 0


async def test_a_refused_call_leaves_a_record_without_a_model(served) -> None:
    with pytest.raises(InvalidRequestError):
        await served.client.translate(["tom"], source_language="xx", target_language="de")
    await until(lambda: served.records)
    [record] = served.records
    assert (record.code, record.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "UNKNOWN_LANGUAGE_PAIR")
    assert (record.model, record.texts, record.segments) == ("", 1, 0)


async def test_a_call_that_is_left_leaves_a_record_of_how_long_it_waited(served) -> None:
    call = translate(served, "tom")
    await until(lambda: len(served.mailbox.waiting) == 1)
    call.cancel()
    await until(lambda: served.records)
    [record] = served.records
    assert record.code is grpc.StatusCode.CANCELLED
    assert (record.segments, record.target_tokens) == (1, 0)
    queue_ms, _, decode_ms = record.stages_ms()
    assert queue_ms > 0
    assert decode_ms == 0


small_answers = pytest.mark.parametrize("server_settings", [{"max_answer_bytes": 65_536}], indirect=True)
TOO_LONG = "station" * 9_000  # 63,000 bytes: three of them are more than a message


@small_answers
async def test_texts_whose_translations_would_hardly_fit_are_refused_before_any_work(served) -> None:
    limit = 65_536 // 3
    with pytest.raises(InvalidRequestError, match=rf"^contents: must be at most {limit} bytes together, are 21846: "):
        await served.client.translate(["€" * 7_000, "a" * 846], model="en-de")
    assert len(served.mailbox.waiting) == 0
    assert served.count("rejected_total", "INVALID_REQUEST") == 1
    blanks = [" " * 20_000, " " * (limit - 20_000)]
    assert [each.text for each in await served.client.translate(blanks, model="en-de")] == blanks


@pytest.mark.parametrize("server_settings", [{"max_answer_bytes": 65_536, "max_text_bytes": 20_000}], indirect=True)
async def test_texts_that_are_too_large_by_themselves_do_not_count(served) -> None:
    texts = ["a" * 20_001, " ", "a" * 20_001]
    answers = await served.client.translate(texts, model="en-de", all_or_nothing=False)
    assert [type(answer.error) for answer in answers] == [InvalidRequestError, type(None), InvalidRequestError]


@small_answers
async def test_an_answer_that_is_too_large_has_a_reason_of_its_own(served, tokenizer) -> None:
    call = translate(served, "tom")
    [segment] = await served.taken(1)
    segment.target_ids.extend(tokenizer.encode(TOO_LONG + TOO_LONG))
    segment.finish(FinishReason.EOS, 0.0)
    served.mailbox.deliver([segment])
    with pytest.raises(AnswerTooLargeError, match=r"^the answer must be at most 65536 bytes, is 126\d\d\d") as caught:
        await call
    assert (caught.value.code, caught.value.retryable) == (grpc.StatusCode.INVALID_ARGUMENT, False)
    assert served.count("requests_total", "TranslateText", "INVALID_ARGUMENT") == 1


@small_answers
async def test_a_stream_takes_what_is_too_much_for_one_answer(served) -> None:
    texts = [" " * 60_000] * 4
    got = [""] * 4
    async for message in served.stub.StreamTranslateText(pb.TranslateTextRequest(contents=texts, model="en-de")):
        assert message.ByteSize() <= 65_536
        got[message.content_index] += message.text_delta
    assert got == texts


@small_answers
@pytest.mark.parametrize("all_or_nothing", [False, True])
async def test_a_streamed_translation_that_no_message_holds_is_an_error(served, tokenizer, all_or_nothing) -> None:
    request = pb.TranslateTextRequest(contents=["tom", " "], model="en-de", all_or_nothing=all_or_nothing)
    call = asyncio.create_task(results(served, "StreamTranslateText", request))
    [segment] = await served.taken(1)
    segment.target_ids.extend(tokenizer.encode(TOO_LONG + TOO_LONG))
    segment.finish(FinishReason.EOS, 0.0)
    served.mailbox.deliver([segment])
    if all_or_nothing:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert type(from_rpc_error(caught.value)) is AnswerTooLargeError
    else:
        bad, blank = await call
        assert type(from_text_error(bad.text_error)) is AnswerTooLargeError
        assert blank.translated_text == " "
        [record] = served.records
        assert record.failed_texts == 1
