"""LibreTranslate's API on a real server, by packages that people use for it, and by requests as products send them."""

import json
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from deep_translator import LibreTranslator
from libretranslatepy import LibreTranslateAPI

from dragoman.cli import main
from tests.e2e.bundles import copy_bundle, copy_pair
from tests.e2e.http_client import Answer, call
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess, serving

ENGLISH, GERMAN = "Where did you learn to cook?", "Wo hast du kochen gelernt?"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def server(_bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Two models: from English into German, and one that says it were from French into Spanish."""
    folder = tmp_path_factory.mktemp("models")
    copy_bundle(BUNDLE, folder / "en-de")
    copy_pair(folder, "fr", "es")
    with serving("--http-address=127.0.0.1:0", f"--models={folder}") as process:
        yield process


def translate(server: ServerProcess, **given: object) -> Answer:
    return call(server, "POST", "/translate", {"source": "en", "target": "de"} | given)


def test_libretranslatepy(server) -> None:
    client = LibreTranslateAPI(f"http://{server.http_address}")
    assert client.translate(ENGLISH, "en", "de", timeout=int(PATIENCE_S)) == GERMAN
    assert client.translate(ENGLISH, "auto", "de", timeout=int(PATIENCE_S)) == GERMAN
    assert client.detect(ENGLISH)[0]["language"] == "en"
    assert client.detect("12345") == [{"language": "en", "confidence": 0.0}]
    assert client.languages() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "es", "name": "Spanish", "targets": []},
        {"code": "fr", "name": "French", "targets": ["es"]},
    ]
    with pytest.raises(urllib.error.HTTPError) as caught:
        client.translate(ENGLISH, "en", "xx")
    with caught.value as error:
        assert error.code == 400
        assert json.load(error)["error"].startswith("no translation from 'en' to 'xx'")


def test_deep_translator_which_sends_all_in_the_url(server) -> None:
    url = f"http://{server.http_address}/"
    for source in ("en", "auto"):
        translator = LibreTranslator(source=source, target="de", api_key="any", custom_url=url)
        assert translator.translate(ENGLISH) == GERMAN
    assert translator.translate_batch([ENGLISH, "Good morning."]) == [GERMAN, "Guten Morgen."]


def test_answers_have_the_shape_of_the_question(server) -> None:
    assert translate(server, q=ENGLISH).json == {"translatedText": GERMAN}
    assert translate(server, q=[ENGLISH]).json == {"translatedText": [GERMAN]}
    assert translate(server, q="").json == {"translatedText": ""}
    assert translate(server, q=ENGLISH, format="text", api_key="", secret="x").json == {"translatedText": GERMAN}
    form = urlencode({"q": ENGLISH, "source": "en", "target": "de", "format": "text"}).encode()
    assert call(server, "POST", "/translate", form, content_type=FORM).json == {"translatedText": GERMAN}
    several = urlencode([("q", ENGLISH), ("q", "Good morning."), ("source", "en"), ("target", "de")]).encode()
    answer = call(server, "POST", "/translate", several, content_type=FORM)
    assert answer.json == {"translatedText": [GERMAN, "Guten Morgen."]}
    html = translate(server, q="<p>Where did you <b>learn</b> to cook?</p>", format="html").json["translatedText"]
    assert html.startswith("<p>")
    assert "<b>" in html
    assert translate(server, q="A & B", source="de").json == {"translatedText": "A & B"}  # into its own language
    unknown = translate(server, q="A & B", source="zz", target="zz")
    assert (unknown.status, "no translation from 'zz' to 'zz'" in unknown.json["error"]) == (400, True)
    assert server.metric("requests_total", method="TranslateText", code="OK", protocol="libretranslate") >= 6


def test_mastodon_sends_lists_of_html_in_unknown_languages(server) -> None:
    texts = ["<p>Where did you learn to cook?</p>", "<p>Wo hast du kochen gelernt?</p>", " "]
    answer = translate(server, q=texts, source="auto", format="html", api_key="").json
    assert answer["translatedText"][1:] == texts[1:]
    assert answer["translatedText"][0].startswith("<p>Wo")
    assert [each["language"] for each in answer["detectedLanguage"]] == ["en", "de", "en"]
    assert answer["detectedLanguage"][0]["confidence"] > 50
    one = translate(server, q=ENGLISH, source="auto").json
    assert (one["translatedText"], one["detectedLanguage"]["language"]) == (GERMAN, "en")
    refused = translate(server, q="Où as-tu appris à cuisiner ?", source="auto")
    assert refused.status == 400
    assert "'fr'" in refused.json["error"]


def test_alternatives_are_other_translations(server) -> None:
    answer = translate(server, q=ENGLISH, alternatives=3).json
    assert 1 <= len(answer["alternatives"]) <= 3
    assert answer["translatedText"] not in answer["alternatives"]
    assert len(set(answer["alternatives"])) == len(answer["alternatives"])
    form = urlencode({"q": ENGLISH, "source": "en", "target": "de", "alternatives": "3"}).encode()
    assert call(server, "POST", "/translate", form, content_type=FORM).json == answer
    assert len(translate(server, q=[ENGLISH, ENGLISH], alternatives=2).json["alternatives"]) == 2


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"q": None}, "q"),
        ({"q": []}, "q"),
        ({"q": 5}, "q"),
        ({"q": ["a", 5]}, "q[1]"),
        ({"q": "\ud800"}, "q"),
        ({"source": ""}, "source"),
        ({"target": None}, "target"),
        ({"target": 5}, "target"),
        ({"format": "pdf"}, "format"),
        ({"alternatives": -1}, "alternatives"),
        ({"alternatives": 99}, "alternatives"),
        ({"alternatives": "many"}, "alternatives"),
        ({"alternatives": True}, "alternatives"),
        ({"q": ["a"] * 1025}, "q"),
    ],
)
def test_what_is_wrong_is_one_clear_error(server, given: dict[str, object], field: str) -> None:
    answer = translate(server, **({"q": ENGLISH} | given))
    assert answer.status == 400
    assert answer.json.keys() == {"error"}
    assert answer.json["error"].startswith(f"{field}: ")


def test_bodies_that_are_none_are_errors(server) -> None:
    for body, kind in ((b"{", "application/json"), (b"[]", "application/json"), (b"q=%ff", FORM), (b"x", "text/plain")):
        answer = call(server, "POST", "/translate", body, content_type=kind)
        assert (answer.status, list(answer.json)) == (400, ["error"])
    assert call(server, "POST", "/detect", {}).json == {"error": "q: the parameter is missing"}
    assert call(server, "GET", "/translate").status == 405


def test_settings_of_the_page(server) -> None:
    settings = call(server, "GET", "/frontend/settings").json
    assert settings["keyRequired"] is False
    assert settings["filesTranslation"] is True
    assert {".docx", ".md", ".srt", ".txt"} <= set(settings["supportedFilesFormat"])
    assert settings["language"]["source"] == {"code": "auto", "name": "Auto Detect"}


def test_keys_come_in_the_body_the_form_or_the_url(serve, tmp_path: Path, capsys) -> None:
    assert main(["api-key", "alice", "--requests-per-s=0.1", "--burst=4"]) == 0
    line, told = capsys.readouterr()
    key, file = told.split()[-1], tmp_path / "keys.toml"
    file.write_text(line)
    server = serve("--http-address=127.0.0.1:0", f"--api-keys={file}")
    for given in ({}, {"api_key": "wrong"}):
        refused = translate(server, q=ENGLISH, **given)
        assert (refused.status, list(refused.json)) == (403, ["error"])
    assert call(server, "POST", "/translate", b"{").status == 403
    assert translate(server, q=ENGLISH, api_key=key).json == {"translatedText": GERMAN}
    url = f"http://{server.http_address}"
    assert LibreTranslateAPI(url, key).detect(ENGLISH)[0]["language"] == "en"
    translator = LibreTranslator(source="en", target="de", api_key=key, custom_url=f"{url}/")
    assert translator.translate(ENGLISH) == GERMAN
    assert call(server, "GET", "/languages").json[1]["targets"] == ["de"]  # clients ask for them without a key
    assert call(server, "GET", "/frontend/settings").json["keyRequired"] is True
    assert translate(server, q=ENGLISH, api_key=key).status == 200
    busy = translate(server, q=ENGLISH, api_key=key)
    assert (busy.status, list(busy.json)) == (429, ["error"])
    assert 1 <= int(busy.headers["retry-after"]) <= 10
    assert not any(key in line for line in server.log)
