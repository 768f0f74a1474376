"""How long `dragoman serve` takes to be ready, and how much memory it holds; prints JSON. Linux only.

    python -m bench.cold_start [--data FILE] [--requests 200] [-- arguments of serve]

The clock starts before the process and stops when its health service says SERVING. Files that were read
lately come from the page cache: only the first start after boot is colder.
"""

import json
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench.arguments import add_serve, make_parser, whole
from bench.load.texts import read_data_file
from bench.machine import now
from bench.memory.process import peak_resident_mib, resident_mib
from bench.server_process import Running, ServerError, running, serve_command
from dragoman import Client

_SENTENCES = [
    "Good morning.",
    "Where is the nearest railway station?",
    "I have been waiting for you since this morning, and I am getting hungry.",
    "The committee will publish its report at the end of the month.",
]


def main(argv: list[str]) -> int:
    """Measure one start and print what it found; 1 when the server did not start."""
    parser = make_parser("python -m bench.cold_start", __doc__)
    parser.add_argument(
        "--data", type=Path, metavar="FILE", help="source<TAB>target or text lines; default: four sentences"
    )
    parser.add_argument("--requests", type=whole, default=200, metavar="N", help="sent one by one (%(default)s)")
    add_serve(parser)
    arguments = parser.parse_args(argv)
    texts = read_data_file(arguments.data).texts if arguments.data else _SENTENCES
    try:
        report = measure(serve_command(*arguments.serve), list(islice(cycle(texts), arguments.requests)))
    except ServerError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(report, indent=2))
    return 0


def measure(command: list[str], texts: list[str]) -> dict[str, Any]:
    """Start a server on free ports, send the texts one by one, and stop it.

    Args:
        command: Starts the server, once `--address` and `--metrics-address` are appended.
        texts: One request each.

    Returns:
        The figures, their units in their names, ready for JSON.

    Raises:
        ServerError: The server ended or was not ready in time.
    """
    date = now()
    with running(command) as server:
        report = _measure_running(server, texts)
    return {"date": date, "command": command, **report, "exit_code": server.process.returncode}


def _measure_running(server: Running, texts: list[str]) -> dict[str, Any]:
    pid = server.process.pid
    idle_mib = resident_mib(pid)
    with Client(server.address) as client:
        model = client.list_models()[0].name
        latencies_ms = [_translate_ms(client, model, text) for text in texts]
    return {
        "time_to_serving_s": server.time_to_serving_s,
        "rss_idle_mib": idle_mib,
        "requests": len(texts),
        "first_request_ms": latencies_ms[0] if latencies_ms else None,
        "rss_after_requests_mib": resident_mib(pid),
        "rss_peak_mib": peak_resident_mib(pid),
        "model": model,
    }


def _translate_ms(client: Client, model: str, text: str) -> float:
    start = time.perf_counter()
    client.translate(text, model=model)
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
