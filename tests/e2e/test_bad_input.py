"""What a server refuses: one precise error each, and afterwards a good call succeeds."""

import asyncio

import grpc
import pytest

from dragoman import (
    AsyncClient,
    Client,
    DeadlineExceededError,
    InvalidRequestError,
    QueueFullError,
    UnknownLanguagePairError,
    UnknownModelError,
)
from dragoman.errors import from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.waiting import until

GOOD = {"contents": ["Good morning."], "source_language_code": "en", "target_language_code": "de"}
SECRET = "My secret is 4711."


@pytest.fixture(params=["TranslateText", "StreamTranslateText"])
def call(request, server):
    """Calls either method with the fields of a request, and raises the error of Dragoman."""
    with grpc.insecure_channel(server.address) as channel:
        method = getattr(TranslationStub(channel), request.param)

        def make(**fields):
            try:
                answer = method(pb.TranslateTextRequest(**fields), timeout=60)
                return list(answer) if request.param.startswith("Stream") else [answer]
            except grpc.RpcError as error:
                raise from_rpc_error(error) from None

        yield make
        assert make(**GOOD)


@pytest.mark.parametrize(
    ("fields", "field", "description"),
    [
        ({"contents": []}, "contents", "must hold 1 to 1024 texts, holds 0"),
        ({"contents": ["a"] * 1025}, "contents", "must hold 1 to 1024 texts, holds 1025"),
        (
            {"contents": ["a", "ä" * 550_001], "all_or_nothing": True},
            "contents[1]",
            "must be at most 1100000 bytes, is 1100002",
        ),
        ({"request_id": "a b"}, "request_id", "must be 1 to 128 letters, digits and any of \"._:-\", is 'a b'"),
        ({"priority": 9}, "priority", "must be one of PRIORITY_UNSPECIFIED, PRIORITY_INTERACTIVE, PRIORITY_BULK, is 9"),
        ({"source_language_code": "automatic"}, "source_language_code", "must be a BCP-47 code such as"),
        (
            {"source_language_code": "en_US"},
            "source_language_code",
            'must be a BCP-47 code such as "en" or "en-US", is \'en_US\'',
        ),
        ({"target_language_code": "d" * 99}, "target_language_code", "…"),
        (
            {"mime_type": "text/markdown"},
            "mime_type",
            'must be "text/plain", "text/html", "text/xml" or empty, is \'text/markdown\'',
        ),
        (
            {"options": pb.TranslateOptions(max_target_tokens=4_000_000_000)},
            "options.max_target_tokens",
            "for model en-de, is 4000000000",
        ),
        ({"options": {"beam_size": 17}}, "options.beam_size", "must be at most 16, is 17"),
        ({"options": {"alternatives": 17}}, "options.alternatives", "must be at most 16, is 17"),
        (
            {"options": {"beam_size": 2, "alternatives": 3}},
            "options.alternatives",
            "must be at most beam_size, which is 2, is 3",
        ),
        (
            {"options": {"alignments": True}, "mime_type": "text/html"},
            "options.alignments",
            'must be false for mime_type "text/html"',
        ),
        ({"options": {"length_penalty": -10.5}}, "options.length_penalty", "must be -10 to 10, is -10.5"),
    ],
)
def test_a_field_out_of_range_is_named(call, fields, field, description) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        call(**{**GOOD, **fields})
    [violation] = caught.value.violations
    assert violation.field == field
    assert description in violation.description
    assert caught.value.reason == "INVALID_REQUEST"
    assert caught.value.request_id
    assert not caught.value.retryable


def test_all_bad_fields_are_named_at_once(call) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        call(
            contents=[],
            source_language_code="?",
            target_language_code="?",
            mime_type="image/png",
            request_id="?",
            priority=7,
        )
    fields = [violation.field for violation in caught.value.violations]
    assert fields == [
        "contents",
        "source_language_code",
        "target_language_code",
        "mime_type",
        "request_id",
        "priority",
    ]


def test_an_unknown_language_pair(call) -> None:
    with pytest.raises(UnknownLanguagePairError, match=r"no translation from 'fr' to 'de'.*en to de"):
        call(**{**GOOD, "source_language_code": "fr"})


def test_the_languages_of_another_model(call) -> None:
    with pytest.raises(UnknownLanguagePairError, match="the model has en to de"):
        call(**{**GOOD, "model": "en-de", "target_language_code": "fr"})


def test_an_unknown_model(call) -> None:
    with pytest.raises(UnknownModelError, match="no model 'xx'; there are: en-de") as caught:
        call(**{**GOOD, "model": "xx"})
    assert caught.value.metadata == {"model": "xx"}


def test_a_text_that_is_too_large_fails_alone(client) -> None:
    texts = ["Good morning.", "ä" * 550_001, "Where is the station?"]
    first, bad, last = client.translate(texts, model="en-de", all_or_nothing=False)
    assert [first, last] == client.translate([texts[0], texts[2]], model="en-de")
    assert isinstance(bad.error, InvalidRequestError)
    assert [violation.field for violation in bad.error.violations] == ["contents[1]"]
    assert (bad.text, bad.model) == ("", "en-de")


def test_errors_never_hold_the_text(call) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        call(contents=[SECRET], mime_type="x")
    assert SECRET not in str(caught.value)
    assert SECRET not in str(caught.value.violations)


def test_a_message_over_the_limit_is_told_so(call) -> None:
    with pytest.raises(InvalidRequestError, match="at most 8388608 bytes, is 90000") as caught:
        call(contents=["x" * 1_000_000] * 9)
    assert caught.value.metadata["max_request_bytes"] == "8388608"


def test_a_message_of_more_than_twice_the_limit_is_refused_by_grpc(server) -> None:
    with grpc.insecure_channel(server.address) as channel:
        request = pb.TranslateTextRequest(**{**GOOD, "contents": ["x" * 1_000_000] * 17})
        with pytest.raises(grpc.RpcError) as caught:
            TranslationStub(channel).TranslateText(request, timeout=60)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert TranslationStub(channel).TranslateText(pb.TranslateTextRequest(**GOOD), timeout=60)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("TranslateText", b"no protobuf"),
        ("TranslateText", b"\n\x02\xc3\x28"),  # a text that is not UTF-8
        ("ListModels", b"\xff"),
    ],
)
def test_bytes_that_are_no_request_are_refused(server, method, message) -> None:
    with grpc.insecure_channel(server.address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(f"/dragoman.v1.Translation/{method}")(message, timeout=60)
        error = from_rpc_error(caught.value)
        assert isinstance(error, InvalidRequestError)
        assert error.reason == "INVALID_REQUEST"
        assert "not a valid request" in error.message
        assert TranslationStub(channel).TranslateText(pb.TranslateTextRequest(**GOOD), timeout=60)


def test_a_passed_deadline(client, server) -> None:
    text = " ".join(f"Tom bought {number} books." for number in range(5_000))
    with pytest.raises(DeadlineExceededError):
        client.translate(text, model="en-de", timeout_s=0.3)
    until(lambda: not server.metric("queue_source_tokens"))  # so many segments are withdrawn slice by slice
    assert client.translate(GOOD["contents"], model="en-de")


def test_a_full_queue_and_a_text_that_is_longer_than_it(serve) -> None:
    server = serve("--queue-source-tokens=60", "--slots=1", "--threads=1")

    async def flood() -> list[object]:
        async with AsyncClient(server.address, timeout_s=60) as client:
            text = "She reads {} books every evening before she goes to sleep."
            calls = [client.translate([text.format(3 * n + i) for i in range(3)], model="en-de") for n in range(50)]
            return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(flood())
    refused = [outcome for outcome in outcomes if isinstance(outcome, QueueFullError)]
    assert refused
    assert all(error.retryable and error.retry_delay_s for error in refused)
    assert [outcome for outcome in outcomes if isinstance(outcome, list)]
    assert server.metric("rejected_total", reason="QUEUE_FULL") == len(refused)
    with Client(server.address) as client:
        # An empty queue takes what is over its limit, so that the limit of a text is that of its bytes alone.
        translation = client.translate("Tom bought a book. " * 50, model="en-de")
        assert translation.segments == 50
