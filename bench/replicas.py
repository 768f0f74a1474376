"""What one and two replicas cost, in processor time of the server. Linux only.

    dragoman bench replicas [--json OUT]

Servers of one thread, each on one core, translate calls of one sentence, with all caches off: single sentences on an
idle server, beside more and more others, calls that are refused, and one and two replicas in turn. The load comes
from this process and shares the cores, so that calls a second say less.
"""

import argparse
import time
from collections.abc import Sequence
from os import sched_getaffinity
from pathlib import Path
from typing import Final

import grpc
import numpy as np

from bench import frame, metrics_page
from bench.arguments import add_bundle, count, input_file, positive
from bench.frame import Figures
from bench.load.drive import put
from bench.load.loops import ClosedLoop
from bench.load.texts import read_data_file, serialize_requests
from bench.memory import processor_s
from bench.server_process import NOTHING_FREE, Running, ServerError, running, serve_command
from dragoman.bundle import Manifest
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub

SLOTS: Final = 32  # the server's default, for one thread
_CLIENTS: Final = (1, 2, 4, 8, 16, 32, 48)
_BUSY_CLIENTS: Final = 48
_REFUSED_CLIENTS: Final = 64
_TIMEOUT_S: Final = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add, default = parser.add_argument, Path("models/en-de/checkpoint/parity.tsv")
    add("--data", type=input_file, default=default, metavar="FILE", help="pairs or text lines (%(default)s)")
    add("--sentences", type=count, default=200, metavar="N", help="of the file, from the first on (%(default)s)")
    add("--seconds", type=positive, default=1.5, metavar="S", help="of each load (%(default)g)")
    add("--rounds", type=count, default=5, metavar="N", help="of each load; the cheapest counts (%(default)s)")
    add_bundle(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    texts, seconds = read_data_file(arguments.data).texts[: arguments.sentences], arguments.seconds
    requests = serialize_requests(texts, 1, pb.TranslateTextRequest(model=Manifest.read(arguments.bundle).name))
    unknown = [pb.TranslateTextRequest(contents=texts[:1], model="no/such/model").SerializeToString()]
    command = serve_command("--models", arguments.bundle, "--threads", "1", "--slots", str(SLOTS), *NOTHING_FREE)
    cores, rounds = sorted(sched_getaffinity(0)), range(arguments.rounds)
    with running(command, cores[:1]) as first, running(command, cores[-1:]) as second:
        both = [first, second]
        _cost(both, requests, 2 * _BUSY_CLIENTS, seconds)  # warm
        alone_ms = _alone_ms(first, requests, arguments.rounds)
        occupancies = [
            _cheapest([_occupancy(first, requests, clients, seconds) for _ in rounds]) for clients in _CLIENTS
        ]
        refused = _cheapest([_cost([first], unknown, _REFUSED_CLIENTS, seconds) for _ in rounds])
        measures = [
            lambda servers=servers: _cost(servers, requests, len(servers) * _BUSY_CLIENTS, seconds)
            for servers in ([first], both)
        ]
        scales = frame.in_turn(measures, arguments.rounds)
    return {
        "sentences": len(alone_ms),
        "alone_ms_p5_p50_p95": np.percentile(alone_ms, [5, 50, 95]).tolist(),
        "refusal_ms": refused["cpu_ms"],
        "occupancies": occupancies,
        "replicas": [_cheapest(rows) for rows in scales],
    }


def _cheapest(rows: Sequence[Figures]) -> Figures:
    """Choose the row of the least cost: others use the machine too."""
    return min(rows, key=lambda row: float(row["cpu_ms"]))


def _alone_ms(server: Running, requests: Sequence[bytes], rounds: int) -> list[float]:
    """Measure a call of each request on an idle server: the least of all rounds."""
    with grpc.insecure_channel(server.address) as channel:
        translate = TranslationStub(channel).TranslateText

        def call(request: pb.TranslateTextRequest) -> float:
            before_s = processor_s(server.process.pid)
            translate(request, timeout=_TIMEOUT_S)
            return 1e3 * (processor_s(server.process.pid) - before_s)

        messages = [pb.TranslateTextRequest.FromString(request) for request in requests]
        passes = [[call(message) for message in messages] for _ in range(rounds)]
    return [min(calls) for calls in zip(*passes, strict=True)]


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
    """Measure calls that are all answered, or all refused."""
    before_s = sum(processor_s(server.process.pid) for server in servers)
    samples = put([server.address for server in servers], requests, ClosedLoop(clients, 0.0, seconds, None))
    spent_s = sum(processor_s(server.process.pid) for server in servers) - before_s
    if samples.completed and samples.unanswered:
        raise ServerError(f"a server answered {samples.completed} calls, and {samples.unanswered} not")
    calls = samples.completed + samples.unanswered
    return {"replicas": len(servers), "cpu_ms": 1e3 * spent_s / calls, "calls_per_s": calls / seconds}
