import os
import sys
from pathlib import Path

import pytest

from bench.server_process import free_ports, running

ROOT = Path(__file__).parents[3]
SLOW_STARTER = [sys.executable, str(Path(__file__).with_name("slow_starter.py"))]


def test_free_ports_are_distinct() -> None:
    assert len(set(free_ports(8))) == 8


def test_a_server_keeps_to_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    one = {min(os.sched_getaffinity(0))}
    with running(SLOW_STARTER, one) as server:
        threads = [int(path.name) for path in Path(f"/proc/{server.process.pid}/task").iterdir()]
        assert len(threads) > 1
        assert all(os.sched_getaffinity(thread) == one for thread in threads)
