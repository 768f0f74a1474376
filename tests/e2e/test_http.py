"""The HTTP port of a real server: its own API and Connect, answered as gRPC answers, with the same guards."""

import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from grpc_status import rpc_status
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator

from dragoman.cli import main
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.certificates import Authority, Files
from tests.e2e.http_client import call
from tests.e2e.texts import LONG
from tests.server_process import PATIENCE_S, ServerProcess, serving
from tests.waiting import until, until_free

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
CONNECT = "/dragoman.v1.Translation/"


def events(body: bytes) -> list[Any]:
    """The data of server-sent events."""
    return [json.loads(event.partition("data: ")[2]) for event in body.decode().split("\n\n") if event]


@pytest.fixture(scope="module")
def server(_bundle: None) -> Iterator[ServerProcess]:
    with serving("--http-address=127.0.0.1:0", "--http-trusted-proxies=127.0.0.1") as process:
        yield process


@pytest.fixture(scope="module")
def stub(server: ServerProcess) -> Iterator[TranslationStub]:
    with grpc.insecure_channel(server.address) as channel:
        yield TranslationStub(channel)


def test_a_translation_is_that_of_grpc(server, stub: TranslationStub) -> None:
    request = pb.TranslateTextRequest(contents=["Good morning.", "Where is the station?", " "], model="en-de")
    request.options.alternatives = 2
    request.options.alignments = request.options.quality_estimate = True
    request.request_id = "a-name"
    expected = stub.TranslateText(request, timeout=PATIENCE_S)
    assert expected.translations[0].alignments
    assert expected.translations[0].quality_estimate > 0.8
    assert not expected.translations[2].HasField("quality_estimate")
    for path in ("/v1/translate", CONNECT + "TranslateText"):
        answer = call(server, "POST", path, json_format.MessageToDict(request), connect_protocol_version="1")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        assert answer.headers["x-request-id"] == "a-name"
        assert json_format.ParseDict(answer.json, pb.TranslateTextResponse()) == expected
    assert server.metric("requests_total", method="TranslateText", code="OK", protocol="http") == 1
    assert server.metric("requests_total", method="TranslateText", code="OK", protocol="connect") == 1


texts = st.sampled_from(["Good morning.", "", "<b>Hi</b> & bye", "12 \u00fc 你好\0", "Tom.\n\nTom?"]) | st.text(
    max_size=10
)
asked = st.builds(
    pb.TranslateTextRequest,
    contents=st.lists(texts, max_size=3),
    source_language_code=st.sampled_from(["", "en", "EN", "en-US", "auto", "fr", "?"]),
    target_language_code=st.sampled_from(["de", "de", "de", "DE-at", "", "xx"]),
    model=st.sampled_from(["", "", "en-de", "none"]),
    mime_type=st.sampled_from(["", "", "text/plain", "text/html", "text/rtf"]),
    options=st.none()
    | st.builds(
        pb.TranslateOptions,
        beam_size=st.sampled_from([0, 0, 3, 4, 17]),
        alternatives=st.integers(0, 3),
        max_target_tokens=st.sampled_from([None, None, 0, 5, 10_000]),
        mean_log_probability=st.booleans(),
        alignments=st.booleans(),
        quality_estimate=st.booleans(),
        target_prefix=st.sampled_from(["", "Guten"]),
        protect_placeholders=st.booleans(),
    ),
    priority=st.sampled_from([0, 1, 2, 7]),
    all_or_nothing=st.booleans(),
)


def told_by_grpc(stub: TranslationStub, request: pb.TranslateTextRequest) -> pb.TranslateTextResponse | dict[str, Any]:
    """The answer, or the error as HTTP is to tell it, but for its number."""
    try:
        return stub.TranslateText(request, timeout=PATIENCE_S)
    except grpc.RpcError as error:
        details = [json_format.MessageToDict(detail) for detail in rpc_status.from_call(error).details]
        return {"status": error.code().name, "message": error.details(), "details": details}


@settings(max_examples=100, deadline=None)
@given(asked)
def test_what_is_asked_over_http_is_answered_as_over_grpc(server, stub: TranslationStub, request_) -> None:
    request_.request_id = "same"
    answer = call(server, "POST", "/v1/translate", json_format.MessageToDict(request_))
    if answer.status == 200:
        told = json_format.ParseDict(answer.json, pb.TranslateTextResponse())
    else:
        told = {name: value for name, value in answer.json["error"].items() if name != "code"}
    assert told == told_by_grpc(stub, request_)


def test_a_stream_is_events_whose_deltas_join_to_the_result(server) -> None:
    content = {"contents": ["Good morning. Where did you learn to cook?"], "model": "en-de"}
    answer = call(server, "POST", "/v1/translate:stream", content)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
    *deltas, last = events(answer.body)
    assert "".join(delta["textDelta"] for delta in deltas) == last["result"]["translatedText"]
    refused = call(server, "POST", "/v1/translate:stream", content | {"model": "none"})
    assert (refused.status, refused.reason) == (400, "UNKNOWN_MODEL")


def test_scores_languages_models_and_glossaries(server) -> None:
    pairs = [{"sourceText": "Good morning.", "targetText": "Guten Morgen."}]
    score = call(server, "POST", "/v1/score", {"pairs": pairs, "model": "en-de"}).json["scores"][0]
    assert score["logProbability"] < 0
    detected = call(server, "POST", "/v1/detect", {"contents": ["Where did you learn to cook?"]}).json["detections"]
    assert detected[0]["languages"][0]["languageCode"] == "en"
    models = call(server, "GET", "/v1/models?pageSize=1")
    assert [model["name"] for model in models.json["models"]] == ["en-de"]
    assert call(server, "GET", "/v1/glossaries").json == {}
    assert call(server, "POST", CONNECT + "ListModels", {}).json == models.json
    assert [call(server, "HEAD", path, content_type="").status for path in ("/v1/models", "/v1/glossaries")] == [
        200,
        200,
    ]
    for query, message in (
        ("size=1", "size: there is no such field, only pageSize, pageToken"),
        ("pageSize=1&pageSize=2", "pageSize: is given twice"),
        ("pageToken=%ff", "the parameters are not UTF-8"),
    ):
        refused = call(server, "GET", f"/v1/models?{query}")
        assert (refused.status, refused.json["error"]["message"]) == (400, message)
    assert call(server, "GET", "/health").json == {"status": "ok"}


def test_the_page_is_there_and_the_log_says_where(server) -> None:
    answer = call(server, "GET", "/")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b'data-max-text-bytes="1100000"' in answer.body
    assert f"page at http://{server.http_address}/" in [json.loads(line)["event"] for line in server.log]


def test_errors_are_those_of_grpc(server) -> None:
    answer = call(server, "POST", "/v1/translate", {"contents": [], "model": "en-de"}, x_request_id="id-1")
    assert (answer.status, answer.headers["x-request-id"]) == (400, "id-1")
    error = answer.json["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert {detail["@type"].rpartition(".")[2] for detail in error["details"]} == {
        "ErrorInfo",
        "BadRequest",
        "RequestInfo",
    }
    answer = call(server, "POST", CONNECT + "TranslateText", {"contents": ["a"], "model": "none"})
    assert (answer.status, answer.json["code"]) == (400, "invalid_argument")
    assert answer.json["details"][0]["type"] == "google.rpc.ErrorInfo"
    late = call(server, "POST", "/v1/translate", {"contents": [LONG], "model": "en-de"}, connect_timeout_ms="1")
    assert (late.status, late.json["error"]["status"]) == (504, "DEADLINE_EXCEEDED")
    for value in ("", "-1", "1.5", "99999999999"):
        answer = call(server, "POST", "/v1/translate", {"contents": ["a"]}, connect_timeout_ms=value)
        assert answer.json["error"]["message"].startswith("connect-timeout-ms: must be")
    assert call(server, "POST", CONNECT + "ListModels", {}, connect_protocol_version="2").json["code"] == (
        "invalid_argument"
    )
    assert call(server, "POST", CONNECT + "ListModels", b"", content_type="application/proto").status == 415


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/translate:stream"])
def test_a_client_that_leaves_cancels_its_call(server, path: str) -> None:
    before = server.metric("requests_total", code="CANCELLED")
    body = json.dumps({"contents": [LONG], "model": "en-de", "priority": "PRIORITY_BULK"}).encode()
    host, _, port = server.http_address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: server.metric("slots_active") > 0)
    until(lambda: server.metric("requests_total", code="CANCELLED") == before + 1)
    until_free(server)


def test_a_trusted_proxy_says_who_calls(server) -> None:
    call(server, "GET", "/v1/models", x_forwarded_for="203.0.113.9, 198.51.100.7", x_request_id="x")
    lines = [json.loads(line) for line in server.log]
    until(lambda: any('"ipv4:198.51.100.7"' in line for line in server.log))
    assert not any(line.get("caller") == "ipv4:203.0.113.9" for line in lines)


def test_keys_and_their_limits_hold(serve, tmp_path: Path, capsys) -> None:
    assert main(["api-key", "alice", "--requests-per-s=0.1", "--burst=2"]) == 0
    line, told = capsys.readouterr()
    key, file = told.split()[-1], tmp_path / "keys.toml"
    file.write_text(line)
    server = serve("--http-address=127.0.0.1:0", f"--api-keys={file}")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"x_api_key": "wrong"}):
        for method, path in (("POST", "/v1/translate"), ("POST", "/v1/translate:stream"), ("GET", "/v1/models")):
            answer = call(server, method, path, **headers)
            assert (answer.status, answer.reason) == (401, "UNAUTHENTICATED")
            assert answer.headers["www-authenticate"] == "Bearer"
    assert call(server, "GET", "/health").status == 200
    assert call(server, "GET", "/").status == 200
    assert call(server, "GET", "/v1/models", authorization=f"Bearer {key}").status == 200
    assert call(server, "GET", "/v1/models", x_api_key=key).status == 200
    refused = call(server, "GET", "/v1/models", x_api_key=key)
    assert (refused.status, refused.reason) == (429, "RATE_LIMITED")
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    assert server.metric("requests_total", protocol="http", code="UNAUTHENTICATED") == 9
    assert not any(key in line for line in server.log)


def test_pages_of_others_may_call_where_the_server_says_so(server, serve) -> None:
    asked = {"origin": "https://www.example.com", "access_control_request_method": "POST"}
    assert call(server, "OPTIONS", "/v1/translate", **asked).status == 405
    assert call(server, "GET", "/v1/models", **asked).headers["access-control-allow-origin"] is None
    open_server = serve("--http-address=127.0.0.1:0", "--http-origins=https://www.example.com")
    call(open_server, "GET", "/v1/models", x_forwarded_for="203.0.113.9")  # of no proxy that is trusted
    until(lambda: any('"ListModels"' in line for line in open_server.log))
    assert not any("203.0.113.9" in line for line in open_server.log)
    asked["access_control_request_headers"] = "authorization,content-type"
    allowed = call(open_server, "OPTIONS", "/v1/translate", **asked)
    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (200, "https://www.example.com")
    assert allowed.headers["access-control-allow-credentials"] is None
    assert call(open_server, "OPTIONS", "/v1/translate", **asked | {"origin": "https://evil.example"}).status == 400


def test_it_drains_as_grpc_does(serve) -> None:
    server = serve("--http-address=127.0.0.1:0")
    kept, running = (http.client.HTTPConnection(server.http_address, timeout=PATIENCE_S) for _ in range(2))
    with closing(kept), closing(running):
        kept.request("GET", "/health")
        assert kept.getresponse().read() == b'{"status":"ok"}'
        content = {"contents": [LONG[:30_000]], "model": "en-de"}
        running.request("POST", "/v1/translate", json.dumps(content), {"content-type": "application/json"})
        until(lambda: server.metric("slots_active") > 0)
        server.signal(signal.SIGTERM)
        server.wait_for("draining")
        assert call(server, "GET", "/health").status == 503
        kept.request("GET", "/v1/models")
        refused = kept.getresponse()
        assert (refused.status, refused.headers["connection"]) == (503, "close")
        assert json.loads(refused.read())["error"]["details"][0]["reason"] == "DRAINING"
        assert json.loads(running.getresponse().read())["translations"]
        assert server.exit_code() == 0


def test_over_tls_with_the_certificate_of_grpc_which_is_reloaded(serve, tmp_path: Path) -> None:
    authority, files = Authority(), Files(tmp_path)
    files.write(authority.issue())
    server = serve("--http-address=127.0.0.1:0", f"--tls-certificate={files.certificate}", f"--tls-key={files.key}")
    context = ssl.create_default_context(cadata=authority.pem.decode())

    def serial() -> str:
        port = server.http_address.rpartition(":")[2]
        connection = http.client.HTTPSConnection("localhost", int(port), timeout=PATIENCE_S, context=context)
        connection.request("GET", "/health")
        assert connection.getresponse().read() == b'{"status":"ok"}'
        certificate = connection.sock.getpeercert()
        connection.close()
        return certificate["serialNumber"]

    first = serial()
    files.write(authority.issue())
    server.wait_for("files reloaded")
    assert serial() != first


def test_a_client_shows_a_certificate_where_grpc_asks_for_one(serve, tmp_path: Path) -> None:
    authority, files = Authority(), Files(tmp_path)
    files.write(authority.issue())
    files.client_ca.write_bytes(authority.pem)
    tls = (f"--tls-certificate={files.certificate}", f"--tls-key={files.key}", f"--tls-client-ca={files.client_ca}")
    server = serve("--http-address=127.0.0.1:0", *tls)
    port = int(server.http_address.rpartition(":")[2])
    context = ssl.create_default_context(cadata=authority.pem.decode())
    for shows in (False, True):
        if shows:
            context.load_cert_chain(files.certificate, files.key)
        connection = http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_S, context=context)
        with closing(connection):
            try:
                connection.request("GET", "/health")
                assert connection.getresponse().status == 200
                assert shows
            except OSError:
                assert not shows


@pytest.mark.parametrize(("command", "output"), re.findall(r"^\$ (curl .*)\n(.*)$", PAGE, re.MULTILINE))
def test_the_commands_of_the_page_print_what_it_says(default_models, command: str, output: str) -> None:
    done = subprocess.run(
        ["bash", "-c", command.replace("127.0.0.1:8080", default_models.http_address)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.stdout.strip(), done.stderr) == (output, "")


def test_the_description_is_valid_openapi(server) -> None:
    document = call(server, "GET", "/v1/openapi.json").json
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    paths = {path for path in document["paths"] if path.startswith("/v1/")}
    assert {"/v1/translate", "/v1/translate:stream", "/v1/score", "/v1/detect", "/v1/models"} <= paths
