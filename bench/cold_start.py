"""How long `dragoman serve` takes to be ready, and how much memory it holds. Linux only.

    dragoman bench cold-start [--data FILE] [--requests 200] [-- arguments of serve]

The clock starts before the process and stops when its health service says SERVING. Files that were read
lately come from the page cache: only the first start after boot is colder.
"""

import argparse
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from bench.arguments import add_serve, whole
from bench.frame import Figures
from bench.load.texts import read_data_file
from bench.memory import peak_resident_mib, resident_mib
from bench.server_process import english_model, running, serve_command
from dragoman import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=Path, metavar="FILE", help="source<TAB>target or text lines; default: one sentence")
    add("--requests", type=whole, default=200, metavar="N", help="sent one by one (%(default)s)")
    add_serve(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    texts = read_data_file(arguments.data).texts if arguments.data else ["Where is the nearest railway station?"]
    return started(serve_command(*arguments.serve), list(islice(cycle(texts), arguments.requests)))


def started(command: Sequence[str], texts: Sequence[str]) -> Figures:
    """Start a server by a command, send the texts one by one, and stop it."""
    with running(command) as server:
        pid = server.process.pid
        idle_mib, latencies_ms = resident_mib(pid), list[float]()
        with Client(server.address) as client:
            model = english_model(client)
            for text in texts:
                start_s = time.perf_counter()
                client.translate(text, model=model)
                latencies_ms.append((time.perf_counter() - start_s) * 1e3)
        figures = {
            "time_to_serving_s": server.time_to_serving_s,
            "rss_idle_mib": idle_mib,
            "requests": len(texts),
            "first_request_ms": latencies_ms[0] if latencies_ms else None,
            "rss_after_requests_mib": resident_mib(pid),
            "rss_peak_mib": peak_resident_mib(pid),
            "model": model,
        }
    return {**figures, "exit_code": server.process.returncode}
