"""Faults of real servers: each shows in a metric, in a line of the log, and raises its alert."""

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError

import pytest
import requests

from dragoman import Client, DragomanError, ModelUnavailableError
from tests import debian, promtool
from tests.e2e.bundles import copy_bundle, own_weights
from tests.e2e.test_lifecycle import BREAKING
from tests.e2e.test_model_memory import SMALL
from tests.e2e.texts import LONG
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess
from tests.waiting import until

Raised = Callable[..., bool]
TWO_MODELS_MB = 110
CODES = ("de", "fr", "es", "it")


@pytest.fixture
def raised(tmp_path: Path) -> Raised:
    """Tells whether two pages raise an alert."""
    try:
        promtool.program()
    except debian.NoPackagesError as error:
        pytest.skip(f"no promtool here: {error}")
    folder = tmp_path / "promtool"
    folder.mkdir()
    return lambda alert, before, after, **options: promtool.is_raised(alert, before, after, folder, **options)


@pytest.fixture
def models(_bundle: None, tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    for code in CODES:
        languages = {"sources": ["en"], "targets": [code]}
        own_weights(copy_bundle(BUNDLE, folder / code, name=f"en-{code}", languages=languages), code)
    return folder


def damage(bundle: Path) -> None:
    """Puts something else in place of a graph."""
    (bundle / "decoder.onnx").unlink()  # a link
    (bundle / "decoder.onnx").write_bytes(b"half of a graph")


def says(server: ServerProcess, event: str, level: str, **values: object) -> bool:
    """Tells whether the log has a line."""
    lines = [json.loads(line) for line in server.log]
    wanted = {"event": event, "level": level, **values}
    return any(wanted.items() <= line.items() for line in lines)


def test_a_reload_that_refuses_a_bundle(serve, models: Path, raised: Raised) -> None:
    server = serve(f"--models={models}", *SMALL)
    before = server.scrape()
    damage(models / "fr")
    server.signal(signal.SIGHUP)
    until(lambda: says(server, "a bundle was refused", "error", model="en-fr"))
    server.wait_for("reloaded")
    assert server.metric("bundle_errors") == 1
    assert raised("DragomanBundleRefused", before, server.scrape())


def test_keys_that_cannot_be_read(serve, tmp_path: Path, raised: Raised) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(f'a = {{ sha256 = "{"0" * 64}" }}')
    server = serve(f"--api-keys={keys}")
    before = server.scrape()
    keys.write_text("a = {")
    until(lambda: server.metric("files_in_force", files="api_keys") == 0)
    until(lambda: any("api_keys" in line and '"error"' in line for line in server.log))
    assert raised("DragomanFilesRefused", before, server.scrape())


def test_models_that_push_one_another_out_of_memory(serve, models: Path, raised: Raised) -> None:
    server = serve(f"--models={models}", f"--model-memory-mb={TWO_MODELS_MB}", *SMALL)
    before = server.scrape()
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        for _ in range(3):
            for code in CODES:
                client.translate("Good morning.", target_language=code)
    after = server.scrape()
    assert after.total("model_evictions_total") > 6
    until(lambda: says(server, "evicted", "info", model="en-de"))
    assert raised("DragomanModelsSwapping", before, after, goes_on=True)
    assert not raised("DragomanModelsSwapping", before, after)  # once is no reason


def test_a_model_that_cannot_be_loaded(serve, models: Path, raised: Raised) -> None:
    server = serve(f"--models={models}", f"--model-memory-mb={TWO_MODELS_MB}", "--pinned-models=en-de", *SMALL)
    before = server.scrape()
    damage(models / "fr")
    with Client(server.address, timeout_s=PATIENCE_S, retries=0) as client, pytest.raises(ModelUnavailableError):
        client.translate("Good morning.", target_language="fr")
    assert server.metric("model_loads_total", model="en-fr", outcome="failed") == 1
    until(lambda: says(server, "a model could not be loaded", "error", model="en-fr"))
    assert raised("DragomanModelNotLoaded", before, server.scrape())


def test_an_engine_that_breaks(serve, raised: Raised) -> None:
    server = serve(program=("-c", BREAKING))
    before = server.scrape()
    with Client(server.address, timeout_s=PATIENCE_S, retries=0) as client, pytest.raises(DragomanError):
        client.translate("Good morning.", model="en-de")
    assert server.exit_code() == 1
    until(lambda: says(server, "an engine ended", "error", model="en-de"))
    with pytest.raises(URLError):
        server.scrape()
    assert raised("DragomanDown", before, None)


def test_a_document_whose_process_is_ended(serve, raised: Raised) -> None:
    server = serve("--http-address=127.0.0.1:0", "--threads=1")
    before = server.scrape()
    sending = threading.Thread(target=send_document, args=[server])
    sending.start()
    until(lambda: any(end_document(pid) for pid in children(server.process.pid)))
    sending.join()
    assert server.metric("document_failures_total") == 1
    until(
        lambda: says(
            server, "the process of a document was ended, or ended by itself", "error", exit_code=-signal.SIGKILL
        )
    )
    assert raised("DragomanDocumentsFailing", before, server.scrape())


def send_document(server: ServerProcess) -> None:
    form = {"file": ("a.txt", (LONG + "\n") * 5), "source": (None, "en"), "target": (None, "de")}
    answer = requests.post(f"http://{server.http_address}/translate_file", files=form, timeout=PATIENCE_S)
    assert answer.status_code == 429, answer.text
    assert "no memory for the document" in answer.text


def children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


def end_document(pid: int) -> bool:
    """Ends a process, if it is that of a document, as the system does where there is no memory."""
    if "plugins.documents.child" not in Path(f"/proc/{pid}/cmdline").read_text():
        return False
    os.kill(pid, signal.SIGKILL)
    return True


def test_a_drain_that_takes_long(serve, raised: Raised) -> None:
    server = serve("--drain-timeout-s=600", "--threads=1")
    before = server.scrape()
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        pieces = client.stream(LONG, model="en-de")
        next(pieces)
        server.signal(signal.SIGTERM)
        server.wait_for("draining")
        draining = server.scrape()
        assert draining.total("serving") == 0
        assert raised("DragomanNotServing", before, draining)
        server.signal(signal.SIGTERM)  # or the test would take as long as the text
        with contextlib.suppress(DragomanError):
            list(pieces)
    assert server.exit_code() == 0


def test_a_page_without_a_fault_raises_nothing(server: ServerProcess, raised: Raised) -> None:
    page = server.scrape()
    assert not any(raised(alert, page, page) for alert in ("DragomanDown", "DragomanNotServing", "DragomanErrors"))
