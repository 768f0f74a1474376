"""A `dragoman serve` process that is given faults: started, looked into, killed and started again on the same ports."""

import os
import resource
import shutil
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench import metrics_page
from bench.memory import resident_mib
from bench.metrics_page import Page
from bench.server_process import NOTHING_FREE, free_ports
from tests.faults import calls
from tests.faults.truth import BUNDLE
from tests.server_process import LogReader, ServerProcess
from tests.waiting import until

PATIENCE_S = 60.0
STEP_TIMEOUT_S = 2.0
DRAIN_TIMEOUT_S = 2.0
_SCRAPE_S = 10.0
_SERVICE = "dragoman.v1.Translation"
_FLAGS = (
    *NOTHING_FREE,
    "--max-delay-s=30",  # what a slow machine refuses has nothing to do with a fault
    f"--step-timeout-s={STEP_TIMEOUT_S}",
    f"--drain-timeout-s={DRAIN_TIMEOUT_S}",
)


class Server:
    """One server with folders of its own; its ports stay the same through all its processes.

    Args:
        folder: its own.
        over_http: whether it is called over HTTP.

    Attributes:
        grpc_address: where it listens for gRPC.
        address: where it is called.
        over_http: whether that is its HTTP port.
        bundle: its own copy of the bundle.
        control: the folder that switches planted faults on, see `planted`.
        starts: how many processes there have been.
    """

    def __init__(self, folder: Path, *, over_http: bool = False) -> None:
        self.control = folder / "control"
        self.control.mkdir(parents=True)
        self.bundle = folder / "models" / "en-de"
        self.restore_bundle()
        addresses = (f"127.0.0.1:{port}" for port in free_ports(3))
        self.grpc_address, self.metrics_address, http_address = addresses
        self.over_http = over_http
        self.address = http_address if over_http else self.grpc_address
        self.starts = 0
        self._process: ServerProcess | None = None

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
        addresses = ["--address", self.grpc_address, "--metrics-address", self.metrics_address]
        if self.over_http:
            addresses += ["--http-address", self.address]
        program = ("-m", "tests.faults.planted", str(self.control))
        arguments = (*addresses, "--models", str(self.bundle.parent), *_FLAGS)
        self._process = ServerProcess(arguments, program, log, **environment)
        self.starts += 1

    def connected(self, address: str = "") -> AbstractContextManager[calls.Stub]:
        """A stub with connections of its own to the server; to another address, where something is between."""
        return calls.connected(address or self.address, over_http=self.over_http)

    @property
    def process(self) -> ServerProcess:
        """The process that runs, or that ran last."""
        assert self._process is not None
        return self._process

    @property
    def reader(self) -> LogReader:
        """What reads its log."""
        assert self.process.reader, "its log goes to a file"
        return self.process.reader

    @property
    def log(self) -> list[str]:
        """The lines of its log so far; once it has ended, all of them."""
        return self.process.log

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self.process.process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.signal(number)

    def exit_code(self, timeout_s: float = PATIENCE_S) -> int | None:
        """Wait for the end; None if it does not come in time."""
        try:
            return self.process.exit_code(timeout_s)
        except subprocess.TimeoutExpired:
            return None

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
        if self.process.process.poll() is not None:
            self.start()
        elif self.process.reader:
            self.process.reader.go_on()

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process is not None:
            self._process.close()

    def is_serving(self) -> bool:
        """Whether its health service says so, over a connection of its own."""
        return self.health() == health_pb2.HealthCheckResponse.SERVING

    def health(self) -> int | None:
        """What its health service says; None where nobody answers."""
        if self._process is not None and (code := self._process.process.poll()) is not None:
            raise RuntimeError(f"the server ended with {code}: {self.log[-3:]}")
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        with grpc.insecure_channel(self.grpc_address, options) as channel:
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
