"""How long `dragoman serve` takes to be ready and to give its first answer, and how much memory it holds. Linux only.

    dragoman bench cold-start [--requests 200] [-- arguments of serve]

The clock starts before the process and stops when its health service says SERVING. Files that were read
lately come from the page cache: only the first start after boot is colder.
"""

import argparse
import time
from collections.abc import Sequence

from bench.arguments import add_serve, whole
from bench.frame import Figures
from bench.memory import peak_resident_mib, resident_mib
from bench.server_process import english_model, running, serve_command
from dragoman import Client


def add_arguments(parser: argparse.ArgumentParser) -> None:
    help_ = "sentences, sent one by one (%(default)s)"
    parser.add_argument("--requests", type=whole, default=200, metavar="N", help=help_)
    add_serve(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    return started(serve_command(*arguments.serve), arguments.requests)


def started(command: Sequence[str], requests: int) -> Figures:
    """Start a server by a command, send requests one by one, and stop it."""
    with running(command) as server:
        pid = server.process.pid
        idle_mib, first_ms = resident_mib(pid), None
        with Client(server.address) as client:
            model = english_model(client)
            for number in range(requests):
                start_s = time.perf_counter()
                client.translate(f"Train {number} leaves at noon.", model=model)
                first_ms = first_ms or (time.perf_counter() - start_s) * 1e3
        figures = {
            "time_to_serving_s": server.time_to_serving_s,
            "rss_idle_mib": idle_mib,
            "requests": requests,
            "first_request_ms": first_ms,
            "rss_after_requests_mib": resident_mib(pid),
            "rss_peak_mib": peak_resident_mib(pid),
            "model": model,
        }
    return {**figures, "exit_code": server.process.returncode}
