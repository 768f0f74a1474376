"""BatchTranslateText against a real server: order, flow control, bad texts, cancellation, draining, resuming."""

import asyncio
import itertools
import json
import signal
import threading
from collections.abc import Iterator

import grpc
import pytest

from dragoman import AsyncClient, Client, InternalError, TextFailedError
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.e2e.test_control import FAILING_ON_LONG, POISON
from tests.waiting import until_free

PATIENCE_S = 120.0
COUNT = 3_000  # more than the windows of both sides
SUBJECTS = ["Tom", "Mary", "My brother", "The old man"]


def texts(start: int = 0, count: int | None = None) -> Iterator[str]:
    """Sentences that all differ."""
    for number in itertools.islice(itertools.count(start), count):
        yield f"{SUBJECTS[number % 4]} bought {number} books."


def expected(client: Client) -> list[str]:
    chunks = [list(map(str, range(first, first + 1_000))) for first in range(0, COUNT, 1_000)]
    return [one.text for chunk in chunks for one in client.translate(chunk, model="en-de")]


@pytest.mark.parametrize("in_order", [True, False])
def test_thousands_of_texts_are_the_unary_answers(client, in_order: bool) -> None:
    answers = list(client.translate_many(map(str, range(COUNT)), model="en-de", in_order=in_order))
    numbers = [answer.content_index for answer in answers]
    assert sorted(numbers) == list(range(COUNT))
    assert not in_order or numbers == sorted(numbers)
    by_number = dict(answers)
    assert [by_number[number].text for number in range(COUNT)] == expected(client)


def test_a_slow_reader_is_waited_for_and_bounds_what_is_in_flight(client, server) -> None:
    read = itertools.count()
    many = client.translate_many((f"{next(read)}." for _ in itertools.count()), model="en-de")
    assert next(many).content_index == 0
    until_free(server)  # it takes in no more while nobody reads on
    assert next(read) < 2_500
    assert [answer.content_index for answer in itertools.islice(many, 500)] == list(range(1, 501))
    many.close()
    until_free(server)


def test_cancelling_in_the_middle_leaves_no_slot(client, server) -> None:
    cancelled = server.metric("cancelled_segments_total")
    many = client.translate_many(texts(20_000), model="en-de")
    for _ in range(300):
        next(many)
    many.close()
    until_free(server)
    assert server.metric("cancelled_segments_total") > cancelled
    assert client.translate("Good morning.", model="en-de")


def test_a_poisonous_text_is_one_answer_of_many(serve) -> None:
    server = serve("--result-cache-mb=0", "--encoder-cache-mb=0", program=("-c", FAILING_ON_LONG))
    sentences = list(texts(0, 300))
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        healthy = [answer.translation.text for answer in client.translate_many(sentences, model="en-de")]
        answers = list(client.translate_many([*sentences[:150], POISON, *sentences[150:]], model="en-de"))
        assert [answer.content_index for answer in answers] == list(range(301))
        bad = answers.pop(150).translation
        assert type(bad.error) is TextFailedError
        assert [answer.translation.text for answer in answers] == healthy
        first, second = client.translate(["Good morning.", POISON], model="en-de", all_or_nothing=False)
        assert (first.error, bool(first.text)) == (None, True)
        assert isinstance(second.error, InternalError)
        with pytest.raises(TextFailedError):
            client.translate(["Good morning.", POISON], model="en-de")
    until_free(server)


def test_a_small_queue_makes_many_streams_wait_and_fails_none(serve) -> None:
    server = serve("--queue-source-tokens=300", "--slots=4", "--threads=1", "--result-cache-mb=0")

    async def run() -> list[list[str]]:
        async with AsyncClient(server.address, timeout_s=PATIENCE_S) as client:

            async def pipeline(start: int) -> list[str]:
                many = client.translate_many(texts(start, 150), model="en-de")
                return [answer.translation.text async for answer in many]

            return await asyncio.gather(*(pipeline(start) for start in range(0, 600, 150)))

    answers = asyncio.run(run())
    assert [len(texts) for texts in answers] == [150] * 4
    assert all(itertools.chain(*answers))
    assert server.metric("rejected_total", reason="QUEUE_FULL") == 0


def test_a_server_that_stops_says_how_far_it_got_and_another_one_goes_on(serve) -> None:
    servers = [serve(), serve()]
    with Client("ipv4:" + ",".join(server.address for server in servers)) as client:
        many = client.translate_many(map(str, range(COUNT)), model="en-de")
        answers = [next(many) for _ in range(100)]
        busy = max(servers, key=lambda server: server.metric("source_tokens_total"))
        busy.signal(signal.SIGTERM)
        answers += many
        assert busy.exit_code() == 0
    assert [answer.content_index for answer in answers] == list(range(COUNT))
    assert all(answer.translation.text for answer in answers)
    assert [line["reason"] for line in map(json.loads, busy.log) if line["event"] == "request"] == ["DRAINING"]


def test_a_stream_that_nobody_reads_does_not_hold_up_the_end(serve) -> None:
    server = serve("--drain-timeout-s=0.2")
    stop = threading.Event()

    def messages() -> Iterator[pb.BatchTranslateTextRequest]:
        yield pb.BatchTranslateTextRequest(config=pb.BatchTranslateTextConfig(model="en-de"))
        while not stop.is_set():
            yield pb.BatchTranslateTextRequest(contents=[" " * 100_000])

    with grpc.insecure_channel(server.address) as channel:
        call = TranslationStub(channel).BatchTranslateText(messages())
        next(call)
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0
        stop.set()
        call.cancel()
