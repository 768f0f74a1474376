"""Every direction of Firefox's models on one server: 20 students, of which the memory holds five."""

import shutil
import signal
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from dragoman import Client
from dragoman.bundle import Bundle
from dragoman.cli import main
from plugins.library.names import Name
from service.registry.model_cost import estimate
from service.settings import MEGABYTE, Settings
from tests import web
from tests.server_process import PATIENCE_S, REPOSITORY, ServerProcess
from tests.shelved import shelve
from tests.waiting import until
from tests.web import firefox_list

STUDENT = REPOSITORY / "tests" / "data" / "firefox"  # trained by Marian on few sentences
LANGUAGES = ("bg", "cs", "de", "es", "fr", "it", "nl", "pl", "pt", "uk")
PAIRS = [pair for code in LANGUAGES for pair in (f"{code}-en", f"en-{code}")]
ROOM = 5
ENGINE = {"threads": 1, "slots": 8, "encoder_cache_mb": 4, "result_cache_mb": 1}


@pytest.fixture
def student(tmp_path: Path) -> Path:
    """A bundle of it."""
    assert main(["import", str(STUDENT), "--out", str(tmp_path / "student"), "--bundle", "int8"]) == 0
    return tmp_path / "student" / "bundle"


@pytest.fixture
def firefox(tmp_path: Path, student: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a list of students, all of which lie in the cache folder, each with a file of weights."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for pair in PAIRS:
        source, target = pair.split("-")
        name = Name("firefox", pair)
        shelve(tmp_path / "dragoman", name, source=source, target=target, bundle=student, has_own_weights=True)
    with web.serving() as server:
        yield firefox_list(server, {pair: {"model.bin": b"x"} for pair in PAIRS})


def test_a_student_that_reads_a_language_without_sentences_is_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "files").mkdir()
    for file in STUDENT.iterdir():
        shutil.copyfile(file, tmp_path / "files" / file.name.replace("ende", "csen"))
    assert main(["import", str(tmp_path / "files"), "--out", str(tmp_path / "out"), "--bundle", "int8"]) == 0
    assert "languages: cs to en\n" in (said := capsys.readouterr().out)
    assert "\nno sentences in its languages come with Dragoman: drawing some from its vocabulary\n" in said


def test_any_language_into_any_other_within_a_budget_of_memory(
    firefox: str, student: Path, serve: Callable[..., ServerProcess]
) -> None:
    cost = estimate(Bundle.open(student), Settings.model_validate(ENGINE)).total_bytes
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in ENGINE.items()]
    flags += [f"--model-memory-mb={-(-ROOM * cost // MEGABYTE)}", "--keep-alive-s=5", f"--firefox-models={firefox}"]
    server = serve(*flags, names=("firefox:all",))
    budget = server.metric("model_memory_budget_bytes")
    assert server.metric("model_loads_total") == 0
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        assert [model.name for model in client.list_models()] == sorted(f"firefox-{pair}" for pair in PAIRS)
        for source, target in pairwise([*LANGUAGES, LANGUAGES[0]]):
            made = client.translate("I don't know.", source_language=source, target_language=target)
            assert (made.pivot_model, made.model) == (f"firefox-{source}-en", f"firefox-en-{target}")
            assert 0 < server.metric("model_memory_bytes") <= budget
        assert client.translate("I don't know.", model="firefox-en-de").text == "Ich weiß nicht."
    assert server.metric("model_loads_total", outcome="loaded") >= len(PAIRS)
    # How many depends on the machine: on a slow one models are idle for long enough to go by themselves.
    assert server.metric("model_evictions_total") > 0
    until(lambda: server.metric("model_memory_bytes") == 0)
    server.signal(signal.SIGTERM)
    assert server.exit_code() == 0
