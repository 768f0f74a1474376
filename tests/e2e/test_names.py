"""Models by their names: imported once, from a hub and a list of Firefox's models on the loopback interface."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman import Client
from tests import imported, web
from tests.server_process import BUNDLE, PATIENCE_S, REPOSITORY, ServerProcess
from tests.web import Web

OPUS = "someone/opus-mt-en-de"
SENTENCE = "The train leaves at eight."
Launch = Callable[..., ServerProcess]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A hub with a model of random weights, and a cache folder in which nothing lies."""
    folder = shutil.copytree(imported.pair(), tmp_path / "opus")
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    with web.serving() as server:
        server.add_model(OPUS, folder)
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "dragoman.cli", *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S, cwd=REPOSITORY)


@pytest.mark.torch
def test_a_model_of_the_hub_is_imported_by_the_first_start_alone(hub: Web, launch: Launch) -> None:
    first = launch(names=(OPUS,))
    first.wait_until_serving()
    assert f"{OPUS} is not in " in first.log[0]
    assert any(line.startswith(f"{OPUS}: 0.") and line.endswith("licence cc-by-4.0\n") for line in first.log)
    with Client(first.address, timeout_s=PATIENCE_S) as client:
        text = client.translate(SENTENCE, target_language="de").text
        assert [model.name for model in client.list_models()] == ["opus-mt-en-de"]
    first.signal(signal.SIGTERM)
    assert first.exit_code() == 0
    hub.requests.clear()
    again = command("translate", "--models", OPUS, "--to", "de", SENTENCE)
    assert (again.stdout, again.stderr) == (f"{text}\n", "")
    second = launch(f"--models={OPUS},{BUNDLE}")
    second.wait_until_serving()
    with Client(second.address, timeout_s=PATIENCE_S) as client:
        assert client.translate(SENTENCE, model="opus-mt-en-de", target_language="de").text == text
        assert len(client.list_models()) == 2
    assert not any(OPUS in line and "importing" in line for line in second.log)
    assert hub.requests == []
