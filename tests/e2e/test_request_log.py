"""What a running server writes down of its calls, and what never."""

import json
import signal
from contextlib import suppress

import grpc
import pytest

from dragoman import Client
from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from service.wire import CallProtocol

PATIENCE_S = 120.0
SECRET = "Geheimnis"
CLOSED_SETS = {
    "method": {method.name for method in pb.DESCRIPTOR.services_by_name["Translation"].methods},
    "protocol": {protocol.value for protocol in CallProtocol},
    "code": {code.name for code in grpc.StatusCode},
    "model": {"en-de"},
    "precision": {"int8"},
    "device": {"cpu"},
    "graph": {"encoder", "decoder", "search"},
    "priority": {"interactive", "bulk"},
    "outcome": {"loaded", "failed", "refused", "removed", "kept"},
}


def reasons() -> set[str]:
    """Those of all errors there are, of limits of hosts, and the ends of segments."""
    found, classes = set(), [DragomanError]
    while classes:
        known = classes.pop()
        found.add(known.reason)
        classes += known.__subclasses__()
    ends = {"EOS", "LENGTH", "REPETITION", "CANCELLED", "DEADLINE", "INTERNAL"}
    return found | ends | {"OPEN_CALLS_LIMITED", "HOST_LIMIT"}


def request(**fields) -> pb.TranslateTextRequest:
    known = {"contents": ["Good morning."], "source_language_code": "en", "target_language_code": "de"}
    return pb.TranslateTextRequest(**(known | fields))


def abuse(address: str) -> int:
    """Calls of all kinds with a secret in every field that takes a text; says how many there were."""
    requests = [
        request(contents=[f"My {SECRET} is mine.", SECRET]),
        request(contents=[f"{SECRET}\ud7ff\u0000\n{SECRET}"]),
        request(model=SECRET),
        request(source_language_code=SECRET),
        request(target_language_code=f"{SECRET}\n"),
        request(mime_type=SECRET),
        request(contents=[]),
        request(options=pb.TranslateOptions(max_target_tokens=2**31)),
    ]
    metadata = [(f"x-{SECRET}".lower(), SECRET), ("traceparent", SECRET), ("authorization", SECRET)]
    with grpc.insecure_channel(address, [("grpc.primary_user_agent", SECRET)]) as channel:
        stub = TranslationStub(channel)
        for message in requests:
            with suppress(grpc.RpcError):
                stub.TranslateText(message, metadata=metadata, timeout=PATIENCE_S)
            with suppress(grpc.RpcError):
                list(stub.StreamTranslateText(message, metadata=metadata, timeout=PATIENCE_S))
        for config in (pb.BatchTranslateTextConfig(model="en-de"), pb.BatchTranslateTextConfig(model=SECRET)):
            batch = [pb.BatchTranslateTextRequest(config=config), pb.BatchTranslateTextRequest(contents=[SECRET])]
            with suppress(grpc.RpcError):
                list(stub.BatchTranslateText(iter(batch), metadata=metadata, timeout=PATIENCE_S))
        unparsed = channel.unary_unary("/dragoman.v1.Translation/TranslateText")
        unknown = channel.unary_unary(f"/dragoman.v1.Translation/{SECRET}")
        for call in (unparsed, unknown):
            with pytest.raises(grpc.RpcError):
                call(SECRET.encode(), metadata=metadata, timeout=PATIENCE_S)
    return 2 * len(requests) + 2 + 1  # the method that is not there has no handler


def test_no_line_and_no_label_holds_what_a_caller_sent(serve) -> None:
    server = serve()
    known = {key for key in server.scrape() if key[0].startswith("dragoman_")}
    calls = abuse(server.address)
    with Client(server.address) as client:
        client.translate(f"{SECRET} is safe.", model="en-de")
        client.list_models()
    labels = {label for name, its in server.scrape() if name.startswith("dragoman_") for label in its}
    for name, value in labels:
        if name != "le":
            assert value in CLOSED_SETS.get(name, reasons()), (name, value)
    new = {key for key in server.scrape() if key[0].startswith("dragoman_")} - known
    # So many at most, whoever calls: one for each reason, and one for each method and code, or bucket.
    assert {name for name, _ in new} <= {
        *("dragoman_rejected_total", "dragoman_requests_total"),
        *(f"dragoman_request_duration_seconds_{part}" for part in ("bucket", "sum", "count")),
    }
    assert server.metric("log_lines_dropped_total") == 0
    server.signal(signal.SIGTERM)
    assert server.exit_code() == 0
    lines = [json.loads(line) for line in server.log]
    written = [line for line in lines if line["event"] == "request"]
    assert len(written) == calls + 2
    assert SECRET.lower() not in "".join(server.log).lower()

    *abused, translated, listed = written
    assert [line["code"] for line in abused if line["method"] == "BatchTranslateText"] == ["OK", "INVALID_ARGUMENT"]
    assert {line["level"] for line in abused} == {"info", "warning"}
    assert {line["reason"] for line in abused if line["code"] != "OK"} <= reasons()
    assert (translated["method"], translated["code"], translated["model"]) == ("TranslateText", "OK", "en-de")
    assert (translated["texts"], translated["segments"], translated["caller"]) == (1, 1, "ipv4:127.0.0.1")
    assert translated["source_tokens"] > 0 < translated["target_tokens"]
    times = [translated[f"{stage}_ms"] for stage in ("queue", "encode", "decode")]
    assert all(0 < time_ms < translated["duration_ms"] for time_ms in times)
    assert sum(times) <= translated["duration_ms"]
    assert (listed["method"], listed["code"], listed["texts"]) == ("ListModels", "OK", 0)


def test_what_was_not_decoded_is_told_apart(serve) -> None:
    server = serve("--log-requests=all")
    with Client(server.address) as client:
        for _ in range(2):
            client.translate(["A cat sleeps.", "A cat sleeps.", "A dog barks."], model="en-de")
    server.signal(signal.SIGTERM)
    server.exit_code()
    first, second = (line for line in map(json.loads, server.log) if line["event"] == "request")
    assert [(line["segments"], line["cached"], line["coalesced"]) for line in (first, second)] == [(3, 0, 1), (3, 3, 0)]


def test_calls_may_be_left_out(serve) -> None:
    server = serve("--log-requests=errors")
    with Client(server.address) as client:
        client.list_models()
        with pytest.raises(DragomanError):
            client.translate([], model="en-de")
    server.signal(signal.SIGTERM)
    server.exit_code()
    assert [line["reason"] for line in map(json.loads, server.log) if line["event"] == "request"] == ["INVALID_REQUEST"]


def test_nobody_waits_for_a_log_that_nobody_reads(serve) -> None:
    """The reader stops, the pipe is full, then the reader leaves: calls are answered, and what is lost is counted."""
    server = serve()
    server.reader.pause()
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        for _ in range(300):  # more lines than a pipe takes
            assert client.list_models()
        assert server.metric("log_lines_dropped_total") == 0  # they wait
        server.reader.leave()
        while not server.metric("log_lines_dropped_total"):
            assert client.list_models()
        translation = client.translate("Good morning.", model="en-de")
        assert translation.text
    server.signal(signal.SIGTERM)
    assert server.exit_code() == 0


def test_a_missing_extra_is_one_line(launch) -> None:
    program = "import sys; sys.modules['opentelemetry'] = None; from dragoman.cli import main; sys.exit(main())"
    server = launch("--otlp-endpoint=http://127.0.0.1:4317", program=("-c", program))
    assert server.exit_code() == 2
    [line] = server.log
    assert 'needs the extra "tracing" of dragoman-server (no module ' in line
    assert 'pip install "dragoman-server[tracing]"' in line
