"""The models that a clone serves: English to German, and German to English."""

import pytest

from dragoman import Client
from dragoman.cli import main
from tests.e2e.http_client import call
from tests.server_process import PATIENCE_S, ServerProcess

PAIRS = [("Where did you learn to cook?", "Wo hast du kochen gelernt?"), ("Good morning.", "Guten Morgen.")]


@pytest.fixture
def client(default_models: ServerProcess):
    with Client(default_models.address, timeout_s=PATIENCE_S) as client:
        yield client


def test_both_directions_are_served(client: Client) -> None:
    assert [(model.name, model.source_language, model.target_language) for model in client.list_models()] == [
        ("de-en", "de", "en"),
        ("en-de", "en", "de"),
    ]
    for english, german in PAIRS:
        assert client.translate(english, target_language="de").text == german
        assert client.translate(german, target_language="en").text == english


def test_the_language_of_a_text_says_into_which_other_it_goes(
    client: Client, default_models: ServerProcess, capfd
) -> None:
    (english, german), _ = PAIRS
    translations = client.translate([english, german])
    assert [(each.text, each.model, each.detected_language) for each in translations] == [
        (german, "en-de", "en"),
        (english, "de-en", "de"),
    ]
    assert main(["translate", f"--address={default_models.address}", german]) == 0
    assert capfd.readouterr().out == f"{english}\n"
    assert main(["translate", english]) == 0
    assert capfd.readouterr().out == f"{german}\n"


def test_http_has_both(default_models: ServerProcess) -> None:
    languages = call(default_models, "GET", "/languages").json
    assert [(each["code"], each["targets"]) for each in languages] == [("de", ["en"]), ("en", ["de"])]
    english, german = PAIRS[0]
    for text, source, target, expected in ((english, "en", "de", german), (german, "auto", "en", english)):
        answer = call(default_models, "POST", "/translate", {"q": text, "source": source, "target": target}).json
        assert answer["translatedText"] == expected
