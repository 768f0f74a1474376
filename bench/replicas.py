"""What one and two replicas cost, in processor time of the server. Linux only.

    dragoman bench replicas [--json OUT]

Servers of one thread, each on one core, translate calls of one sentence, with all caches off: alone, beside more and
more others, calls that are refused, and one and two replicas, in turn, round by round. The load comes from this
process and shares the cores, so that calls a second say less.
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from os import sched_getaffinity
from typing import Final

from bench import frame, metrics_page
from bench.arguments import add_bundle, add_data, count, positive
from bench.frame import Figures
from bench.load.cost import cost
from bench.load.texts import read_data_file, requests_of
from bench.server_process import NOTHING_FREE, Running, running, serve_command
from dragoman.bundle import Manifest

SLOTS: Final = 32  # the server's default, for one thread
_CLIENTS: Final = (1, 2, 4, 8, 16, 32, 48)
_BUSY_CLIENTS: Final = 48
_REFUSED_CLIENTS: Final = 64
_TIMEOUT_S: Final = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_data(parser)
    add("--sentences", type=count, default=200, metavar="N", help="of the file, from the first on (%(default)s)")
    add("--seconds", type=positive, default=1.5, metavar="S", help="of each load (%(default)g)")
    add("--rounds", type=count, default=5, metavar="N", help="of each load; the cheapest counts (%(default)s)")
    add_bundle(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    texts, seconds = read_data_file(arguments.data).texts[: arguments.sentences], arguments.seconds
    requests = requests_of(texts, Manifest.read(arguments.bundle).name)
    unknown = requests_of(texts[:1], "no/such/model")
    command = serve_command("--models", arguments.bundle, "--threads", "1", "--slots", str(SLOTS), *NOTHING_FREE)
    cores = sorted(sched_getaffinity(0))
    with running(command, cores[:1]) as first, running(command, cores[-1:]) as second:
        both = [first, second]
        _cost(both, requests, 2 * _BUSY_CLIENTS, seconds)  # warm
        measures = [
            *(partial(_occupancy, first, requests, clients, seconds) for clients in _CLIENTS),
            partial(_cost, [first], unknown, _REFUSED_CLIENTS, seconds),
            partial(_cost, [first], requests, _BUSY_CLIENTS, seconds),
            partial(_cost, both, requests, 2 * _BUSY_CLIENTS, seconds),
        ]
        found = frame.in_turn(measures, arguments.rounds)
    # Others use the machine too.
    *occupancies, refused, one, two = (min(rows, key=lambda row: float(row["cpu_ms"])) for rows in found)
    return {
        "sentences": len(texts),
        "refusal_ms": refused["cpu_ms"],
        "occupancies": occupancies,
        "replicas": [one, two],
    }


def _occupancy(server: Running, requests: Sequence[bytes], clients: int, seconds: float) -> Figures:
    inside_s, began_s = _inside_s(server), time.monotonic()
    cpu_ms = _cost([server], requests, clients, seconds)["cpu_ms"]
    took_s = time.monotonic() - began_s
    return {"clients": clients, "calls inside": (_inside_s(server) - inside_s) / took_s, "cpu_ms": cpu_ms}


def _inside_s(server: Running) -> float:
    """Return the seconds that all calls so far were in the server."""
    page = metrics_page.read(server.metrics_address, _TIMEOUT_S)
    return page.total("request_duration_seconds_sum", method="TranslateText")


def _cost(servers: Sequence[Running], requests: Sequence[bytes], clients: int, seconds: float) -> Figures:
    addresses, pids = [server.address for server in servers], [server.process.pid for server in servers]
    return {"replicas": len(servers), **cost(addresses, pids, requests, clients, seconds)}
