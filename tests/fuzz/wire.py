"""The part of `make fuzz` that speaks raw HTTP/2: odd connections, many at a time, while a probe must be answered.

python -m tests.fuzz.wire --connections 5000 --seed 1
"""

import argparse
import random
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from dragoman import Client
from tests.fuzz.frames import draw
from tests.fuzz.probe import probing
from tests.fuzz.rest import check_at_rest, check_descriptors, open_descriptors
from tests.server_process import PATIENCE_S, ServerProcess

_AT_A_TIME = 8
_PATIENCE_WITH_SERVER_S = 0.2  # a server that does not read or answer may be waiting for more


def attack(server: ServerProcess, seed: int, connections: int) -> int:
    """Makes odd connections while a probe calls; gives how many calls the probe has made.

    Raises:
        AssertionError: the probe was not answered, or something is left of the connections.
    """
    before = open_descriptors(server)
    with probing(partial(_ask, server.address)) as answers, ThreadPoolExecutor(_AT_A_TIME) as pool:
        list(pool.map(lambda number: _send(server.address, random.Random(f"{seed}/{number}")), range(connections)))
    check_at_rest(server)
    check_descriptors(server, before)
    assert answers
    return len(answers)


def _send(address: str, source: random.Random) -> None:
    """Sends what one connection is to send, reads for a moment and leaves, politely or not."""
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.settimeout(_PATIENCE_WITH_SERVER_S)
        connection.sendall(draw(source))
        if source.random() < 0.5:
            connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


def _ask(address: str) -> str:
    with Client(address, timeout_s=PATIENCE_S) as client:
        return client.translate("Good morning.", model="en-de").text


def main() -> int:
    """Prints what came of it."""
    parser = argparse.ArgumentParser("tests.fuzz.wire", description=__doc__)
    parser.add_argument("--connections", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    server = ServerProcess(())
    try:
        server.wait_until_serving()
        answers = attack(server, options.seed, options.connections)
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0, server.log[-3:]
    finally:
        server.close()
    print(f"{options.connections} odd connections; a probe made {answers} calls meanwhile, and all were answered")
    return 0


if __name__ == "__main__":
    sys.exit(main())
