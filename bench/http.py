"""What a call costs the server by the protocol that it comes by: gRPC and those of HTTP, in one run; prints a table.

    python -m bench.http --seconds 5 --rounds 3

All calls translate one sentence whose translation is kept, so the engine has no work: what is measured is the way of a
call through the server. Each client keeps its connections, and sends its next call when it has the answer to the last.
The protocols take turns, round by round; a row holds the median of its rounds. CPU time is that of the whole server.
Linux only.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from statistics import median
from typing import Any, Final, NamedTuple

import grpc.aio

from bench import metrics_page
from bench.arguments import add_bundle, add_json, count, counts, make_parser, positive
from bench.files import write_json
from bench.machine import machine
from bench.server_process import Running, free_ports, running, serve_command
from dragoman.exit_codes import EXIT_OK
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

Call = Callable[[], Awaitable[None]]
Client = Callable[[], AbstractAsyncContextManager[Call]]


class Row(NamedTuple):
    """What calls of one protocol cost.

    Attributes:
        protocol: by which they came.
        concurrency: how many clients called at the same time.
        calls_per_s: that were answered.
        cpu_ms: of the server, for each call.
        p50_ms: of the time until the answer.
    """

    protocol: str
    concurrency: int
    calls_per_s: float
    cpu_ms: float
    p50_ms: float


def main(argv: list[str]) -> int:
    """Print the table."""
    parser = make_parser("python -m bench.http", __doc__)
    add = parser.add_argument
    add("--seconds", type=positive, default=5.0, metavar="S", help="length of each measurement (%(default)s)")
    add("--rounds", type=count, default=3, metavar="N", help="of all measurements (%(default)s)")
    add("--concurrency", type=counts, default=[1, 16], metavar="N,...", help="clients at a time (1,16)")
    add_bundle(parser)
    add_json(parser)
    arguments = parser.parse_args(argv)
    [port] = free_ports(1)
    command = serve_command("--models", arguments.bundle, "--http-address", f"127.0.0.1:{port}", "--log-requests=none")
    with running(command) as server:
        rows = asyncio.run(_rounds(server, port, arguments.rounds, arguments.concurrency, arguments.seconds))
    print(as_markdown(rows))
    write_json(arguments.json, {"machine": machine(), "rows": [row._asdict() for row in rows]})
    return EXIT_OK


def as_markdown(rows: list[Row]) -> str:
    """Write rows as a table."""
    head = "| protocol | clients | calls/s | CPU ms a call | p50 ms |\n| --- | --- | --- | --- | --- |"
    lines = (
        f"| {row.protocol} | {row.concurrency} | {row.calls_per_s:.0f} | {row.cpu_ms:.2f} | {row.p50_ms:.2f} |"
        for row in rows
    )
    return "\n".join([head, *lines])


def medians(rows: list[Row]) -> list[Row]:
    """Make one row of those of the same protocol and concurrency, in the order of the first."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault(row[:2], []).append(row)
    return [
        Row(*key, *(median(column) for column in zip(*(row[2:] for row in group), strict=True)))
        for key, group in groups.items()
    ]


async def _rounds(server: Running, port: int, rounds: int, concurrencies: list[int], seconds: float) -> list[Row]:
    rows = []
    async with grpc.aio.insecure_channel(server.address) as channel:
        clients: dict[str, Client] = {"grpc": lambda: _grpc_client(channel)}
        for protocol in _HTTP:
            clients[protocol] = partial(_http_client, port, *_HTTP[protocol])
        for _ in range(rounds):
            for concurrency in concurrencies:
                for protocol, client in clients.items():
                    rows.append(await _measure(server, protocol, client, concurrency, seconds))
    return medians(rows)


async def _measure(server: Running, protocol: str, client: Client, concurrency: int, seconds: float) -> Row:
    times_s: list[float] = []
    async with AsyncExitStack() as open_:
        calls = [await open_.enter_async_context(client()) for _ in range(concurrency)]
        await asyncio.gather(*(call() for call in calls))  # the connection, and the translation that is kept
        busy_s, began_s = _cpu_s(server), time.monotonic()
        await asyncio.gather(*(_call_on_and_on(call, began_s + seconds, times_s) for call in calls))
        took_s, busy_s = time.monotonic() - began_s, _cpu_s(server) - busy_s
    return Row(protocol, concurrency, len(times_s) / took_s, 1e3 * busy_s / len(times_s), 1e3 * median(times_s))


async def _call_on_and_on(call: Call, end_s: float, times_s: list[float]) -> None:
    while (began_s := time.monotonic()) < end_s:
        await call()
        times_s.append(time.monotonic() - began_s)


def _cpu_s(server: Running) -> float:
    return metrics_page.read(server.metrics_address, _TIMEOUT_S).sums()["process_cpu_seconds_total"]


@asynccontextmanager
async def _grpc_client(channel: grpc.aio.Channel) -> AsyncIterator[Call]:
    translate = TranslationStub(channel).TranslateText
    request = pb.TranslateTextRequest(contents=[_TEXT], source_language_code="en", target_language_code="de")

    async def call() -> None:
        await translate(request, timeout=_TIMEOUT_S)

    yield call


@asynccontextmanager
async def _http_client(port: int, path: str, content: dict[str, Any]) -> AsyncIterator[Call]:
    """Connect; a client of HTTP/1.1 that does the least."""
    body = json.dumps(content)
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    request = f"{head}\r\n\r\n{body}".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def call() -> None:
        writer.write(request)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not answered.startswith(b"http/1.1 200 "):
            raise ConnectionError(answered.decode(errors="replace"))
        await reader.readexactly(int(answered.partition(b"content-length:")[2].partition(b"\r\n")[0]))

    try:
        yield call
    finally:
        writer.close()
        await writer.wait_closed()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
