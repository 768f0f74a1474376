"""A server that is stopped and started again, many times, under callers that make no call twice."""

import http.client
import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

import grpc

from bench.server_process import free_ports
from dragoman.errors import from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.e2e.steady_load import OFF, SENTENCES, expected_of
from tests.server_process import PATIENCE_S
from tests.waiting import until

RESTARTS: Final = 6
GRPC_CALLERS: Final = 12
HTTP_CALLERS: Final = 4
ANSWERS: Final = 40  # between two restarts
PAUSE_S: Final = 0.005
LONGER_PAUSE_S: Final = 0.05  # after a call that was refused
ANSWERED: Final = "answered"
# What a call may end with: gRPC's own UNAVAILABLE has no reason, and HTTP's refused connection is no call.
ALLOWED: Final = {
    "grpc answered",
    "grpc UNAVAILABLE DRAINING",
    "grpc UNAVAILABLE LOADING",
    "grpc UNAVAILABLE SERVER_UNAVAILABLE",
    "http answered",
    "http 503 DRAINING, try again after 1 s, the connection ends",
    "http 503 LOADING, try again after 1 s",
    "http refused",
}

Say = Callable[[str], None]


class Callers:
    """Callers that translate one sentence after another, until they are told that it is enough.

    Attributes:
        outcomes: how often their calls ended how.
    """

    def __init__(self, expected: dict[str, str], address: str, http_address: str) -> None:
        self.outcomes: Counter[str] = Counter()
        self._expected = expected
        self._enough = threading.Event()
        self._count = threading.Lock()
        calls = [(call_grpc, address)] * GRPC_CALLERS + [(call_http, http_address)] * HTTP_CALLERS
        self._threads = [threading.Thread(target=call, args=[self, place]) for call, place in calls]

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def answered(self) -> int:
        """Counts the right answers."""
        return self.outcomes[f"grpc {ANSWERED}"] + self.outcomes[f"http {ANSWERED}"]

    def texts(self, kind: str) -> Iterator[tuple[str, Say]]:
        """Yields what to translate, and who is to be told how that ended."""
        pause_s = PAUSE_S

        def say(outcome: str) -> None:
            nonlocal pause_s
            pause_s = PAUSE_S if outcome == ANSWERED else LONGER_PAUSE_S
            with self._count:
                self.outcomes[f"{kind} {outcome}"] += 1

        while not self._enough.wait(pause_s):
            yield random.choice(SENTENCES), say

    def judge(self, text: str, translation: str) -> str:
        """Names the outcome of a call that was answered."""
        return ANSWERED if translation == self._expected[text] else f"wrong: {text!r}: {translation!r}"


def call_grpc(callers: Callers, address: str) -> None:
    """Calls over a connection of its own."""
    options = [
        ("grpc.enable_retries", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_reconnect_backoff_ms", 200),
    ]
    with grpc.insecure_channel(address, options) as channel:
        stub = TranslationStub(channel)
        for text, say in callers.texts("grpc"):
            request = pb.TranslateTextRequest(contents=[text], model="en-de")
            try:
                answer = stub.TranslateText(request, timeout=PATIENCE_S)
                say(callers.judge(text, answer.translations[0].translated_text))
            except grpc.RpcError as error:
                say(f"{error.code().name} {from_rpc_error(error).reason}")


def call_http(callers: Callers, address: str) -> None:
    """Calls over one connection after the other, as the server ends them."""
    with closing(http.client.HTTPConnection(address, timeout=PATIENCE_S)) as connection:
        for text, say in callers.texts("http"):
            body = json.dumps({"contents": [text], "model": "en-de"})
            is_new = connection.sock is None
            try:
                connection.request("POST", "/v1/translate", body, {"content-type": "application/json"})
                answer = connection.getresponse()
                content = json.loads(answer.read())
            except ConnectionRefusedError:
                connection.close()
                say("refused")
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                say(f"{error!r} of {'a new' if is_new else 'an open'} connection")
            else:
                if answer.status == 200:
                    say(callers.judge(text, content["translations"][0]["translatedText"]))
                else:
                    ends = ", the connection ends" if answer.getheader("connection") == "close" else ""
                    reason, retry_s = content["error"]["details"][0]["reason"], answer.getheader("retry-after")
                    say(f"{answer.status} {reason}, try again after {retry_s} s{ends}")


def test_no_call_is_lost_where_a_server_is_restarted_again_and_again(serve) -> None:
    port, http_port = free_ports(2)
    server = serve(f"--address=127.0.0.1:{port}", f"--http-address=127.0.0.1:{http_port}", *OFF)
    with Callers(expected_of(server), server.address, server.http_address) as callers:
        for _ in range(RESTARTS):
            enough = callers.answered() + ANSWERS
            until(lambda enough=enough: callers.answered() >= enough)
            server.signal(signal.SIGTERM)
            assert server.exit_code() == 0
            server = serve(f"--address={server.address}", f"--http-address={server.http_address}", *OFF)
    assert set(callers.outcomes) <= ALLOWED
    assert set(callers.outcomes) - {"grpc answered", "http answered"}  # a server that stops or begins, or none
