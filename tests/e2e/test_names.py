"""Models by their names: imported once, from a hub and a list of Firefox's models on the loopback interface."""

import json
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor

from dragoman import Client
from plugins.library.names import Name
from tests import imported, web
from tests.marian_bin import shortlist
from tests.server_process import BUNDLE, PATIENCE_S, REPOSITORY, ServerProcess
from tests.shelved import shelve
from tests.waiting import until
from tests.web import Web, firefox_list

OPUS = "someone/opus-mt-en-de"
SENTENCE = "The train leaves at eight."
Launch = Callable[..., ServerProcess]
STUDENT = REPOSITORY / "tests" / "data" / "firefox"
PAIRS = ("de-en", "en-de", "en-fr", "fr-en")


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
def test_a_model_of_the_hub_is_imported_by_the_first_start_alone(hub: Web, serve: Launch) -> None:
    first = serve(names=(OPUS,))
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
    second = serve(f"--models={OPUS},{BUNDLE}")
    with Client(second.address, timeout_s=PATIENCE_S) as client:
        assert client.translate(SENTENCE, model="opus-mt-en-de", target_language="de").text == text
        assert len(client.list_models()) == 2
    assert not any(OPUS in line and "importing" in line for line in second.log)
    assert hub.requests == []


@pytest.fixture
def firefox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A list of Firefox's models, all of which lie in the cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for pair in PAIRS:
        source, target = pair.split("-")
        shelve(tmp_path / "dragoman", Name("firefox", pair), source=source, target=target)
    with web.serving() as server:
        firefox_list(server, {pair: {"model.bin": b"x"} for pair in PAIRS})
        yield server


def test_all_of_firefox_are_loaded_by_calls_and_leave_when_they_are_idle(firefox: Web, serve: Launch) -> None:
    flags = (f"--firefox-models={firefox.address}/models.json", "--keep-alive-s=0.5", "--http-address=127.0.0.1:0")
    server = serve(*flags, names=("firefox:all",))
    assert server.metric("model_loads_total") == 0
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        assert [model.name for model in client.list_models()] == [f"firefox-{pair}" for pair in PAIRS]
        for times in (1, 2):
            made = client.translate(SENTENCE, source_language="de", target_language="fr")
            assert (made.pivot_model, made.model) == ("firefox-de-en", "firefox-en-fr")
            assert server.metric("model_loads_total", outcome="loaded") == 2 * times
            until(lambda: server.metric("model_memory_bytes") == 0)
        assert client.translate(SENTENCE, source_language="en", target_language="de").model == "firefox-en-de"
    with urllib.request.urlopen(f"http://{server.http_address}/languages") as answer:
        targets = {each["code"]: set(each["targets"]) for each in json.load(answer)}
    assert targets["de"] >= {"en", "fr"}
    server.signal(signal.SIGTERM)
    assert server.exit_code() == 0
    assert [path for _, path, _ in firefox.requests] == ["/models.json"]


def test_all_of_firefox_leave_after_five_minutes_where_no_setting_says_when(
    firefox: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_FIREFOX_MODELS", f"{firefox.address}/models.json")
    assert len(json.loads(command("models", "--add", "firefox:all", "--json").stdout)) == len(PAIRS)
    for flags, seconds in (
        (["firefox:all"], 300),
        (["firefox:all", "--model-memory-mb=9999"], 0),
        (["firefox:en-de"], 0),
    ):
        assert json.loads(command("serve", *flags, "--print-config").stdout)["keep_alive_s"] == seconds


def test_a_student_of_firefox_is_fetched_imported_and_served_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Launch
) -> None:
    """The files have the form that Firefox ships; Marian trained them on few sentences."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sentences = ["I don't know.", "I don't know.", "Where is Tom?"]
    with web.serving() as server:
        listed = firefox_list(server, {"en-de": {file.name: file.read_bytes() for file in STUDENT.iterdir()}})
        first = serve(f"--firefox-models={listed}", names=("firefox:en-de",))
        with Client(first.address, timeout_s=PATIENCE_S) as client:
            greedy = client.translate(sentences, model="firefox-en-de")
            searched = client.translate(sentences, model="firefox-en-de", beam_size=4, alternatives=2, alignments=True)
            sampled = client.translate(sentences, model="firefox-en-de", temperature=1.0, seed=3)
    assert greedy[0].text == greedy[1].text == "Ich weiß nicht."
    assert all(len(found.alternatives) == 2 and found.alignments for found in searched)
    assert all(found.text for found in sampled)
    # The list and the files are gone: what lies in the cache folder is served without them.
    again = command("translate", "--models", "firefox:en-de", *sentences)
    assert again.stdout.splitlines() == [found.text for found in greedy]


def test_a_student_with_a_shortlist_chooses_from_candidates_unless_it_is_told_not_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Launch
) -> None:
    """Whatever is drawn is made of the translations that the shortlist gives the pieces of the source."""
    files = shutil.copytree(STUDENT, tmp_path / "student")
    pieces = SentencePieceProcessor(model_file=str(files / "vocab.ende.spm"))
    source, target = "I don't know.", "Ich weiß nicht."
    translations: list[list[int]] = [[] for _ in range(len(pieces))]
    for piece in pieces.encode(source):
        translations[piece] = pieces.encode(target)
    (files / "lex.50.50.ende.s2t.bin").write_bytes(shortlist(translations, first=2))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    letters = []
    for flags in ((), ("--no-shortlists",)):
        server = serve(*flags, names=(str(files),))
        with Client(server.address, timeout_s=PATIENCE_S) as client:
            assert client.translate(source, model="student").text == target
            texts = [client.translate(source, model="student", temperature=2.0, seed=seed).text for seed in range(8)]
            letters.append({letter for text in texts for letter in text if letter.isalpha()})
    assert letters[0] <= set(source + target)
    assert not letters[1] <= set(source + target)
