"""`dragoman bulk` without Ray: as a process that is killed and started again, by an engine and by a server.

`tests/bulk/on_ray.py` does the same on Ray; `make test-bulk` runs it.
"""

import json
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.bulk_process import bulk, command, lines, parts, read_rows, run, start, translate, wait_for, write_rows
from tests.e2e.bundles import copy_bundle
from tests.e2e.command import Done, assert_one_line
from tests.e2e.command import run as run_in_process
from tests.server_process import BUNDLE

COLUMNS = ["id", "text", "translation", "finish_reason", "split", "unknown_pieces", "error", "model_sha256"]
LINES = lines()[:200]
SHA256 = json.loads((BUNDLE / "bundle.json").read_text())["provenance"]["checkpoint_sha256"]


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return translate(LINES)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "in.jsonl", LINES)


@pytest.fixture
def short(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "in.jsonl", LINES[:2])


def here(arguments: list[str]) -> Done:
    """Runs a command in this process."""
    return run_in_process(*arguments[len(command()) :])


def test_killed_at_any_point_each_row_is_there_once(source: Path, tmp_path: Path, expected: list[str]) -> None:
    arguments, out, seen = bulk(source, tmp_path / "out", "--part-rows", "5"), tmp_path / "out", 0
    for _ in range(2):
        process = start(arguments)
        wait_for(lambda seen=seen: len(parts(out)) > seen + 2, process)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        seen = len(parts(out))
        assert seen < len(LINES) // 5
        assert not (out / "_SUCCESS").exists()
    before = {name: (out / name).stat().st_mtime_ns for name in parts(out)}
    code, said = run(arguments)
    assert code == 0
    left = len(LINES) - 5 * seen
    assert said == [
        f"dragoman bulk: {left} of 200 rows are left; in this process: RAY_ADDRESS names no cluster",
        f"dragoman bulk: {left} rows are done, 0 with an error",
        f"dragoman bulk: all 200 rows are in {out} (40 parts)",
    ]
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before  # nothing is made twice
    assert {path.name for path in out.iterdir()} == {*parts(out), "_SUCCESS", "_job.json", "_lock"}
    rows = read_rows(out)
    assert [row["id"] for row in rows] == [f"row-{number}" for number in range(200)]
    assert [row["translation"] for row in rows] == expected
    assert run(arguments) == (0, [f"dragoman bulk: all 200 rows are in {out} (40 parts)"])


def test_servers_give_the_same_rows(server, source: Path, tmp_path: Path, expected: list[str]) -> None:
    out, calls = tmp_path / "out", partial(server.metric, "requests_total", method="BatchTranslateText")
    before = calls()
    code, said = run(bulk(source, out, "--part-rows", "32", "--address", server.address))
    assert (code, said[0]) == (0, f"dragoman bulk: 200 of 200 rows are left; by servers: {server.address}")
    rows = read_rows(out)
    assert [row["translation"] for row in rows] == expected
    assert calls() - before == 7


@pytest.mark.parametrize("place", ["in process", "of a server"])
def test_rows_that_fail_do_not_fail_the_job(place: str, server, tmp_path: Path) -> None:
    texts = ["Good morning.", "", None, 7, "\ud800", "a" * 1_100_001, "It rains."]
    source, out = write_rows(tmp_path / "in.jsonl", texts), tmp_path / "out"
    code, _ = run(bulk(source, out, *(["--address", server.address] if place == "of a server" else [])))
    rows = read_rows(out)
    assert [list(row) for row in rows] == [COLUMNS] * len(texts)
    assert [row["text"] for row in rows] == texts
    assert [row["error"] for row in rows[:5]] == [
        None, "is empty", "must be a string, is null", "must be a string, is a number", "is no valid Unicode",
    ]  # fmt: skip
    assert rows[0] | {"error": None} == {
        "id": "row-0",
        "text": "Good morning.",
        "translation": translate(["Good morning."])[0],
        "finish_reason": "EOS",
        "split": False,
        "unknown_pieces": 0,
        "error": None,
        "model_sha256": SHA256,
    }
    assert rows[5]["error"] == "must be at most 1100000 bytes, is 1100001"
    assert rows[6]["translation"] == translate([texts[6]])[0]
    assert code == 0


def test_a_small_job_needs_no_cluster(short: Path, tmp_path: Path) -> None:
    code, said = run(bulk(short, tmp_path / "out"), RAY_ADDRESS="127.0.0.1:1")
    assert (code, said[0]) == (
        0,
        "dragoman bulk: 2 of 2 rows are left; in this process: a cluster pays from 4 MB of text on, there are 0.0",
    )


def test_another_model_is_refused(short: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert here(bulk(short, out)).returncode == 0
    other = copy_bundle(BUNDLE, tmp_path / "other", name="en-de", provenance={"checkpoint_sha256": "0" * 64})
    done = here([*bulk(short, out), "--models", str(other)])
    assert_one_line(done, f"{out}: holds a job with other model: ", SHA256, "0" * 64, "a new job needs an empty folder")


def test_another_input_is_refused(short: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert here(bulk(short, out)).returncode == 0
    write_rows(short, [*LINES[:2], "One more."])
    assert_one_line(here(bulk(short, out)), f"{out}: holds a job with other files: in.jsonl (")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--text", "body"], ["in.jsonl: no row has a 'body'"]),
        (["--text", "id"], ["--id and --text: must be two columns"]),
        (["--model", "fr"], ["no model 'fr'; there are: en-de"]),
        (["--part-rows", "0"], ["--part-rows", "at least 1"]),
        (["--address", "127.0.0.1:1", "--models", "models"], ["not allowed with argument"]),
        (["--address", "127.0.0.1:1"], ["no server answers at 127.0.0.1:1"]),
    ],
)
def test_bad_arguments_are_one_line(short: Path, tmp_path: Path, flags: list[str], words: list[str]) -> None:
    assert_one_line(here(bulk(short, tmp_path / "out", *flags)), *words)
    assert not (tmp_path / "out").exists()


def test_a_repeated_id_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_rows(folder / "a.jsonl", ["a", "b"])
    write_rows(folder / "b.jsonl", ["c"], first=1)
    done = here(bulk(folder, tmp_path / "out"))
    assert_one_line(done, "'row-1' is that of row 2 of", "a.jsonl and of row 1 of", "b.jsonl")


def test_files_of_several_formats_are_one_job(tmp_path: Path, expected: list[str]) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (folder / "a.csv").write_text(f'text,id\n"{LINES[0]}",x\n')
    (folder / "b.tsv").write_text(f"id\ttext\ny\t{LINES[1]}\n")
    assert run(bulk(folder, out))[0] == 0
    assert sorted(parts(out)) == ["part-00000000.csv", "part-00000001.tsv"]
    assert expected[0] in (out / "part-00000000.csv").read_text()
    assert f"y\t{LINES[1]}\t{expected[1]}\tEOS\tfalse\t0\t\t{SHA256}\n" in (out / "part-00000001.tsv").read_text()


def test_without_the_extra_a_line_says_what_to_install(short: Path, tmp_path: Path) -> None:
    (tmp_path / "absent").mkdir()
    for name in ("ray", "pyarrow"):
        (tmp_path / "absent" / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    path = {"PYTHONPATH": f"{tmp_path / 'absent'}:{Path.cwd()}"}
    needs = ' needs the extra "bulk" of dragoman-server (no module {!r}): pip install "dragoman-server[bulk]"'
    code, lines = run(bulk(tmp_path / "in.parquet", tmp_path / "out"), **path)
    assert (code, len(lines)) == (2, 1)
    assert "in.parquet: No such file" in lines[0]
    (tmp_path / "in.parquet").touch()
    code, lines = run(bulk(tmp_path / "in.parquet", tmp_path / "out"), **path)
    assert (code, len(lines)) == (2, 1)
    assert needs.format("pyarrow") in lines[0]
    code, lines = run(bulk(short, tmp_path / "out", "--ray"), **path)
    assert code == 2
    assert needs.format("ray") in lines[-1]
