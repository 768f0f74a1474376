"""The part of `make fuzz` that speaks HTTP: odd connections, many at a time, while a probe must be answered.

python -m tests.fuzz.http --connections 5000 --seed 1
"""

import argparse
import json
import random
import re
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import NamedTuple

from bench.memory import resident_mib
from tests.fuzz.http_requests import Drawn, draw
from tests.fuzz.probe import probing
from tests.fuzz.rest import check_at_rest, check_descriptors, open_descriptors
from tests.server_process import PATIENCE_S, ServerProcess

_AT_A_TIME = 16
_PATIENCE_WITH_SERVER_S = 0.2  # a server that does not answer may be waiting for more
_PAUSE_S = 0.01
_WARM = 0.2  # of the connections, in which memory may still grow
_MOST_GROWTH_MIB = 64.0  # two of the largest bodies, as text and as values, at a time
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n")
_GOOD = b'{"contents": ["Good morning."], "model": "en-de"}'
_HEAD = b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
_SILENT = (b"", b"POST /v1/tra", _HEAD, _HEAD + b"content-length: 99\r\n\r\n{")


class Found(NamedTuple):
    """What came of odd connections.

    Attributes:
        outcomes: how many of each kind had each status, or "no answer".
        probes: calls that were made meanwhile, and answered.
        warm_mib: resident once a part of them was made.
        end_mib: resident at the end.
    """

    outcomes: Counter[tuple[str, str]]
    probes: int
    warm_mib: float
    end_mib: float


def attack(server: ServerProcess, seed: int, connections: int) -> Found:
    """Makes odd connections while a probe calls.

    Raises:
        AssertionError: one did not end as it should, the probe was not answered, or something is left of them.
    """
    before, lock = open_descriptors(server), threading.Lock()
    outcomes: Counter[tuple[str, str]] = Counter()

    def send(number: int) -> None:
        drawn = draw(random.Random(f"{seed}/{number}"))
        statuses = _send(server.http_address, drawn)
        with lock:
            outcomes.update((drawn.kind, status) for status in statuses or ["no answer"])

    warm = int(connections * _WARM)
    ask = partial(_ask, server.http_address)
    with probing(ask) as answers, ThreadPoolExecutor(_AT_A_TIME) as pool:
        list(pool.map(send, range(warm)))
        warm_mib = resident_mib(server.process.pid)
        list(pool.map(send, range(warm, connections)))
    check_at_rest(server)
    check_descriptors(server, before)
    end_mib = resident_mib(server.process.pid)
    assert answers
    assert ask() == answers[0]
    failed = {outcome: count for outcome, count in outcomes.items() if outcome[1].startswith("5")}
    assert not failed, failed
    return Found(outcomes, len(answers), warm_mib, end_mib)


def _send(address: str, drawn: Drawn) -> list[str]:
    """Sends what one connection is to send, and gives the statuses of the answers."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        with suppress(ConnectionError):  # the server may have refused it before its end
            for part in drawn.parts:
                connection.sendall(part)
                if len(drawn.parts) > 1:
                    time.sleep(_PAUSE_S)
        return _answer(connection, drawn) if drawn.is_whole else _answers(connection)


def _answer(connection: socket.socket, drawn: Drawn) -> list[str]:
    """Waits for the one answer; an error must say what is wrong.

    Raises:
        TimeoutError: there is neither an answer nor an end.
    """
    response = HTTPResponse(connection, method="HEAD" if drawn.is_head else "GET")
    try:
        response.begin()
        body = response.read()
    except (ConnectionError, HTTPException):  # what was not read resets a connection that the server has closed
        return []
    if response.status >= 400 and not drawn.is_head:
        content = json.loads(body)
        error = content.get("error", content)
        assert error if isinstance(error, str) else error["message"], (drawn, body)
    return [str(response.status)]


def _answers(connection: socket.socket) -> list[str]:
    """Reads for a moment and leaves."""
    connection.settimeout(_PATIENCE_WITH_SERVER_S)
    said = b""
    with suppress(OSError):
        while part := connection.recv(65536):
            said += part
    return [status.decode() for status in _STATUS.findall(said)]


def _ask(address: str) -> str:
    connection = HTTPConnection(address, timeout=PATIENCE_S)
    try:
        connection.request("POST", "/v1/translate", _GOOD, {"content-type": "application/json"})
        return str(json.loads(connection.getresponse().read())["translations"][0]["translatedText"])
    finally:
        connection.close()


@contextmanager
def _silent(address: str) -> Iterator[None]:
    """Connections that begin and then say nothing; the server must have ended all of them in the end."""
    host, _, port = address.rpartition(":")
    connections = []
    for sent in _SILENT:
        connections.append(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
        connections[-1].sendall(sent)
    try:
        yield
        for connection in connections:
            with suppress(ConnectionError):
                while connection.recv(65536):
                    pass
    finally:
        for connection in connections:
            connection.close()


def main() -> int:
    """Prints what came of it; 1 where the server did not behave."""
    parser = argparse.ArgumentParser("tests.fuzz.http", description=__doc__)
    parser.add_argument("--connections", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    server = ServerProcess(("--http-address=127.0.0.1:0", "--max-target-factor=0.5", "--max-target-offset=4"))
    try:
        server.wait_until_serving()
        with _silent(server.http_address):
            found = attack(server, options.seed, options.connections)
        assert found.end_mib < found.warm_mib + _MOST_GROWTH_MIB, (found.warm_mib, found.end_mib)
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0, server.log[-3:]
    finally:
        server.close()
    for (kind, status), count in sorted(found.outcomes.items()):
        print(f"{kind:20} {status:10} {count:>8}")
    print(f"{options.connections} odd connections; a probe made {found.probes} calls meanwhile, and all were answered")
    print(f"{found.warm_mib:.0f} MiB resident after {_WARM:.0%} of them, {found.end_mib:.0f} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
