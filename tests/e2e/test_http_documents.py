"""Documents over HTTP, as clients of LibreTranslate and of DeepL send them, to one real server."""

import io
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import deepl
import docx
import pytest
import requests

from tests.e2e.bundles import copy_pair
from tests.e2e.texts import LONG
from tests.server_process import PATIENCE_S, ServerProcess, serving
from tests.unit.dragoman.documents import made
from tests.waiting import until, until_free

ENGLISH, GERMAN = "Where did you learn to cook?", "Wo hast du kochen gelernt?"
SRT = "1\n00:00:01,000 --> 00:00:03,000\nWhere is the <b>station</b>?\n"
SRT_GERMAN = SRT.replace("Where is the <b>station</b>?", "Wo ist der <b>Bahnhof</b>?")


@pytest.fixture(scope="module")
def server(_bundle: None) -> Iterator[ServerProcess]:
    with serving("--http-address=127.0.0.1:0", "--http-trusted-proxies=127.0.0.1") as process:
        yield process
        assert not any("Traceback" in line for line in process.log)


@pytest.fixture
def client(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[deepl.DeepLClient]:
    """The vendor's client, which asks sooner than after 5 s how far a document is, and only once for anything else."""
    sleep = time.sleep
    monkeypatch.setattr(deepl.translator.time, "sleep", lambda s: sleep(s / 100))
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    url = f"http://{server.http_address}"
    with closing(deepl.DeepLClient("any", server_url=url, send_platform_info=False)) as client:
        yield client


def post(server: ServerProcess, path: str, name: str = "", content: bytes = b"", **fields: str) -> requests.Response:
    """Send a form, with a file if it has a name."""
    files = {key: (None, value) for key, value in fields.items()} | ({"file": (name, content)} if name else {})
    return requests.post(f"http://{server.http_address}{path}", files=files, timeout=PATIENCE_S)


def translated(server: ServerProcess, name: str, content: bytes, source: str = "en") -> bytes:
    answer = post(server, "/translate_file", name, content, source=source, target="de", api_key="")
    assert answer.status_code == 200, answer.text
    fetched = requests.get(answer.json()["translatedFileUrl"], timeout=PATIENCE_S)
    assert fetched.status_code == 200
    return fetched.content


def bomb() -> bytes:
    """A document of Word that unpacks to too much: made where it is sent, since that takes a second."""
    return made.zipped({"word/document.xml": b" " * 300_000_000})


def with_entities() -> bytes:
    return made.zipped({"word/document.xml": '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><a>&d;</a>'})


def test_texts_come_in_multipart_forms(server) -> None:
    answer = post(server, "/translate", q=ENGLISH, source="en", target="de")
    assert answer.json() == {"translatedText": GERMAN}
    assert post(server, "/detect", q=ENGLISH).json()[0]["language"] == "en"
    several = [
        ("q", (None, ENGLISH)),
        ("q", (None, "Good morning.")),
        ("source", (None, "en")),
        ("target", (None, "de")),
    ]
    answer = requests.post(f"http://{server.http_address}/translate", files=several, timeout=PATIENCE_S)
    assert answer.json() == {"translatedText": [GERMAN, "Guten Morgen."]}
    for given, field in (({}, "q"), ({"q": "x" * 9_000_000}, "a body must be at most 8388608 bytes")):
        answer = post(server, "/translate", **given, source="en", target="de")
        assert answer.status_code == 400
        assert answer.json()["error"].startswith(field)


def served(server: ServerProcess, method: str) -> float:
    return server.metric("requests_total", method=method, code="OK", protocol="libretranslate")


def test_files_as_clients_of_libretranslate_send_them(server) -> None:
    before = served(server, "BatchTranslateText"), served(server, "DetectLanguage")
    document = docx.Document(io.BytesIO(translated(server, "Übung 1.docx", made.word())))
    assert document.paragraphs[1].text == GERMAN
    assert [run.text.strip() for run in document.paragraphs[1].runs if run.bold] == ["gelernt"]
    assert translated(server, "film.srt", SRT.encode(), source="auto").decode() == SRT_GERMAN
    assert translated(server, "a.md", b"# Good morning.\n").decode() == "# Guten Morgen.\n"
    assert translated(server, "a.html", b"<html lang=en>Good morning.") == b'<html lang="de">Guten Morgen.'
    assert translated(server, "empty.txt", b"12\n") == b"12\n"
    assert (served(server, "BatchTranslateText"), served(server, "DetectLanguage")) == (before[0] + 5, before[1])


@pytest.fixture
def both_ways(_bundle: None, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that translates from German as well, and names German first."""
    for source, target in (("de", "en"), ("en", "de")):
        copy_pair(tmp_path, source, target)
    with serving("--http-address=127.0.0.1:0", f"--models={tmp_path}") as process:
        yield process


def test_a_file_whose_language_does_not_show_is_in_one_with_the_target_language(both_ways: ServerProcess) -> None:
    texts = [b"", b"42\n", b"Hi\n"]
    assert [translated(both_ways, "short.txt", text, source="auto") for text in texts] == [b"", b"42\n", b"Hallo\n"]
    sent = post(both_ways, "/v2/document", "short.txt", b"", target_lang="DE").json()
    place, key = f"/v2/document/{sent['document_id']}", sent["document_key"]
    until(lambda: post(both_ways, place, document_key=key).json()["status"] == "done")


def test_a_file_is_fetched_by_the_scheme_of_the_proxy_that_is_trusted(server) -> None:
    files = {"file": ("a.txt", b"Good morning."), "source": (None, "en"), "target": (None, "de")}
    place, headers = f"http://{server.http_address}/translate_file", {"X-Forwarded-Proto": "https"}
    answer = requests.post(place, files=files, headers=headers, timeout=PATIENCE_S)
    assert answer.json()["translatedFileUrl"].startswith(f"https://{server.http_address}/download_file/")


def test_a_translated_file_cannot_run_in_a_browser(server) -> None:
    url = post(server, "/translate_file", "a/ä.html", b"<p>Good morning.", source="en", target="de").json()
    assert urlsplit(url["translatedFileUrl"]).path.endswith("%C3%A4.html")
    fetched = requests.get(url["translatedFileUrl"], timeout=PATIENCE_S)
    assert fetched.content == b"<p>Guten Morgen."
    assert fetched.headers["content-type"] == "application/octet-stream"
    assert fetched.headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%A4.html"
    assert fetched.headers["content-security-policy"].startswith("sandbox")
    for name in ("x", "x.html", "%2e%2e%2fetc"):
        assert requests.get(f"http://{server.http_address}/download_file/{name}", timeout=PATIENCE_S).status_code == 404


def test_documents_by_the_package_of_deepl(client, server) -> None:
    with io.BytesIO(made.word()) as given, io.BytesIO() as taken:
        given.name = "letter.docx"
        status = client.translate_document(given, taken, source_lang="EN", target_lang="DE")
        assert (status.done, docx.Document(taken).paragraphs[1].text) == (True, GERMAN)
    handle = client.translate_document_upload(SRT, filename="film.srt", target_lang="DE", formality="prefer_more")
    client.translate_document_wait_until_done(handle)
    wrong = deepl.DocumentHandle(handle.document_id, "0" * 48)
    with pytest.raises(deepl.DeepLException, match="Not found, message: there is no document"):
        client.translate_document_get_status(wrong)
    with pytest.raises(deepl.DeepLException, match="Not found"):
        client.translate_document_download(wrong)
    assert client.translate_document_download(handle).content.decode() == SRT_GERMAN
    with pytest.raises(deepl.DeepLException, match="Not found"):  # it was deleted
        client.translate_document_get_status(handle)
    assert server.metric("requests_total", method="BatchTranslateText", code="OK", protocol="deepl") == 2


def test_a_document_that_fails_says_why(client) -> None:
    handle = client.translate_document_upload(ENGLISH, filename="a.docx", source_lang="EN", target_lang="DE")
    status = client.translate_document_wait_until_done(handle)
    assert not status.ok
    assert status.error_message.startswith("file: is no ZIP archive")
    with pytest.raises(deepl.DeepLException, match="Bad request"):
        client.translate_document_download(handle)
    for field, message in (
        ({"target_lang": "FR", "source_lang": "EN"}, "Bad request.*no translation from 'EN' to 'FR'"),
        ({"target_lang": "FR"}, "Bad request.*no translation from .* to 'FR'"),
        ({"source_lang": "EN", "glossary": "none"}, "Not found.*no glossary 'none'"),
        ({"output_format": "pdf"}, "output_format: must be that of the document"),
        ({"formality": "more"}, "formality: must be one of"),
        ({"filename": "a.pdf"}, "file: must end in .srt"),
        ({"style_rule": "any"}, "style_id: this server has none"),
    ):
        with pytest.raises(deepl.DeepLException, match=message):
            client.translate_document_upload(ENGLISH, **({"filename": "a.txt", "target_lang": "DE"} | field))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.docx", bomb, "file: its members must have at most 268435456 bytes together"),
        ("a.docx", with_entities, "file: its member 'word/document.xml' must have no document type"),
        ("a.docx", b"PK no document", "file: is no ZIP archive"),
        ("a.txt", b"\xff", "file: is not UTF-8"),
        ("a.pdf", b"", "file: must end in"),
        ("a.txt", LONG.encode() * 10, "line 1: must be at most"),
        ("", b"", "file: the parameter is missing"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_clear_error(
    server, name: str, content: bytes | Callable[[], bytes], message: str
) -> None:
    content = content if isinstance(content, bytes) else content()
    answer = post(server, "/translate_file", name, content, source="en", target="de")
    assert answer.status_code == 400
    assert answer.json().keys() == {"error", "reason", "metadata"}
    assert answer.json()["reason"] == "INVALID_REQUEST"
    assert answer.json()["error"].startswith(message)


def test_a_client_that_leaves_cancels_its_document(server) -> None:
    text = "\n".join(LONG.split(". ")).encode()
    request = requests.Request(
        "POST",
        f"http://{server.http_address}/translate_file",
        files={"file": ("a.txt", text)},
        data={"source": "en", "target": "de"},
    ).prepare()
    assert isinstance(request.body, bytes)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    host, _, port = server.http_address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(f"POST /translate_file HTTP/1.1\r\nhost: localhost\r\n{head}\r\n".encode() + request.body)
        until(lambda: server.metric("slots_active") > 0)
    until(lambda: server.metric("requests_total", method="BatchTranslateText", code="CANCELLED") == 1)
    until_free(server)


@pytest.fixture
def shared(_bundle: None, tmp_path: Path) -> Iterator[list[ServerProcess]]:
    """Two servers that share a folder."""
    flags = "--http-address=127.0.0.1:0", f"--documents={tmp_path}"
    with serving(*flags) as first, serving(*flags) as second:
        yield [first, second]


def test_either_of_two_servers_answers_for_a_document(shared: list[ServerProcess], tmp_path: Path) -> None:
    url = post(shared[0], "/translate_file", "a.txt", ENGLISH.encode(), source="en", target="de").json()
    for server in shared:
        address = url["translatedFileUrl"].replace(shared[0].http_address, server.http_address)
        assert requests.get(address, timeout=PATIENCE_S).text == GERMAN
    sent = post(shared[0], "/v2/document", "a.txt", ENGLISH.encode(), target_lang="DE").json()
    place, key = f"/v2/document/{sent['document_id']}", sent["document_key"]
    until(lambda: [post(server, place, document_key=key).json()["status"] for server in shared] == ["done", "done"])
    assert post(shared[1], place, document_key="0" * 48).status_code == 404
    assert post(shared[1], f"{place}/result", document_key=key).text == GERMAN
    assert [post(server, place, document_key=key).status_code for server in shared] == [404, 404]
    assert len(list(tmp_path.iterdir())) == 1  # that of LibreTranslate, which may be fetched again
