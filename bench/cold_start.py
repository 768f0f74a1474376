"""How long `dragoman serve` takes to be ready, and how much memory it holds; prints JSON. Linux only.

    python -m bench.cold_start [--data FILE] [--requests 200] [-- arguments of serve]

The clock starts before the process and stops when its health service says SERVING. Files that were read
lately come from the page cache: only the first start after boot is colder.
"""

import argparse
import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.texts import read_data_file
from dragoman.v1 import translation_pb2, translation_pb2_grpc

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_POLL_S = 0.005

_SERVE = [sys.executable, "-m", "dragoman.cli", "serve"]
_SENTENCES = [
    "Good morning.",
    "Where is the nearest railway station?",
    "I have been waiting for you since this morning, and I am getting hungry.",
    "The committee will publish its report at the end of the month.",
]


class StartError(Exception):
    """The server ended, or was not ready in time."""


def main(argv: list[str]) -> int:
    """Measures one start and prints what it found; 1 when the server did not start."""
    parser = argparse.ArgumentParser(prog="python -m bench.cold_start", description="Measure a cold start.")
    parser.add_argument("--data", type=Path, help="source<TAB>target or text lines; default: four sentences")
    parser.add_argument("--requests", type=int, default=200, help="sent one by one (%(default)s)")
    parser.add_argument("serve", nargs="*", help="arguments of dragoman serve, after --")
    arguments = parser.parse_args(argv)
    texts = read_data_file(arguments.data).texts if arguments.data else _SENTENCES
    try:
        report = measure([*_SERVE, *arguments.serve], list(islice(cycle(texts), arguments.requests)))
    except StartError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(report, indent=2))
    return 0


def measure(command: list[str], texts: list[str]) -> dict[str, Any]:
    """Starts a server on free ports, sends the texts one by one, and stops it.

    Args:
        command: Starts the server, once `--address` and `--metrics-address` are appended.
        texts: One request each.

    Returns:
        The figures, their units in their names, ready for JSON.

    Raises:
        StartError: The server ended or was not ready in time; what it said is on stderr.
    """
    address, metrics_address = (f"127.0.0.1:{port}" for port in _free_ports(2))
    addresses = ["--address", address, "--metrics-address", metrics_address]
    date = datetime.now(UTC).isoformat(timespec="seconds")
    start = time.perf_counter()
    with subprocess.Popen([*command, *addresses], stdout=subprocess.DEVNULL) as process:
        try:
            _await_port(process, address, start + START_TIMEOUT_S)
            report = _measure_running(process, address, start, texts)
            process.send_signal(signal.SIGTERM)
            exit_code = process.wait(STOP_TIMEOUT_S)
            return {"date": date, "command": command, **report, "exit_code": exit_code}
        finally:
            process.kill()


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now; all are held at once, so no two are equal."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


def _await_port(process: subprocess.Popen[bytes], address: str, deadline: float) -> None:
    """Waits for a listener without gRPC, whose first retry of a refused connection takes a second."""
    host, port = address.split(":")
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        _pause(process, deadline)


def _pause(process: subprocess.Popen[bytes], deadline: float) -> None:
    if process.poll() is not None:
        raise StartError(f"the server ended with exit code {process.returncode}")
    if time.perf_counter() > deadline:
        raise StartError(f"the server was not ready after {START_TIMEOUT_S:g} s")
    time.sleep(_POLL_S)


def _measure_running(process: subprocess.Popen[bytes], address: str, start: float, texts: list[str]) -> dict[str, Any]:
    with grpc.insecure_channel(address) as channel:
        _await_serving(process, channel, start + START_TIMEOUT_S)
        serving = time.perf_counter()
        idle = _memory_mib(process.pid)
        stub = translation_pb2_grpc.TranslationStub(channel)
        model = stub.ListModels(translation_pb2.ListModelsRequest()).models[0].name
        latencies_ms = [_translate_ms(stub, model, text) for text in texts]
        loaded = _memory_mib(process.pid)
    return {
        "time_to_serving_s": serving - start,
        "rss_idle_mib": idle["VmRSS"],
        "requests": len(texts),
        "first_request_ms": latencies_ms[0] if latencies_ms else None,
        "rss_after_requests_mib": loaded["VmRSS"],
        "rss_peak_mib": loaded["VmHWM"],
        "model": model,
    }


def _await_serving(process: subprocess.Popen[bytes], channel: grpc.Channel, deadline: float) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    while True:
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=START_TIMEOUT_S)
        if answer.status == health_pb2.HealthCheckResponse.SERVING:
            return
        _pause(process, deadline)


def _translate_ms(stub: translation_pb2_grpc.TranslationStub, model: str, text: str) -> float:
    request = translation_pb2.TranslateTextRequest(contents=[text], model=model)
    start = time.perf_counter()
    stub.TranslateText(request)
    return (time.perf_counter() - start) * 1e3


def _memory_mib(pid: int) -> dict[str, float]:
    """Field of /proc that is a size -> mebibytes; VmRSS is what is resident now, VmHWM the most ever."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(kib) / 1024 for name, kib, _ in fields}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
