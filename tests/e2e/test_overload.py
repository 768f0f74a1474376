"""One client floods a server: what becomes of it, of another client, and of the server afterwards."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import grpc
import pytest

from dragoman import Client, DeadlineUnreachableError, DragomanError, OverloadedError, QueueFullError
from dragoman.errors import from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.e2e.relay import Relay
from tests.server_process import ServerProcess
from tests.waiting import until

PATIENCE_S = 120
SEGMENTS, CALLS = 10_000, 10
LIMIT_SOURCE_TOKENS = 120_000
INTERACTIVE, BULK = pb.PRIORITY_INTERACTIVE, pb.PRIORITY_BULK


class FloodedServer(NamedTuple):
    """A server that is flooded, and its two clients."""

    server: ServerProcess
    flooding: TranslationStub
    other: TranslationStub
    flood: list[grpc.Future]


def request(*texts: str, priority: int = INTERACTIVE) -> pb.TranslateTextRequest:
    return pb.TranslateTextRequest(contents=texts, model="en-de", priority=priority)


def refused(stub: TranslationStub, asked: pb.TranslateTextRequest, timeout_s: float = PATIENCE_S) -> DragomanError:
    with pytest.raises(grpc.RpcError) as caught:
        stub.TranslateText(asked, timeout=timeout_s)
    return from_rpc_error(caught.value)


def flood(stub: TranslationStub, priority: int) -> list[grpc.Future]:
    """Sends 10,000 different sentences in ten calls."""
    calls = []
    for first in range(0, SEGMENTS, SEGMENTS // CALLS):
        texts = (f"Tom bought {number} books." for number in range(first, first + SEGMENTS // CALLS))
        # Without a deadline, which on a slow machine might be out of reach.
        calls.append(stub.TranslateText.future(request(*texts, priority=priority)))
    return calls


def check_recovery(scene: FloodedServer) -> None:
    assert any(not call.done() for call in scene.flood), "the flood was too short to prove anything"
    for call in scene.flood:
        call.cancel()
    until(lambda: scene.server.metric("queue_segments") == scene.server.metric("slots_active") == 0)
    until(lambda: scene.server.metric("queue_source_tokens") == scene.server.metric("estimated_delay_seconds") == 0)
    with Client(scene.server.address, timeout_s=PATIENCE_S) as client:
        assert client.translate("Good morning.", model="en-de")


@pytest.fixture
def flooded(serve) -> Iterator[Callable[..., FloodedServer]]:
    """Starts a server and floods it; at the end all is withdrawn, and the server must be as before."""
    scenes: list[FloodedServer] = []
    channels: list[grpc.Channel] = []
    relays: list[Relay] = []

    def start(priority: int, *arguments: str) -> FloodedServer:
        server = serve("--threads=1", "--slots=4", f"--queue-source-tokens={LIMIT_SOURCE_TOKENS}", *arguments)
        relays.append(Relay(server.address, "127.0.0.2"))
        channels.extend(grpc.insecure_channel(address) for address in (server.address, relays[-1].address))
        own, other = (TranslationStub(channel) for channel in channels)
        flooding = flood(own, priority)
        scenes.append(FloodedServer(server, own, other, flooding))
        # Those that come late may be refused for the delay.
        until(
            lambda: (
                server.metric("queue_segments") > 0.8 * sum(SEGMENTS / CALLS for call in flooding if not call.done())
            )
        )
        until(lambda: server.metric("drain_source_tokens_per_second") > 0)
        return scenes[-1]

    yield start
    for scene in scenes:
        check_recovery(scene)
    for channel in channels:
        channel.close()
    for relay in relays:
        with relay:
            pass


@pytest.mark.parametrize("priority", [INTERACTIVE, BULK], ids=["interactive", "bulk"])
def test_ten_thousand_segments_of_one_client_do_not_delay_the_one_of_another(flooded, priority: int) -> None:
    scene = flooded(priority, "--max-delay-s=0")
    waiting = scene.server.metric("queue_segments")
    for text in ("Good morning.", "Where is the station?", "I have never been to Berlin."):
        assert scene.other.TranslateText(request(text), timeout=PATIENCE_S).translations
        assert scene.other.TranslateText(request(text + " Is it far?", priority=BULK), timeout=PATIENCE_S).translations
    # In order of arrival, six calls would have waited for all of them, one by one.
    assert scene.server.metric("queue_segments") > 0.5 * waiting


def test_a_client_that_has_its_fill_is_refused_and_told_when_to_come_back(flooded) -> None:
    scene = flooded(BULK)
    large = request("Tom bought a book and read it. " * 5_000, priority=BULK)
    encoded = scene.server.metric("source_tokens_total")
    error = refused(scene.flooding, large)
    assert type(error) is QueueFullError
    assert error.metadata["limit_source_tokens"] == str(LIMIT_SOURCE_TOKENS)
    assert error.retry_delay_s is not None
    assert 0.05 <= error.retry_delay_s <= 30
    assert scene.server.metric("rejected_total", reason="QUEUE_FULL") == 1
    # Tokens were encoded meanwhile, but none of these.
    assert scene.server.metric("source_tokens_total") - encoded < 5_000 * 8
    assert scene.other.TranslateText(request("Good morning.", priority=BULK), timeout=PATIENCE_S).translations


def test_a_deadline_out_of_reach_is_refused_before_any_work(flooded) -> None:
    scene = flooded(BULK)
    timeout_s = scene.server.metric("estimated_delay_seconds") / 3
    error = refused(scene.flooding, request("Good morning.", priority=BULK), timeout_s=timeout_s)
    assert type(error) is DeadlineUnreachableError
    assert error.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert float(error.metadata["estimated_s"]) > timeout_s / 1.25
    assert scene.server.metric("rejected_total", reason="DEADLINE_UNREACHABLE") == 1
    assert scene.server.metric("segments_total", reason="DEADLINE") == 0
    assert scene.server.metric("segments_total", reason="CANCELLED") == 0


def test_interactive_calls_beyond_the_delay_promised_are_refused_at_once(flooded) -> None:
    scene = flooded(INTERACTIVE, "--max-delay-s=0.5")
    error = refused(scene.flooding, request("Good morning."))
    assert type(error) is OverloadedError
    assert error.retry_delay_s is not None
    assert 0.05 <= error.retry_delay_s <= 30
    assert error.metadata["max_delay_s"] == "0.5"
    assert scene.server.metric("rejected_total", reason="OVERLOADED") >= 1
    assert scene.server.metric("queue_priority_source_tokens", priority="interactive") > 0
    assert scene.other.TranslateText(request("Good morning."), timeout=PATIENCE_S).translations
    assert scene.flooding.TranslateText(request("Good night.", priority=BULK), timeout=PATIENCE_S).translations
