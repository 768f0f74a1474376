import json
import re
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.telemetry.access_log import CallStats, Interval, as_json, for_people

PAGE = (Path(__file__).parents[4] / "docs/observability.md").read_text(encoding="utf-8")
NOW_S = 1_795_276_800.25  # 2026-11-21T16:00:00.25Z


def record(**fields) -> CallStats:
    known = {"request_id": "id-7", "caller": "ipv4:127.0.0.1", "model": "en-de", "duration_s": 0.0125}
    return CallStats("TranslateText", queue=Interval(1.0, 1.5), **(known | fields))


def test_json_has_every_field() -> None:
    call = record(
        texts=2,
        failed_texts=1,
        segments=9,
        cached=3,
        coalesced=4,
        source_tokens=20,
        target_tokens=30,
        encode=Interval(1.5, 1.75),
        decode=Interval(1.75, 2.75),
        trace_id="abc",
    )
    fields = json.loads(as_json(call, NOW_S))
    assert fields == {
        "timestamp": "2026-11-21T16:00:00.250000Z",
        "level": "info",
        "event": "request",
        "protocol": "grpc",
        "method": "TranslateText",
        "code": "OK",
        "reason": "",
        "request_id": "id-7",
        "caller": "ipv4:127.0.0.1",
        "model": "en-de",
        "trace_id": "abc",
        "texts": 2,
        "failed_texts": 1,
        "segments": 9,
        "cached": 3,
        "coalesced": 4,
        "source_tokens": 20,
        "target_tokens": 30,
        "queue_ms": 500.0,
        "encode_ms": 250.0,
        "decode_ms": 1000.0,
        "duration_ms": 12.5,
    }


def test_every_field_is_described() -> None:
    fields = json.loads(as_json(record(), NOW_S))
    described = re.findall(r"`(\w+)`", PAGE.split("## The log")[1].split("\n## ")[0])
    assert set(fields) <= set(described)


@given(name=st.text())
def test_json_is_one_line_whatever_a_name_holds(name: str) -> None:
    line = as_json(record(request_id=name, caller=name, model=name), NOW_S)
    fields = json.loads(line)
    assert fields["request_id"] == fields["caller"] == fields["model"] == name
    assert "\n" not in line


@pytest.mark.parametrize(
    ("code", "level"),
    [
        (grpc.StatusCode.OK, "info"),
        (grpc.StatusCode.INVALID_ARGUMENT, "warning"),
        (grpc.StatusCode.INTERNAL, "error"),
    ],
)
def test_the_level_is_the_servers_view_of_the_end(code: grpc.StatusCode, level: str) -> None:
    assert json.loads(as_json(record(code=code), NOW_S))["level"] == level


def test_people_read_the_end_first() -> None:
    line = for_people(record(texts=1, segments=2, coalesced=1, trace_id="abc"), NOW_S)
    assert line == (
        "2026-11-21T16:00:00.250000Z [info   ] grpc TranslateText OK in 12.5 ms; en-de: 1 text, 2 segments "
        "(0 cached, 1 coalesced), 0 tokens in, 0 out; queue 500.0, encode 0.0, decode 0.0 ms; "
        "ipv4:127.0.0.1 id-7 trace abc"
    )


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 texts, 0 segments, 0 tokens in, 0 out;"),
        (1, "1 text, 1 segment, 1 token in, 1 out;"),
        (2, "2 texts, 2 segments, 2 tokens in, 2 out;"),
    ],
)
def test_people_read_one_thing_or_several(count: int, words: str) -> None:
    fields = dict.fromkeys(("texts", "segments", "source_tokens", "target_tokens"), count)
    assert f" en-de: {words}" in for_people(record(**fields), NOW_S)


def test_people_read_the_reason_of_an_error_and_nothing_of_work_that_was_not_done() -> None:
    refused = record(model="", code=grpc.StatusCode.UNAVAILABLE, reason="DRAINING")
    assert for_people(refused, NOW_S) == (
        "2026-11-21T16:00:00.250000Z [warning] grpc TranslateText UNAVAILABLE DRAINING in 12.5 ms; ipv4:127.0.0.1 id-7"
    )
