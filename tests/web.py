"""A server of files on the loopback interface, as the hub and Firefox's list need one; and what can go wrong there."""

import gzip
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"
_LARGE_BYTES: Final = 10_000  # from which on a file of the hub is kept outside git
_POLL_S: Final = 0.01  # between looks at whether to stop, of which each end of a server takes one


@dataclass
class Web:
    """What is served, and how badly.

    Attributes:
        address: of the server, as a URL.
        files: by their paths.
        requests: method and path of each that came, and the range that it asked for.
        cut: how many more answers break off in the middle.
        refuse: status, and error code of the hub, that are answered by paths that contain a text.
        redirect: paths that are to be found elsewhere.
        silent: no request is answered.
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    cut: int = 0
    refuse: dict[str, tuple[int, str]] = field(default_factory=dict)
    redirect: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    released: threading.Event = field(default_factory=threading.Event)

    def add_model(self, name: str, folder: Path) -> None:
        """Serve a folder as the hub serves the model of a name."""
        files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        tree = [
            {"type": "file", "path": each, "size": len(content), "oid": _git_hash(content)} | _lfs(content)
            for each, content in files.items()
        ]
        info = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": each} for each in files]}
        self.files[f"/api/models/{name}"] = json.dumps(info).encode()
        self.files[f"/api/models/{name}/revision/{COMMIT}"] = json.dumps(info).encode()
        self.files[f"/api/models/{name}/tree/{COMMIT}"] = json.dumps(tree).encode()
        for each, content in files.items():
            self.files[f"/{name}/resolve/{COMMIT}/{each}"] = content


def _git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _lfs(content: bytes) -> dict[str, object]:
    if len(content) < _LARGE_BYTES:
        return {}
    return {"lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 100}}


@contextmanager
def serving() -> Iterator[Web]:
    """Run a server until the end of the block."""
    web = Web()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(web))
    thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,))
    thread.start()
    web.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield web
    finally:
        web.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(web: Web) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path = self.path.partition("?")[0]
            asked = self.headers.get("Range", "")
            web.requests.append((self.command, path, asked))
            if web.silent:
                web.released.wait()
                return
            if path in web.redirect:
                self._send(302, b"", Location=web.address + web.redirect[path])
                return
            for part, (status, code) in web.refuse.items():
                if part in path:
                    self._send(status, b"", **{"X-Error-Code": code})
                    return
            content = web.files.get(path)
            if content is None:
                self._send(404, b"", **{"X-Error-Code": "RepoNotFound"})
                return
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
            start = int(re.fullmatch(r"bytes=(\d+)-.*", asked).group(1)) if asked else 0
            if start and start >= len(content):
                self._send(416, b"")
                return
            status = 206 if asked else 200
            if asked:
                headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self._send(status, content[start:], **headers)

        def _send(self, status: int, content: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            if web.cut and len(content) > _LARGE_BYTES:
                web.cut -= 1
                content = content[: len(content) // 2]
                self.close_connection = True
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def firefox_list(web: Web, models: dict[str, dict[str, bytes]], **fields: str) -> str:
    """Serve models as Mozilla does.

    Args:
        web: serves them.
        models: the files of each pair by their names, those of "model" first.
        **fields: of each entry, that differ.
    """
    listed = {}
    for pair, files in models.items():
        entry = {}
        for number, (name, content) in enumerate(files.items()):
            web.files[f"/data/{pair}/{name}.gz"] = gzip.compress(content)
            entry["model" if number == 0 else f"other{number}"] = {"path": f"{pair}/{name}.gz"}
        weights = next(iter(files.values()))
        entry["model"] |= {"uncompressedSize": len(weights), "uncompressedHash": hashlib.sha256(weights).hexdigest()}
        listed[pair] = [{"architecture": "tiny", "releaseStatus": "Release", **fields, "files": entry}]
    content = {"generated": "2026-01-01T00:00:00Z", "baseUrl": f"{web.address}/data", "models": listed}
    web.files["/models.json"] = json.dumps(content).encode()
    return f"{web.address}/models.json"
