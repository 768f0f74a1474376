import gzip
import hashlib
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import DataError
from plugins.library import download
from tests import web
from tests.web import Web

CONTENT = bytes(range(256)) * 8_000


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(download, "PAUSE_S", 0.01)
    with web.serving() as running:
        running.files["/file"] = CONTENT
        yield running


def test_a_file(server: Web, tmp_path: Path) -> None:
    download.fetch(f"{server.address}/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT == download.read(f"{server.address}/file")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_transfer_that_breaks_off_goes_on_where_it_ended(server: Web, tmp_path: Path) -> None:
    server.cut = 7  # more than the tries that bring nothing
    download.fetch(f"{server.address}/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    starts = [int(asked.removeprefix("bytes=").rstrip("-")) for _, _, asked in server.requests]
    assert starts == sorted(set(starts))
    assert len(starts) == 8


def test_a_later_run_goes_on_where_an_earlier_one_ended(server: Web, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    download.fetch(f"{server.address}/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.requests[0][2] == "bytes=1000-"


def test_what_is_longer_than_the_file_is_fetched_anew(server: Web, tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT + b"and more")
    download.fetch(f"{server.address}/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_file_that_is_elsewhere(server: Web, tmp_path: Path) -> None:
    server.redirect["/old"] = "/file"
    download.fetch(f"{server.address}/old", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "url", ["foo", "http://[", "http:///file", "file://{file}", "http://[::1::]/", "http://a:99999/"]
)
def test_what_is_no_url_of_the_web_is_not_opened(tmp_path: Path, url: str) -> None:
    file = tmp_path / "here"
    file.write_bytes(CONTENT)
    with pytest.raises(DataError, match=re.escape(url.format(file=file)) + ": "):
        download.read(url.format(file=file))
    with pytest.raises(DataError, match=re.escape(url.format(file=file)) + ": "):
        download.fetch(url.format(file=file), tmp_path / "file")


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_what_is_refused_is_not_asked_for_again(server: Web, tmp_path: Path, status: int) -> None:
    server.refuse["/file"] = (status, "")
    with pytest.raises(DataError, match=rf"/file: cannot be fetched: {status} "):
        download.fetch(f"{server.address}/file", tmp_path / "file")
    assert len(server.requests) == 1


def test_a_server_that_fails_is_asked_again_some_times(server: Web, tmp_path: Path) -> None:
    server.refuse["/file"] = (503, "")
    for ask in (
        lambda: download.fetch(f"{server.address}/file", tmp_path / "file"),
        lambda: download.read(f"{server.address}/file"),
    ):
        server.requests.clear()
        with pytest.raises(DataError, match="cannot be fetched: 503"):
            ask()
        assert len(server.requests) == 5


def test_a_server_that_does_not_answer(server: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT_S", 0.05)
    server.silent = True
    with pytest.raises(DataError, match="cannot be fetched: timed out"):
        download.fetch(f"{server.address}/file", tmp_path / "file")


def test_no_server_and_no_such_host() -> None:
    with pytest.raises(DataError, match=r"http://127.0.0.1:9/x: cannot be fetched: Connection refused"):
        download.read("http://127.0.0.1:9/x")
    with pytest.raises(DataError, match=r"cannot be fetched: (Name|.*resolution)"):
        download.read("http://no-such-host.invalid/x")


def test_a_disk_that_is_full(server: Web, tmp_path: Path) -> None:
    """A limit of the size of files stands for it: to a program both are an OSError of a write."""
    program = (
        "import sys; from pathlib import Path; from plugins.library.download import fetch\n"
        "try: fetch(sys.argv[1], Path(sys.argv[2]))\n"
        "except OSError as error: print(error.strerror)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"{server.address}/file", str(tmp_path / "file")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert (done.stdout, done.stderr) == ("File too large\n", "")
    assert not (tmp_path / "file").exists()
    assert len(server.requests) == 1


def test_unpacking_gives_the_hash(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(CONTENT))
    assert download.unpack(tmp_path / "a.gz", tmp_path / "a") == hashlib.sha256(CONTENT).hexdigest()
    assert (tmp_path / "a").read_bytes() == CONTENT


@pytest.mark.parametrize("damaged", [b"no gzip", gzip.compress(CONTENT)[:-20], gzip.compress(CONTENT)[:-4] + b"\0" * 4])
def test_what_is_damaged(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "a.gz").write_bytes(damaged)
    with pytest.raises(DataError, match=r"a\.gz: is damaged: "):
        download.unpack(tmp_path / "a.gz", tmp_path / "a")
