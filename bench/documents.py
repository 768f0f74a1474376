"""What calls of one sentence take beside documents that are hard to read, and how long a stop waits; prints a table.

    python -m bench.documents --seconds 8

One client translates one sentence after the other, none of which is kept, alone and while another client sends one
document after the other: Markdown of prose, Markdown that is slow to parse, and XLIFF of many units. Afterwards the
server is stopped while it reads such a document. Linux only.
"""

import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import count as numbers
from statistics import quantiles
from typing import Final, NamedTuple

from bench.arguments import add_bundle, add_json, make_parser, positive
from bench.beside import beside
from bench.files import write_json
from bench.machine import machine
from bench.server_process import NOTHING_FREE, free_ports, running, serve_command
from dragoman import Client
from dragoman.exit_codes import EXIT_OK

_TIMEOUT_S: Final = 120.0
_BYTES: Final = 500_000
_BOUNDARY: Final = b"boundary"
_ALONE: Final = "alone"
_XLIFF: Final = """<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file
 original="a" source-language="en" target-language="de" datatype="plaintext"><body>%s</body></file></xliff>"""
_UNIT: Final = '<trans-unit id="%d"><source>%s</source></trans-unit>'


class Row(NamedTuple):
    """What calls took beside documents of one kind.

    Attributes:
        beside: the documents.
        calls: that were answered.
        documents: that were answered meanwhile, translated or refused.
        p50_ms: of the calls.
        p99_ms: of the calls.
    """

    beside: str
    calls: int
    documents: int
    p50_ms: float
    p99_ms: float


def main(argv: list[str]) -> int:
    """Print the table."""
    parser = make_parser("python -m bench.documents", __doc__)
    parser.add_argument(
        "--seconds", type=positive, default=8.0, metavar="S", help="length of each measurement (%(default)s)"
    )
    add_bundle(parser)
    add_json(parser)
    arguments = parser.parse_args(argv)
    [port] = free_ports(1)
    flags = ("--models", arguments.bundle, "--http-address", f"127.0.0.1:{port}", "--threads", "1", *NOTHING_FREE)
    rows = []
    with running(serve_command(*flags)) as server, Client(server.address, timeout_s=_TIMEOUT_S) as client:
        url = f"http://127.0.0.1:{port}/translate_file"
        for kind, document in ((_ALONE, None), *documents().items()):
            answers: list[int] = []
            load = nullcontext() if document is None else beside(_sender(url, *document, answers))
            with load:
                times_s = list(_calls(client, arguments.seconds))
            rows.append(_row(kind, times_s, len(answers)))
        sending = threading.Thread(target=_send, args=[url, *documents()["Markdown, slow to parse"]], daemon=True)
        sending.start()
        time.sleep(0.5)  # it is being read
        stop_s = time.monotonic()
    stop_s = time.monotonic() - stop_s
    print(as_markdown(rows))
    print(f"\nThe server stopped within {stop_s:.1f} s while it read a document.")
    write_json(arguments.json, {"machine": machine(), "rows": [row._asdict() for row in rows], "stop_s": stop_s})
    return EXIT_OK


def documents() -> dict[str, tuple[str, bytes]]:
    """Make documents, by what they are: name and content."""
    prose = "\n\n".join(f"Tom bought *{number} books*, and then he read them all." for number in range(9_000))
    units = "".join(_UNIT % (number, "Tom reads.") for number in range(8_000))
    return {
        "Markdown of prose": ("a.md", prose[:_BYTES].encode()),
        "Markdown, slow to parse": ("a.md", b"![" * (_BYTES // 2)),
        "XLIFF of many units": ("a.xlf", (_XLIFF % units).encode()),
    }


def as_markdown(rows: list[Row]) -> str:
    """Write rows as a table, each beside the first."""
    head = "| beside | calls | documents | p50 ms | p99 ms | times p50 alone |\n| --- | --- | --- | --- | --- | --- |"
    lines = (
        f"| {row.beside} | {row.calls} | {row.documents} | {row.p50_ms:.1f} | {row.p99_ms:.1f} "
        f"| {row.p50_ms / rows[0].p50_ms:.2f} |"
        for row in rows
    )
    return "\n".join([head, *lines])


def _row(kind: str, times_s: list[float], answers: int) -> Row:
    shares = quantiles(times_s, n=100)
    return Row(kind, len(times_s), answers, 1e3 * shares[49], 1e3 * shares[98])


def _calls(client: Client, seconds: float) -> Iterator[float]:
    """Translate, and yield how many seconds each call took."""
    end_s = time.monotonic() + seconds
    for number in numbers(1_000):
        began_s = time.monotonic()
        if began_s > end_s:
            return
        client.translate(f"Tom bought {number} books.", source_language="en", target_language="de")
        yield time.monotonic() - began_s


def _sender(url: str, name: str, content: bytes, answers: list[int]) -> Callable[[threading.Event], None]:
    def send(ended: threading.Event) -> None:
        while not ended.is_set():
            answers.append(_send(url, name, content))

    return send


def _send(url: str, name: str, content: bytes) -> int:
    """Send a document; gives the status of the answer, which comes once it is translated or refused."""
    fields = {"source": b"en", "target": b"de", f'file"; filename="{name}': content}
    parts = (
        b'--%s\r\ncontent-disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (_BOUNDARY, key.encode(), value)
        for key, value in fields.items()
    )
    body = b"".join(parts) + b"--%s--\r\n" % _BOUNDARY
    headers = {"content-type": f"multipart/form-data; boundary={_BOUNDARY.decode()}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=_TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:  # the server has stopped
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
