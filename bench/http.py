"""What a call costs the server by the protocol that it comes by: gRPC and those of HTTP, in one run. Linux only.

    dragoman bench http --seconds 5 --rounds 3

All calls translate one sentence whose translation is kept, so the engine has no work: what is measured is the way of a
call through the server. Each client keeps its connection, and sends its next call when it has the answer to the last.
The protocols take turns, round by round; a row holds the median of its rounds. CPU time is that of the whole server.
"""

import argparse
import asyncio
import time
from functools import partial
from itertools import product
from statistics import median
from typing import Any, Final

import aiohttp
import grpc.aio

from bench import frame
from bench.arguments import add_bundle, count, counts, positive
from bench.frame import Figures
from bench.load.loops import ClosedLoop
from bench.memory import processor_s
from bench.server_process import Running, free_ports, running, serve_command
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub

_TEXT: Final = "Good morning."
_TIMEOUT_S: Final = 60.0
_OWN: Final = {"contents": [_TEXT], "sourceLanguageCode": "en", "targetLanguageCode": "de"}
_HTTP: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "http": ("/v1/translate", _OWN),
    "connect": ("/dragoman.v1.Translation/TranslateText", _OWN),
    "libretranslate": ("/translate", {"q": _TEXT, "source": "en", "target": "de"}),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seconds", type=positive, default=5.0, metavar="S", help="length of each measurement (%(default)s)")
    add("--rounds", type=count, default=3, metavar="N", help="of all measurements (%(default)s)")
    add("--concurrency", type=counts, default=[1, 16], metavar="N,...", help="clients at a time (1,16)")
    add_bundle(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    [port] = free_ports(1)
    command = serve_command("--models", arguments.bundle, "--http-address", f"127.0.0.1:{port}", "--log-requests=none")
    kinds = list(product(arguments.concurrency, ("grpc", *_HTTP)))
    with running(command) as server:
        measures = [
            lambda clients=clients, protocol=protocol: asyncio.run(
                _one(server, f"http://127.0.0.1:{port}", protocol, clients, arguments.seconds)
            )
            for clients, protocol in kinds
        ]
        found = frame.in_turn(measures, arguments.rounds)
    return {
        "rows": [
            {"protocol": protocol, "clients": clients, **frame.medians(rows)}
            for (clients, protocol), rows in zip(kinds, found, strict=True)
        ]
    }


async def _one(server: Running, url: str, protocol: str, clients: int, seconds: float) -> dict[str, float]:
    times_s: list[float] = []
    connections = aiohttp.TCPConnector(limit=0)
    async with (
        grpc.aio.insecure_channel(server.address) as channel,
        aiohttp.ClientSession(url, connector=connections, raise_for_status=True) as session,
    ):
        stub = TranslationStub(channel)
        call = partial(_grpc, stub) if protocol == "grpc" else partial(_http, session, *_HTTP[protocol])
        await asyncio.gather(*(call() for _ in range(clients)))  # the connections, and the translation that is kept
        busy_s, began_s = processor_s(server.process.pid), time.monotonic()

        def now_s() -> float:
            return time.monotonic() - began_s

        async def send(due_s: float) -> bool:
            await call()
            times_s.append(now_s() - due_s)
            return True

        await ClosedLoop(clients, 0.0, seconds, None).run(send, now_s)
        took_s, busy_s = now_s(), processor_s(server.process.pid) - busy_s
    return {
        "calls_per_s": len(times_s) / took_s,
        "cpu_ms": 1e3 * busy_s / len(times_s),
        "p50_ms": 1e3 * median(times_s),
    }


async def _grpc(stub: TranslationStub) -> None:
    request = pb.TranslateTextRequest(contents=[_TEXT], source_language_code="en", target_language_code="de")
    await stub.TranslateText(request, timeout=_TIMEOUT_S)


async def _http(session: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> None:
    async with session.post(path, json=body) as response:
        await response.read()
