"""`dragoman bulk` on Ray: actors and drivers that are killed, and a server. `make test-bulk` runs it, `make test` not.

Ray is real: each test starts one of its own on loopback.
"""

import os
import signal
import subprocess
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bulk_process import bulk, finish, lines, parts, read_rows, run, start, translate, wait_for, write_rows
from tests.server_process import PATIENCE_S, ServerProcess

_MARK = "TEST_BULK_ON_RAY"
_ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # else Ray takes the address of the machine
_ROWS = 2_000
_PART_ROWS = 20


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [f"{line} ({number})" for number, line in zip(range(_ROWS), lines() * 4, strict=False)]


@pytest.fixture(scope="module")
def expected(texts: list[str]) -> list[str]:
    return translate(texts)


@pytest.fixture
def source(tmp_path: Path, texts: list[str]) -> Path:
    return write_rows(tmp_path / "in.jsonl", texts)


class Marked:
    """The processes of one job: all that inherited a variable."""

    def __init__(self) -> None:
        self.environment = {_MARK: uuid.uuid4().hex}

    def pids(self, title: str = "") -> list[int]:
        """Lists those whose command line begins so."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                marked = f"{_MARK}={self.environment[_MARK]}".encode() in (folder / "environ").read_bytes().split(b"\0")
                named = (folder / "cmdline").read_bytes().startswith(title.encode())
            except OSError:  # it has ended
                continue
            if marked and named:
                found.append(int(folder.name))
        return found


@pytest.fixture
def marked() -> Iterator[Marked]:
    job = Marked()
    yield job
    for pid in job.pids():
        os.kill(pid, signal.SIGKILL)


def assert_all_rows_once(out: Path, expected: list[str]) -> None:
    rows = read_rows(out)
    assert [row["id"] for row in rows] == [f"row-{number}" for number in range(_ROWS)]
    assert [row["translation"] for row in rows] == expected
    assert (out / "_SUCCESS").exists()


def test_a_killed_actor_is_replaced(source: Path, tmp_path: Path, expected: list[str], marked: Marked) -> None:
    out = tmp_path / "out"
    process = start(bulk(source, out, "--part-rows", str(_PART_ROWS), "--ray"), **marked.environment)
    wait_for(lambda: len(parts(out)) > 5, process)
    victim = marked.pids("ray::Map")[0]
    os.kill(victim, signal.SIGKILL)
    assert len(parts(out)) < _ROWS // _PART_ROWS
    code, said = finish(process)
    assert (code, said[-2:]) == (
        0,
        [
            f"dragoman bulk: {_ROWS} rows are done, 0 with an error",
            f"dragoman bulk: all {_ROWS} rows are in {out} ({_ROWS // _PART_ROWS} parts)",
        ],
    )
    assert_all_rows_once(out, expected)


def test_after_a_killed_driver_the_same_command_goes_on(
    source: Path, tmp_path: Path, expected: list[str], marked: Marked
) -> None:
    arguments, out = bulk(source, tmp_path / "out", "--part-rows", str(_PART_ROWS), "--ray"), tmp_path / "out"
    process = start(arguments, **marked.environment)
    wait_for(lambda: len(parts(out)) > 5, process)
    process.kill()
    process.communicate()
    assert not (out / "_SUCCESS").exists()
    again = Marked()
    code, said = run(arguments, **again.environment)
    assert code == 0
    left = int(said[0].split()[2])
    assert 0 < left < _ROWS - 5 * _PART_ROWS
    assert said[0] == f"dragoman bulk: {left} of {_ROWS} rows are left; on Ray: --ray"
    assert_all_rows_once(out, expected)
    assert again.pids() == []


def test_it_listens_on_loopback_alone_and_goes_on_without_ray(
    source: Path, tmp_path: Path, expected: list[str], marked: Marked
) -> None:
    out = tmp_path / "out"
    process = start(bulk(source, out, "--part-rows", str(_PART_ROWS), "--ray"), **marked.environment)
    wait_for(lambda: len(parts(out)) > 1, process)
    pids = {f"pid={pid}," for pid in marked.pids()}
    listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    process.kill()
    process.communicate()
    own = [line.split()[3] for line in listening if any(pid in line for pid in pids)]
    assert len(own) > 3
    assert [address for address in own if not address.startswith(("127.", "[::ffff:127.", "[::1]"))] == []
    assert run(bulk(source, out, "--part-rows", str(_PART_ROWS), "--no-ray"))[0] == 0
    assert_all_rows_once(out, expected)


def test_actors_call_servers(source: Path, tmp_path: Path, expected: list[str]) -> None:
    out, server = tmp_path / "out", ServerProcess()
    try:
        server.wait_until_serving()
        code, _ = run(bulk(source, out, "--part-rows", "200", "--ray", "--address", server.address))
        assert code == 0
        assert_all_rows_once(out, expected)
        assert server.metric("requests_total", method="BatchTranslateText") == _ROWS // 200
    finally:
        server.close()


def test_parquet_keeps_its_types(tmp_path: Path, texts: list[str], expected: list[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    source, out = tmp_path / "in.parquet", tmp_path / "out"
    pq.write_table(pa.table({"id": list(range(200)), "text": texts[:200], "w": [0.5] * 200}), source, row_group_size=30)
    assert run(bulk(source, out, "--part-rows", "50", "--ray"))[0] == 0
    table = pa.concat_tables(pq.read_table(part) for part in sorted(out.glob("part-*")))
    assert table.column("id").to_pylist() == list(range(200))
    assert table.column("translation").to_pylist() == expected[:200]
    assert table.schema.field("w").type == pa.float64()


def test_what_goes_wrong_in_an_actor_is_one_line(tmp_path: Path, texts: list[str], marked: Marked) -> None:
    source, out = write_rows(tmp_path / "in.jsonl", texts), tmp_path / "out"
    process = start(bulk(source, out, "--part-rows", str(_PART_ROWS), "--ray"), **marked.environment)
    wait_for(lambda: len(parts(out)) > 1, process)
    write_rows(source, [*texts, "One more."])
    code, said = finish(process)
    assert (code, said[-1]) == (2, f"dragoman bulk: {source}: was changed while it was translated")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes on loopback, each with raylet and workers of its own."""
    for name, value in {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", **_ON_LOOPBACK}.items():
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings(action="ignore"):
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 3, "include_dashboard": False})
    yield cluster
    cluster.shutdown()


def test_the_actors_of_a_lost_node_are_replaced(
    cluster: Any, source: Path, tmp_path: Path, expected: list[str], marked: Marked
) -> None:
    node, out = cluster.add_node(num_cpus=2), tmp_path / "out"
    arguments = bulk(source, out, "--part-rows", str(_PART_ROWS), "--ray")
    environment = {"RAY_ADDRESS": cluster.address, **_ON_LOOPBACK, **marked.environment}
    process = start(arguments, **environment)
    wait_for(lambda: len(parts(out)) > 10, process)
    cluster.remove_node(node, allow_graceful=False)
    assert len(parts(out)) < _ROWS // _PART_ROWS
    _, said = process.communicate(timeout=5 * PATIENCE_S)  # Ray itself tells of the node on standard output
    assert process.returncode == 0
    assert said.decode().splitlines()[-1].startswith(f"dragoman bulk: all {_ROWS} rows are in {out}")
    assert_all_rows_once(out, expected)
    assert marked.pids() == []
