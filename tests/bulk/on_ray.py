"""`dragoman bulk` on Ray: actors and drivers that are killed, and a server. `make test-bulk` runs it, `make test` not.

Ray is real: each test starts one of its own on loopback.
"""

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bulk_process import bulk, finish, lines, parts, read_rows, run, start, translate, wait_for, write_rows
from tests.server_process import ServerProcess

_MARK = "TEST_BULK_ON_RAY"
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
            f"dragoman bulk: {_ROWS} rows are done, 0 of them have an error",
            f"dragoman bulk: all {_ROWS} rows are in {out}, in {_ROWS // _PART_ROWS} parts",
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


def test_no_cluster_at_the_address_is_one_line(tmp_path: Path, texts: list[str]) -> None:
    source = write_rows(tmp_path / "in.jsonl", texts[:2])
    code, said = run(bulk(source, tmp_path / "out", "--ray"), RAY_ADDRESS="127.0.0.1:1")
    assert code == 2
    assert said[-1].startswith("dragoman bulk: ")
