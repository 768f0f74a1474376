"""A server of several languages that detects them; its models are the default one under other names."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import (
    AsyncClient,
    Client,
    InvalidRequestError,
    RateLimitedError,
    UnauthenticatedError,
    UnknownLanguagePairError,
)
from dragoman.cli import main
from tests.e2e.bundles import copy_pair
from tests.server_process import PATIENCE_S, ServerProcess, serving

GERMAN, FRENCH, ITALIAN = "Wo ist der Bahnhof?", "Où est la gare, s'il vous plaît ?", "Dove si trova la stazione?"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for source in ("de", "fr"):
        copy_pair(folder, source, "en")
    return folder


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[ServerProcess]:
    with serving(f"--models={models}", "--threads=1", "--http-address=127.0.0.1:0") as server:
        server.wait_for("language detection loaded")  # before anybody asks
        yield server


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        yield client


def test_texts_go_to_the_models_of_their_languages_by_every_call(server: ServerProcess, client: Client) -> None:
    texts = [GERMAN, FRENCH, "42"]
    expected = [
        client.translate(text, model=model) for text, model in zip(texts, ("de-en", "fr-en", "de-en"), strict=True)
    ]
    made = client.translate(texts, source_language="auto", target_language="en")
    assert [(each.text, each.model) for each in made] == [(each.text, each.model) for each in expected]
    assert [each.detected_language for each in made] == ["de", "fr", ""]
    assert all(0.9 < each.detection_confidence <= 1 for each in made[:2])
    assert client.translate(texts, target_language="en") == made
    streamed = {}
    for piece in client.stream(texts, source_language="auto", target_language="en"):
        if piece.result is not None:
            streamed[piece.content_index] = piece.result
    assert [streamed[number] for number in range(len(texts))] == made

    async def awaited() -> tuple[object, object]:
        async with AsyncClient(server.address, timeout_s=PATIENCE_S) as own:
            return await own.translate(texts, source_language="auto", target_language="en"), await own.detect(texts)

    assert asyncio.run(awaited()) == (made, client.detect(texts))


def test_a_language_that_is_not_served_is_named_and_hurts_no_other_text(client: Client) -> None:
    options = {"source_language": "auto", "target_language": "en"}
    with pytest.raises(UnknownLanguagePairError, match=r"^contents\[1\]: is in 'it', as detected") as refused:
        client.translate([GERMAN, ITALIAN], **options)
    assert refused.value.violations[0].field == "contents[1]"
    german, italian = client.translate([GERMAN, ITALIAN], all_or_nothing=False, **options)
    assert (german.model, german.error) == ("de-en", None)
    assert (italian.model, italian.detected_language) == ("", "it")
    assert isinstance(italian.error, UnknownLanguagePairError)
    assert italian.error.metadata["source_language_code"] == "it"
    with pytest.raises(InvalidRequestError, match=r"^config.source_language_code: must name the language"):
        list(client.translate_many([GERMAN], **options))


def test_hostile_texts_are_answered(client: Client) -> None:
    texts = ["a" * 1_000_000, "\x00" * 1_000, "Я 你好 hello مرحبا", *["Chat"] * 1_000]
    found = client.detect(texts)
    assert len(found) == len(texts)
    assert found[1] == []
    assert found[3:] == [found[3]] * 1_000
    assert client.detect("") == []
    assert client.detect(GERMAN)[0].language == "de"


def test_the_command_detects_and_translates(server: ServerProcess, models: Path, client: Client, capfd) -> None:
    texts = [GERMAN, FRENCH]
    expected = client.translate(texts, source_language="auto", target_language="en")
    for place in (f"--address={server.address}", f"--models={models}"):
        assert main(["translate", place, "--from=auto", "--to=en", "--json", *texts]) == 0
        made = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        assert [(each["translation"], each["model"]) for each in made] == [(each.text, each.model) for each in expected]
        assert [each["detected_language"] for each in made] == ["de", "fr"]
        assert main(["translate", place, "--from=auto", "--to=en", GERMAN, ITALIAN]) == 1
        out, err = capfd.readouterr()
        assert out.splitlines() == [expected[0].text, ""]
        assert main(["translate", place, "--from=auto", *texts]) == 0  # all models write English
        assert capfd.readouterr().out.splitlines() == [each.text for each in expected]
        assert err.startswith("dragoman translate: text 2: is in 'it', as detected")
        assert main(["detect", place, *texts, "7"]) == 0
        assert [line.partition("\t")[0] for line in capfd.readouterr().out.splitlines()] == ["de", "fr", ""]


def test_the_command_asks_for_the_language_in_its_own_words(serve, tmp_path: Path, capfd) -> None:
    for pair in (("de", "en"), ("de", "fr"), ("en", "fr")):
        copy_pair(tmp_path, *pair)
    server = serve(f"--models={tmp_path}", "--threads=1")
    assert main(["translate", f"--address={server.address}", "--from=auto", GERMAN]) == 2
    expected = "say into which language with --to, or with --model; there are en, fr"
    assert capfd.readouterr().err == f"dragoman translate: {expected}\n"


def test_calls_are_limited_counted_and_written_down(serve, models: Path, tmp_path: Path, capsys) -> None:
    assert main(["api-key", "slow", "--requests-per-s=0.001", "--burst=1"]) == 0
    line, told = capsys.readouterr()
    (tmp_path / "keys.toml").write_text(line)
    server = serve(f"--models={models}", "--threads=1", f"--api-keys={tmp_path / 'keys.toml'}", "--log-format=json")
    with Client(server.address, timeout_s=PATIENCE_S, api_key=told.split()[-1]) as client:
        client.detect([GERMAN, ITALIAN, "42"], request_id="mine")
        with pytest.raises(RateLimitedError):
            client.detect(GERMAN)
    with Client(server.address, timeout_s=PATIENCE_S, api_key="") as client, pytest.raises(UnauthenticatedError):
        client.detect(GERMAN)
    assert server.metric("detected_texts_total", language="de") == 1
    assert server.metric("detected_texts_total", language="other") == 1
    assert server.metric("requests_total", method="DetectLanguage", code="OK") == 1
    [line] = [line for line in server.log if '"mine"' in line]
    written = json.loads(line)
    assert (written["method"], written["code"], written["caller"], written["texts"]) == (
        "DetectLanguage",
        "OK",
        "slow",
        3,
    )
