"""What one server of several processes does: calls a second, processor time, and memory that is shared. Linux only.

    dragoman bench processes [--processes 1,2] [--json OUT]

One server at a time, whose processes divide the cores, with all caches off: calls of one sentence over 64 connections.
The servers take turns, round by round; a row is the median of its rounds. The load comes from this process and shares
the cores.
"""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from bench import frame, metrics_page
from bench.arguments import add_bundle, count, counts, input_file, positive
from bench.frame import Figures
from bench.load.drive import put
from bench.load.loops import ClosedLoop
from bench.load.samples import Samples
from bench.load.texts import read_data_file, serialize_requests
from bench.memory import processor_s
from bench.server_process import NOTHING_FREE, Running, ServerError, running, serve_command
from dragoman.bundle import Manifest
from dragoman.v1 import translation_pb2 as pb

_CONNECTIONS: Final = 64  # the system spreads them over the processes by chance
_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add, default = parser.add_argument, Path("models/en-de/checkpoint/parity.tsv")
    add("--processes", type=counts, default=[1, 2], metavar="N,...", help="of each server (1,2)")
    add("--data", type=input_file, default=default, metavar="FILE", help="pairs or text lines (%(default)s)")
    add("--clients", type=count, default=64, metavar="N", help="that call at a time (%(default)s)")
    add("--seconds", type=positive, default=5.0, metavar="S", help="of each load (%(default)g)")
    add("--rounds", type=count, default=5, metavar="N", help="of all loads (%(default)s)")
    add_bundle(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    texts = read_data_file(arguments.data).texts
    requests = serialize_requests(texts, 1, pb.TranslateTextRequest(model=Manifest.read(arguments.bundle).name))
    measures = [partial(_one, processes, requests, arguments) for processes in arguments.processes]
    return {"processes": [frame.medians(rows) for rows in frame.in_turn(measures, arguments.rounds)]}


def _one(processes: int, requests: Sequence[bytes], arguments: argparse.Namespace) -> dict[str, float]:
    """Start a server, and put a load on it."""
    command = serve_command("--models", arguments.bundle, "--processes", str(processes), *NOTHING_FREE)
    with running(command) as server:
        _await_all(server, processes)
        pids = [server.process.pid, *_children(server.process.pid)]
        idle_mib = sum(map(_share_mib, pids))
        _load(server, requests, arguments.clients, arguments.seconds / 5)  # warm
        before_s, began_s = sum(map(processor_s, pids)), time.monotonic()
        samples = _load(server, requests, arguments.clients, arguments.seconds)
        took_s, spent_s = time.monotonic() - began_s, sum(map(processor_s, pids)) - before_s
        if samples.unanswered:
            raise ServerError(f"the server did not answer {samples.unanswered} calls")
        return {
            "processes": processes,
            "calls_per_s": samples.completed / took_s,
            "cpu_ms": 1e3 * spent_s / samples.completed,
            "idle_mib": idle_mib,
            "loaded_mib": sum(map(_share_mib, pids)),
        }


def _await_all(server: Running, processes: int) -> None:
    """Wait until each process serves: each has its metrics on the page of all."""
    give_up_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < give_up_s:
        page = metrics_page.read(server.metrics_address, _TIMEOUT_S)
        if (page.total("processes"), page.total("serving")) == (processes, 1):
            return
        time.sleep(_POLL_S)
    raise ServerError(f"not all of {processes} processes serve")


def _load(server: Running, requests: Sequence[bytes], clients: int, seconds: float) -> Samples:
    loop = ClosedLoop(clients, 0.0, seconds, None)
    return put([server.address], requests, loop, timeout_s=_TIMEOUT_S, connections=_CONNECTIONS)


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()))


def _share_mib(pid: int) -> float:
    """Return the mebibytes of a process: its own pages, and of each that it shares with others its part (PSS)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    [kib] = [line.split()[1] for line in lines if line.startswith("Pss:")]
    return int(kib) / 1024
