"""Server processes of a measurement: started on a free port, ready when they say so, stopped at the end."""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import Client

# Loads repeat their texts: all caches are off, so that each text is translated.
NOTHING_FREE = ("--encoder-cache-mb", "0", "--result-cache-mb", "0", "--no-coalesce")
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_POLL_S = 0.005
# Below those that a system gives to outgoing connections: one of these could be taken before a server listens there.
_PORTS: Final = range(20_000, 32_768)


class ServerError(Exception):
    """A server ended, or was not ready in time; the message holds the end of its log."""


@dataclass(frozen=True)
class Running:
    """A server that serves."""

    address: str
    metrics_address: str
    process: subprocess.Popen[bytes]  # its process; has an exit code once the block of `running` is left
    time_to_serving_s: float  # from before its process was started until its health service said SERVING


def serve_command(*arguments: str | Path) -> list[str]:
    """Return the command line of `dragoman serve` with these arguments, of this Python's Dragoman."""
    return [sys.executable, "-m", "dragoman.cli", "serve", "--http-address", "none", *map(str, arguments)]


@contextmanager
def running(command: Sequence[str], cores: Collection[int] | None = None) -> Iterator[Running]:
    """Run a server for the time of the block, which begins when it serves.

    Args:
        command: starts it, once `--address` and `--metrics-address` are appended.
        cores: on which it may run; None: on those of this process. Linux only.
    """
    address, metrics_address = (f"127.0.0.1:{port}" for port in free_ports(2))
    addresses = ["--address", address, "--metrics-address", metrics_address]
    start_s = time.monotonic()
    with tempfile.TemporaryFile() as log, subprocess.Popen([*command, *addresses], stdout=log, stderr=log) as process:
        try:
            if cores is not None:
                os.sched_setaffinity(process.pid, cores)  # in force long before the server starts a thread
            _await_serving(process, address, start_s + START_TIMEOUT_S, log)
            yield Running(address, metrics_address, process, time.monotonic() - start_s)
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_TIMEOUT_S)
        finally:
            process.kill()


def english_model(client: Client) -> str:
    """Name the model of a server for the English sentences of a measurement; the first where none reads English."""
    models = client.list_models()
    return next((model.name for model in models if model.source_language == "en"), models[0].name)


def free_ports(count: int) -> list[int]:
    """Find ports that are free now, no two equal; an OSError where there are not as many."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"fewer than {count} of the ports from {_PORTS[0]} to {_PORTS[-1]} are free")


def _await_serving(process: subprocess.Popen[bytes], address: str, deadline_s: float, log: IO[bytes]) -> None:
    """Wait for a listener without gRPC, whose first retry takes a second, then for its health."""
    while not _listens(address):
        _pause(process, deadline_s, log)
    with grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        while not _serves(health):
            _pause(process, deadline_s, log)


def _serves(health: health_pb2_grpc.HealthStub) -> bool:
    try:
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=START_TIMEOUT_S)
    except grpc.RpcError:  # it has ended since it listened
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def _listens(address: str) -> bool:
    host, port = address.split(":")
    with closing(socket.socket()) as probe:
        return probe.connect_ex((host, int(port))) == 0


def _pause(process: subprocess.Popen[bytes], deadline_s: float, log: IO[bytes]) -> None:
    if process.poll() is not None:
        log.seek(0)
        said = log.read().decode(errors="replace").strip().splitlines()
        raise ServerError(f"a server ended with exit code {process.returncode}: {said[-1] if said else 'no word'}")
    if time.monotonic() > deadline_s:
        raise ServerError(f"a server was not ready after {START_TIMEOUT_S:g} s")
    time.sleep(_POLL_S)
