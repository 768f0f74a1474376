"""DeepL's API on a real server, by the vendor's own package, and by requests as products send them."""

import io
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlencode

import deepl
import pytest

from dragoman.cli import main
from tests.e2e.bundles import copy_bundle, copy_pair
from tests.e2e.http_client import Answer, call
from tests.e2e.texts import LONG
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess, serving
from tests.waiting import until, until_free

ENGLISH, GERMAN = "Where did you learn to cook?", "Wo hast du kochen gelernt?"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(autouse=True)
def _one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package waits and tries again where a server is busy."""
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    monkeypatch.setattr(deepl.http_client, "min_connection_timeout", PATIENCE_S)


@pytest.fixture(scope="module")
def server(_bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Two models: from English into German, and one that says it were from French into English; and a glossary."""
    folder, glossaries = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("glossaries")
    copy_bundle(BUNDLE, folder / "en-de")
    copy_pair(folder, "fr", "en")
    (glossaries / "products.en-de.csv").write_text("station,Haltepunkt\n")
    (glossaries / "names.csv").write_text("Zentrix\n")  # of any languages, which no glossary of DeepL's is
    with serving("--http-address=127.0.0.1:0", f"--models={folder}", f"--glossaries={glossaries}") as process:
        yield process


def client_of(server: ServerProcess, key: str = "any") -> deepl.DeepLClient:
    return deepl.DeepLClient(key, server_url=f"http://{server.http_address}", send_platform_info=False)


@pytest.fixture
def client(server: ServerProcess) -> Iterator[deepl.DeepLClient]:
    with closing(client_of(server)) as client:
        yield client


def translate(server: ServerProcess, **given: object) -> Answer:
    return call(server, "POST", "/v2/translate", {"text": [ENGLISH], "target_lang": "DE"} | given)


def test_texts(client) -> None:
    one = client.translate_text(ENGLISH, source_lang="EN", target_lang="DE")
    assert (one.text, one.detected_source_lang, one.billed_characters) == (GERMAN, "EN", len(ENGLISH))
    several = client.translate_text([ENGLISH, "Good morning.", " ", GERMAN], target_lang="DE")
    assert [each.text for each in several] == [GERMAN, "Guten Morgen.", " ", GERMAN]
    assert [each.detected_source_lang for each in several] == ["EN", "EN", "EN", "DE"]
    advice = {"formality": "prefer_less", "context": "A kitchen.", "split_sentences": "nonewlines"}
    assert client.translate_text(ENGLISH, target_lang="DE", preserve_formatting=True, **advice).text == GERMAN
    # Of English there are two for DeepL's clients, and one here.
    assert client.translate_text("Tom.", source_lang="FR", target_lang="EN-US").text


def test_html_and_xml(client) -> None:
    html = client.translate_text("<p>Where did you <b>learn</b> to cook?</p>", target_lang="DE", tag_handling="html")
    assert html.text.startswith("<p>Wo")
    assert "<b>" in html.text
    # As Weblate asks for it: a placeholder cuts no sentence.
    options = {"source_lang": "EN", "target_lang": "DE", "tag_handling": "xml"}
    xml = client.translate_text('I have <x id="7"></x> apples.', **options, ignore_tags=["x"])
    assert xml.text == 'Ich habe <x id="7"></x> Äpfel.'
    lines = "<l>Good morning.</l><l>Where did you <n/>learn to cook?</l><x>Good morning.</x>"
    split = client.translate_text(lines, **options, splitting_tags=["l"], non_splitting_tags=["n"], ignore_tags=["x"])
    assert split.text.startswith("<l>Guten Morgen.</l><l>Wo hast du")
    assert split.text.endswith("</l><x>Good morning.</x>")


def test_languages_usage_and_glossaries(client) -> None:
    assert [(each.code, each.name) for each in client.get_source_languages()] == [("EN", "English"), ("FR", "French")]
    targets = client.get_target_languages()
    assert [each.code for each in targets] == ["DE", "EN-GB", "EN-US"]
    assert not any(each.supports_formality for each in targets)
    usage = client.get_usage()
    assert usage.character.valid
    assert not usage.any_limit_reached
    pairs = [(each.source_lang, each.target_lang) for each in client.get_glossary_languages()]
    assert pairs == [("en", "de"), ("fr", "en")]
    [glossary] = client.list_glossaries()
    assert (glossary.glossary_id, glossary.source_lang, glossary.target_lang) == ("products.en-de", "EN", "DE")
    assert (glossary.entry_count, client.get_glossary("products.en-de").name) == (1, "products.en-de")
    text = "Where is the station?"
    options = {"source_lang": "EN", "target_lang": "DE"}
    assert "Haltepunkt" in client.translate_text(text, **options, glossary="products.en-de").text
    both = client.translate_text("Zentrix. " + text, **options, glossary_ids=["products.en-de", "names"]).text
    assert "Haltepunkt" in both
    assert "Zentrix" in both
    assert "Haltepunkt" in client.translate_text_with_glossary(text, glossary).text
    for call_it in (
        lambda: client.get_glossary("none"),
        lambda: client.translate_text(text, **options, glossary="none"),
    ):
        with pytest.raises(deepl.DeepLException, match=r"no glossary 'none'; there are: .*products\.en-de") as caught:
            call_it()
        assert caught.value.http_status_code == 404
    french = {"source_lang": "FR", "target_lang": "EN-US", "glossary": "products.en-de"}
    with pytest.raises(
        deepl.DeepLException, match=r"glossary_id\[0\]: must be for fr to en, 'products.en-de' is for en to de"
    ):
        client.translate_text("Bonjour", **french)
    with pytest.raises(deepl.DeepLException, match=r": glossary_id\[0\]: must be for fr to en"):
        client.translate_document(b"Bonjour", io.BytesIO(), **french, filename="a.txt")
    with pytest.raises(deepl.DeepLException, match="glossaries are files on the server") as caught:
        client.create_glossary("new", "EN", "DE", {"a": "b"})
    assert caught.value.http_status_code == 400


def test_what_is_wrong_is_one_clear_error(client, server) -> None:
    for given, message in (
        ({"target_lang": "XX"}, "no translation from 'EN' to 'XX'"),
        ({"target_lang": "DE", "formality": "more"}, "formality: must be one of"),
        ({"target_lang": "DE", "ignore_tags": "x"}, "ignore_tags: must be left out"),
    ):
        with pytest.raises(deepl.DeepLException, match=f"Bad request, message: {message}"):
            client.translate_text(ENGLISH, source_lang="EN", **given)
    assert translate(server, text=["a"] * 1025).json["message"].startswith("text: must hold 1 to 1024 texts")
    for body, kind in (
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b"text=%ff", FORM),
        (b"x", "text/xml"),
    ):
        answer = call(server, "POST", "/v2/translate", body, content_type=kind)
        assert (answer.status, list(answer.json)) == (400, ["message"])
    answer = call(server, "GET", "/v2/languages?type=all")
    assert (answer.status, answer.json) == (400, {"message": "type: must be source or target, is 'all'"})
    for method, path in (("GET", "/v2/document"), ("GET", "/v2/translate"), ("GET", "/v2/glossaries/a/entries")):
        answer = call(server, method, path)
        assert (answer.status, answer.json) == (404, {"message": f"this server has no {method} {path} of DeepL's API"})
    late = call(server, "POST", "/v2/translate", {"text": [LONG], "target_lang": "DE"}, connect_timeout_ms="1")
    assert (late.status, list(late.json)) == (504, ["message"])


def test_libreoffice_sends_a_form_with_the_key_and_no_source(server) -> None:
    form = urlencode({"auth_key": "any", "target_lang": "DE", "text": "<p>Good morning.</p>"}).encode()
    answer = call(server, "POST", "/v2/translate?tag_handling=html", form, content_type=FORM)
    assert answer.json == {"translations": [{"detected_source_language": "EN", "text": "<p>Guten Morgen.</p>"}]}
    several = urlencode([("text", ENGLISH), ("text", "Good morning."), ("target_lang", "de")]).encode()
    answer = call(server, "POST", "/v2/translate", several, content_type=FORM)
    assert [each["text"] for each in answer.json["translations"]] == [GERMAN, "Guten Morgen."]
    assert server.metric("requests_total", method="TranslateText", code="OK", protocol="deepl") >= 2


def test_a_client_that_leaves_cancels_its_call(server) -> None:
    body = urlencode({"target_lang": "DE", "source_lang": "EN", "text": LONG}).encode()
    head = (
        f"POST /v2/translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: {FORM}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    host, _, port = server.http_address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(head.encode() + body)
        until(lambda: server.metric("slots_active") > 0)
    until(lambda: server.metric("requests_total", code="CANCELLED", protocol="deepl") == 1)
    until_free(server)


def test_keys_and_their_limits_hold(serve, tmp_path: Path, capsys) -> None:
    assert main(["api-key", "alice", "--requests-per-s=0.01", "--burst=5"]) == 0
    line, told = capsys.readouterr()
    key, file = told.split()[-1], tmp_path / "keys.toml"
    file.write_text(line)
    server = serve("--http-address=127.0.0.1:0", f"--api-keys={file}")
    for path in ("/v2/languages", "/v2/usage", "/v2/glossaries", "/v2/glossary-language-pairs"):
        refused = call(server, "GET", path)
        assert (refused.status, list(refused.json)) == (403, ["message"])
    with closing(client_of(server, "wrong")) as wrong:
        for call_it in (wrong.get_usage, lambda: wrong.translate_text(ENGLISH, target_lang="DE")):
            with pytest.raises(deepl.AuthorizationException, match="does not know the API key"):
                call_it()
    form = urlencode({"auth_key": key, "target_lang": "DE", "text": ENGLISH}).encode()
    assert call(server, "POST", "/v2/translate", form, content_type=FORM).status == 200
    with closing(client_of(server, key)) as client:
        assert client.get_usage().character.valid
        assert [each.code for each in client.get_target_languages()] == ["DE"]
        assert client.translate_text(ENGLISH, target_lang="DE").text == GERMAN
        assert translate(server, auth_key=key).status == 200
        with pytest.raises(deepl.TooManyRequestsException):
            client.translate_text(ENGLISH, target_lang="DE")
    busy = translate(server, auth_key=key)
    assert (busy.status, list(busy.json)) == (429, ["message"])
    assert 1 <= int(busy.headers["retry-after"]) <= 100
    assert not any(key in line for line in server.log)
