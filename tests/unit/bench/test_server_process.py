import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from bench.server_process import free_ports, running

ROOT = Path(__file__).parents[3]
SLOW_STARTER = [sys.executable, str(Path(__file__).with_name("slow_starter.py"))]


def test_free_ports_are_distinct_and_no_outgoing_connection_takes_them() -> None:
    ports = free_ports(8)
    assert len(set(ports)) == 8
    assert max(ports) < 32_768  # where Linux begins, unless it is told otherwise


def test_a_server_keeps_to_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    one = {min(os.sched_getaffinity(0))}
    with running(SLOW_STARTER, one) as server:
        allowed = []
        for thread in Path(f"/proc/{server.process.pid}/task").iterdir():
            with suppress(ProcessLookupError):  # it has ended meanwhile, as gRPC's idle ones do
                allowed.append(os.sched_getaffinity(int(thread.name)))
        assert allowed == [one] * len(allowed)
        assert len(allowed) > 1
