"""What one client sends that is valid and heavy: the others are served meanwhile, and it leaves nothing behind."""

from collections.abc import Iterator
from typing import NamedTuple

import grpc
import pytest

from bench.memory import resident_mib
from dragoman import QueueFullError
from dragoman.errors import from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.e2e.relay import Relay
from tests.server_process import ServerProcess
from tests.waiting import until

PATIENCE_S = 120
LIMIT_SOURCE_TOKENS = 200_000  # the default
WINDOW = 1_024  # segments of one call that are on their way
INTERACTIVE, BULK = pb.PRIORITY_INTERACTIVE, pb.PRIORITY_BULK
SENTENCES = ("Good morning.", "Where is the station?", "I have never been to Berlin.", "She reads a book every week.")


class SharedServer(NamedTuple):
    """A server and its two clients."""

    server: ServerProcess
    heavy: TranslationStub
    light: TranslationStub


@pytest.fixture
def shared(serve) -> Iterator[SharedServer]:
    server = serve("--threads=1", "--slots=4")
    with (
        Relay(server.address, "127.0.0.2") as relay,
        grpc.insecure_channel(server.address) as own,
        grpc.insecure_channel(relay.address) as other,
    ):
        yield SharedServer(server, TranslationStub(own), TranslationStub(other))


def request(*texts: str, priority: int = BULK) -> pb.TranslateTextRequest:
    return pb.TranslateTextRequest(contents=texts, model="en-de", priority=priority)


def answered(stub: TranslationStub, text: str, priority: int = INTERACTIVE) -> bool:
    [translation] = stub.TranslateText(request(text, priority=priority), timeout=PATIENCE_S).translations
    return bool(translation.translated_text)


def megabyte(first: int) -> str:
    """Different sentences."""
    return " ".join(f"Tom bought {number} books." for number in range(first, first + 38_000))


def check_that_nothing_is_left(shared: SharedServer) -> None:
    until(lambda: shared.server.metric("queue_segments") == shared.server.metric("slots_active") == 0)
    until(lambda: shared.server.metric("queue_source_tokens") == shared.server.metric("estimated_delay_seconds") == 0)
    assert answered(shared.light, "Good night.")
    assert answered(shared.heavy, "Good evening.")


def test_eight_megabytes_of_one_client_refuse_nobody_else(shared: SharedServer) -> None:
    """They have some two million source tokens, ten times what may wait."""
    texts = [megabyte(1_000_000 * number) for number in range(1, 9)]
    assert all(950_000 < len(text) < 1_048_576 for text in texts)
    call = shared.heavy.StreamTranslateText(request(*texts))
    until(lambda: shared.server.metric("queue_segments") > WINDOW / 2)
    for text in SENTENCES:
        for priority in (INTERACTIVE, BULK):
            assert answered(shared.light, f"{text} Is it {priority}?", priority)
        assert shared.server.metric("queue_segments") < 1.1 * WINDOW
        assert shared.server.metric("queue_source_tokens") < LIMIT_SOURCE_TOKENS
    # What is still to come counts for its own client.
    with pytest.raises(grpc.RpcError) as caught:
        shared.heavy.TranslateText(request("Good morning."), timeout=PATIENCE_S)
    error = from_rpc_error(caught.value)
    assert isinstance(error, QueueFullError)
    assert int(error.metadata["client_source_tokens"]) > LIMIT_SOURCE_TOKENS
    call.cancel()
    assert answered(shared.light, "Is it over?")
    assert answered(shared.light, "Is it over now?", BULK)
    check_that_nothing_is_left(shared)


@pytest.mark.parametrize("text", ["a\n" * 500_000, "".join(f"{n}a\n" for n in range(150_000))], ids=["same", "other"])
def test_a_text_of_very_many_segments_takes_little_memory_and_leaves_at_once(shared: SharedServer, text: str) -> None:
    pid = shared.server.process.pid
    assert answered(shared.light, "Good morning.")
    # Long ones, and others each time: those of before may be in the cache.
    sentences = [f"Tom bought {number} of {len(text)} books in the old shop by the station." for number in range(1_000)]
    crowd = shared.heavy.TranslateText.future(request(*sentences))
    until(lambda: shared.server.metric("queue_segments") > 500)
    before_mib = resident_mib(pid)
    call = shared.heavy.StreamTranslateText(request(text))
    until(lambda: shared.server.metric("queue_segments") > 500 or crowd.done())
    for number in range(20):
        assert answered(shared.light, f"I have {number} apples.")
    assert resident_mib(pid) - before_mib < 150
    call.cancel()
    for number in range(20):
        assert answered(shared.light, f"I have {number} pears.")
    crowd.cancel()
    check_that_nothing_is_left(shared)


def test_many_large_texts_of_one_client_are_read_beside_the_calls_of_others(shared: SharedServer) -> None:
    calls = [shared.heavy.StreamTranslateText(request("a! " * 133_000)) for _ in range(12)]
    until(lambda: shared.server.metric("segments_total") > 0)
    for number in range(50):
        text = " ".join(f"{sentence} It is {number}." for sentence in SENTENCES) * 5  # of more than one portion
        assert len(text) > 512
        assert answered(shared.light, text)
    # Those that came late may be refused: together they have more than may wait of one client.
    assert {call.code() for call in calls if call.done()} <= {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert not all(call.done() for call in calls)
    for call in calls:
        call.cancel()
    check_that_nothing_is_left(shared)


def test_calls_that_are_answered_from_the_cache_do_not_keep_others_waiting(shared: SharedServer) -> None:
    heavy = request(*(f"Tom bought {number % 64} books." for number in range(1_024)))
    shared.heavy.TranslateText(heavy)  # without a deadline, which on a slow machine might be out of reach
    before = shared.server.metric("result_cache_misses_total")
    answered_first: list[int] = []
    # One after the other, most of the calls would be answered first every time. On a busy machine this process may
    # sleep before it asks, so it has more than one try.
    while min(answered_first, default=20) > 5 and len(answered_first) < 5:
        hits = shared.server.metric("result_cache_hits_total")
        calls = [shared.heavy.TranslateText.future(heavy) for _ in range(20)]
        until(lambda hits=hits: shared.server.metric("result_cache_hits_total") > hits)
        assert answered(shared.light, f"Good morning, number {len(answered_first)}.")
        answered_first.append(sum(call.done() for call in calls))
        for call in calls:
            assert len(call.result().translations) == 1_024
    assert min(answered_first) <= 5, f"{answered_first} of 20 calls were answered first"
    assert shared.server.metric("result_cache_misses_total") == before + len(answered_first)
    check_that_nothing_is_left(shared)
