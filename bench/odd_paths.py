"""Calls whose paths are no UTF-8, a thousand a second, on a server that a probe calls meanwhile; prints a table.

    python -m bench.odd_paths --seconds 60

Each such call once ended the accepting of calls for good. The probe opens a connection for each call, as new clients
do. Linux only.
"""

import socket
import sys
import threading
import time
from typing import Final, NamedTuple

import numpy as np

from bench.arguments import add_bundle, count, make_parser, not_negative, positive
from bench.beside import beside
from bench.server_process import NOTHING_FREE, running, serve_command
from dragoman import Client
from dragoman.errors import DragomanError

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
_PROBES_PER_S: Final = 10
_PROBE_TIMEOUT_S: Final = 10.0
_ODD_PATH: Final = b"/\xff"
_CALLS_OF_A_CONNECTION: Final = 100


class Probe(NamedTuple):
    """One call of the probe: when it was due, how long its answer took from then, and whether it was right."""

    due_s: float
    seconds: float
    right: bool


def main(argv: list[str]) -> int:
    """Print the table; the exit code is 1 if the probe had an error."""
    parser = make_parser("python -m bench.odd_paths", __doc__)
    add = parser.add_argument
    add("--seconds", type=positive, default=60.0, metavar="S", help="length of the attack (%(default)s)")
    add("--quiet-s", type=not_negative, default=10.0, metavar="S", help="time before and after it (%(default)s)")
    add("--per-second", type=count, default=1000, metavar="N", help="frames per second (%(default)s)")
    add_bundle(parser)
    arguments = parser.parse_args(argv)
    with running(serve_command("--models", arguments.bundle, *NOTHING_FREE)) as server:
        probes, attack, sent = _drive(server.address, arguments.quiet_s, arguments.seconds, arguments.per_second)
    begin_s, end_s = attack
    parts = {
        "before": [probe for probe in probes if probe.due_s < begin_s],
        "during": [probe for probe in probes if begin_s <= probe.due_s < end_s],
        "after": [probe for probe in probes if probe.due_s >= end_s],
    }
    print("| | probe's calls | errors | p50 ms | p99 ms |\n| --- | --- | --- | --- | --- |")
    for name, part in parts.items():
        p50, p99 = (np.percentile([probe.seconds * 1000 for probe in part] or [0], each) for each in (50, 99))
        print(f"| {name} | {len(part)} | {sum(not probe.right for probe in part)} | {p50:.1f} | {p99:.1f} |")
    print(f"\n{sent} frames with the path {_ODD_PATH!r} in {end_s - begin_s:.1f} s")
    return int(not all(probe.right for probe in probes))


def _drive(
    address: str, quiet_s: float, seconds: float, per_second: int
) -> tuple[list[Probe], tuple[float, float], int]:
    """Probe a server, and attack it meanwhile.

    Returns:
        The probe's calls, from when to when the attack lasted, and its frames.
    """
    probes: list[Probe] = []
    with beside(lambda ended: _probe(address, probes, ended)):
        time.sleep(quiet_s)
        begin_s = time.monotonic()
        sent = _attack(address, begin_s + seconds, per_second)
        end_s = time.monotonic()
        time.sleep(quiet_s)
    return probes, (begin_s, end_s), sent


def _probe(address: str, probes: list[Probe], ended: threading.Event) -> None:
    """Call at fixed times; an answer that is late counts from when its call was due."""
    due_s = time.monotonic()
    while not ended.wait(max(0.0, due_s - time.monotonic())):
        try:
            with Client(address, timeout_s=_PROBE_TIMEOUT_S) as client:
                right = bool(client.translate("Good morning.", model="en-de").text)
        except DragomanError:
            right = False
        probes.append(Probe(due_s, time.monotonic() - due_s, right))
        due_s += 1 / _PROBES_PER_S


def _attack(address: str, until_s: float, per_second: int) -> int:
    """Send frames at a rate, with a new connection for every hundred; give how many were sent."""
    began_s, sent = time.monotonic(), 0
    while time.monotonic() < until_s:
        with _connected(address) as connection:
            for number in range(_CALLS_OF_A_CONNECTION):
                time.sleep(max(0.0, began_s + sent / per_second - time.monotonic()))
                try:
                    connection.sendall(_headers(2 * number + 1))
                except OSError:  # the server has closed the connection
                    break
                sent += 1
    return sent


def _connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=_PROBE_TIMEOUT_S)
    connection.sendall(_PREFACE)
    return connection


def _headers(stream: int) -> bytes:
    """Make a HEADERS frame that begins and ends a call, not compressed."""
    fields = {
        b":method": b"POST",
        b":scheme": b"http",
        b":path": _ODD_PATH,
        b":authority": b"dragoman",
        b"content-type": b"application/grpc",
        b"te": b"trailers",
    }
    block = b"".join(
        b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in fields.items()
    )
    return len(block).to_bytes(3) + b"\x01\x05" + stream.to_bytes(4) + block


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
