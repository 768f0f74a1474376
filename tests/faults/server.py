"""A `dragoman serve` process that is given faults: started, looked into, killed and started again on the same ports."""

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench import metrics_page
from bench.memory.process import resident_mib
from bench.metrics_page import Page
from bench.server_process import NOTHING_FREE, free_ports
from tests.faults.truth import BUNDLE, ROOT

PATIENCE_S = 60.0
STEP_TIMEOUT_S = 2.0
DRAIN_TIMEOUT_S = 2.0
_POLL_S = 0.02
_KEPT_LINES = 2_000
_SCRAPE_S = 10.0
_SERVICE = "dragoman.v1.Translation"
_FLAGS = (
    "--log-format=json",
    *NOTHING_FREE,
    f"--step-timeout-s={STEP_TIMEOUT_S}",
    f"--drain-timeout-s={DRAIN_TIMEOUT_S}",
)


def until(condition: Callable[[], object], what: str, timeout_s: float = PATIENCE_S) -> float:
    """Wait for something; gives the seconds that it took.

    Raises:
        TimeoutError: it did not come.
    """
    began_s = time.monotonic()
    while not condition():
        if time.monotonic() > began_s + timeout_s:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(_POLL_S)
    return time.monotonic() - began_s


class Pump:
    """Reads the standard error of a process, unless it is told to pause."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._reading = threading.Event()
        self._reading.set()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Leave unread what is written from now on."""
        self._reading.clear()

    def go_on(self) -> None:
        """Read again."""
        self._reading.set()

    def finish(self) -> None:
        """Read to the end, which comes with that of the process, and close."""
        self.go_on()
        self._thread.join(PATIENCE_S)
        os.close(self.pipe)

    def _read(self) -> None:
        rest = b""
        while True:
            self._reading.wait()
            if not select.select([self.pipe], [], [], 0.05)[0]:
                continue
            if not self._reading.is_set():
                continue
            data = os.read(self.pipe, 65536)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            self.lines.extend(line.decode(errors="replace") for line in lines)


class Server:
    """One server with folders of its own; its ports stay the same through all its processes.

    Attributes:
        address: where it listens.
        bundle: its own copy of the bundle.
        control: the folder that switches planted faults on, see `planted`.
        starts: how many processes there have been.
    """

    def __init__(self, folder: Path) -> None:
        self.control = folder / "control"
        self.control.mkdir(parents=True)
        self.bundle = folder / "models" / "en-de"
        self.restore_bundle()
        ports = free_ports(2)
        self.address, self.metrics_address = (f"127.0.0.1:{port}" for port in ports)
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._pump: Pump | None = None

    def restore_bundle(self) -> None:
        """Put the bundle where the server looks for it."""
        shutil.copytree(BUNDLE, self.bundle)

    def start(self, log: Path | None = None, **environment: str) -> None:
        """Start a process and wait until its health is SERVING.

        Args:
            log: where its standard error goes; None: to us.
            environment: variables on top of ours.
        """
        self.launch(log, **environment)
        until(self.is_serving, "the server serves")

    def launch(self, log: Path | None = None, **environment: str) -> None:
        """Start a process."""
        addresses = ("--address", self.address, "--metrics-address", self.metrics_address)
        command = [sys.executable, "-m", "tests.faults.planted", str(self.control), "serve", *addresses]
        command += ["--models", str(self.bundle.parent), *_FLAGS]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        reader, writer = os.pipe() if log is None else (None, os.open(log, os.O_WRONLY))
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=inherited | environment, stdout=subprocess.DEVNULL, stderr=writer
        )
        os.close(writer)
        self._pump = None if reader is None else Pump(reader)
        self.starts += 1

    @property
    def pump(self) -> Pump:
        """The reader of its log."""
        assert self._pump is not None
        return self._pump

    @property
    def log(self) -> list[str]:
        """The last lines of its log."""
        return list(self._pump.lines) if self._pump else []

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def exit_code(self, timeout_s: float = PATIENCE_S) -> int | None:
        """Wait for the end; None if it does not come in time."""
        assert self._process is not None
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        if self._pump:
            self._pump.finish()
            self._finished, self._pump = self._pump, None
        return code

    def last_words(self) -> list[str]:
        """The last lines of the log of the process that ended last."""
        return list(self._finished.lines)

    def stop(self) -> int | None:
        """Send SIGTERM and wait; a process that does not end is killed, and its code is None."""
        self.signal(signal.SIGTERM)
        code = self.exit_code(DRAIN_TIMEOUT_S + 10)
        if code is None:
            self.kill()
        return code

    def kill(self) -> int | None:
        """Send SIGKILL and wait."""
        self.signal(signal.SIGKILL)
        return self.exit_code()

    def revive(self) -> None:
        """Serve again, whatever a fault that did not come to its end has left."""
        for switch in self.control.iterdir():
            switch.unlink()
        if not self.bundle.exists():
            self.restore_bundle()
        if self._pump is not None:
            self._pump.go_on()
        if self._process is None or self._process.poll() is not None:
            self.start()

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def is_serving(self) -> bool:
        """Whether its health service says so, over a connection of its own."""
        return self.health() == health_pb2.HealthCheckResponse.SERVING

    def health(self) -> int | None:
        """What its health service says; None where nobody answers."""
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"the server ended with {self._process.returncode}: {self.log[-3:]}")
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        with grpc.insecure_channel(self.address, options) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            try:
                return int(stub.Check(health_pb2.HealthCheckRequest(service=_SERVICE), timeout=1.0).status)
            except grpc.RpcError:
                return None

    def scrape(self) -> Page:
        """Read the metrics."""
        return metrics_page.read(self.metrics_address, _SCRAPE_S)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over its series that have these labels."""
        return self.scrape().total(name, **labels)

    def submitted(self) -> float:
        """Segments that were submitted so far, but for those that are encoded and have no slot yet."""
        page = self.scrape()
        return sum(map(page.total, ("queue_segments", "slots_active", "segments_total")))

    def cancelled_calls(self) -> float:
        """Calls that ended because their client left."""
        return self.metric("requests_total", code="CANCELLED")

    def resident_mib(self) -> float:
        """Mebibytes that are resident."""
        return resident_mib(self.pid)

    def descriptors(self) -> int:
        """Open file descriptors."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def limit_descriptors(self, limit: int) -> int:
        """Set how many there may be; gives how many there might be before."""
        before, hard = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (limit, hard))
        return before
