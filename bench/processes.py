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
from bench.arguments import add_bundle, add_data, count, counts, positive
from bench.frame import Figures
from bench.load.cost import cost
from bench.load.texts import read_data_file, requests_of
from bench.server_process import NOTHING_FREE, Running, ServerError, running, serve_command
from dragoman.bundle import Manifest

_CONNECTIONS: Final = 64  # the system spreads them over the processes by chance
_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_data(parser)
    add("--processes", type=counts, default=[1, 2], metavar="N,...", help="of each server (1,2)")
    add("--clients", type=count, default=64, metavar="N", help="that call at a time (%(default)s)")
    add("--seconds", type=positive, default=5.0, metavar="S", help="of each load (%(default)g)")
    add("--rounds", type=count, default=5, metavar="N", help="of all loads (%(default)s)")
    add_bundle(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    requests = requests_of(read_data_file(arguments.data).texts, Manifest.read(arguments.bundle).name)
    measures = [partial(_one, processes, requests, arguments) for processes in arguments.processes]
    return {"processes": [frame.medians(rows) for rows in frame.in_turn(measures, arguments.rounds)]}


def _one(processes: int, requests: Sequence[bytes], arguments: argparse.Namespace) -> dict[str, float]:
    """Start a server, and put a load on it."""
    command = serve_command("--models", arguments.bundle, "--processes", str(processes), *NOTHING_FREE)
    with running(command) as server:
        _await_all(server, processes)
        pids = [server.process.pid, *_children(server.process.pid)]
        idle_mib = sum(map(_share_mib, pids))
        load = partial(cost, [server.address], pids, requests, arguments.clients, connections=_CONNECTIONS)
        load(seconds=arguments.seconds / 5)  # warm
        found = load(seconds=arguments.seconds)
        return {"processes": processes, **found, "idle_mib": idle_mib, "loaded_mib": sum(map(_share_mib, pids))}


def _await_all(server: Running, processes: int) -> None:
    """Wait until each process serves: each has its metrics on the page of all."""
    give_up_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < give_up_s:
        page = metrics_page.read(server.metrics_address, _TIMEOUT_S)
        if (page.total("processes"), page.total("serving")) == (processes, 1):
            return
        time.sleep(_POLL_S)
    raise ServerError(f"not all of {processes} processes serve")


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()))


def _share_mib(pid: int) -> float:
    """Return the mebibytes of a process: its own pages, and of each that it shares with others its part (PSS)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    [kib] = [line.split()[1] for line in lines if line.startswith("Pss:")]
    return int(kib) / 1024
