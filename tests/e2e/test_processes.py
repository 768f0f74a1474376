"""`dragoman serve --processes 2`: real servers on the same ports under one supervisor, which are killed and stopped."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import requests
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import Translation
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.e2e.http_client import call
from tests.e2e.test_lifecycle import LONGER, MEDIUM, Background, wait_until_decoding
from tests.server_process import PATIENCE_S, ServerProcess
from tests.waiting import until

ENGLISH, GERMAN = "Where did you learn to cook?", "Wo hast du kochen gelernt?"
CONNECTIONS = 32  # so many do not all reach the same process


@pytest.fixture
def servers(serve) -> Iterator[ServerProcess]:
    """Two, ended by the test."""
    process = serve("--processes=2", "--threads=1", "--http-address=127.0.0.1:0")
    wait_for(process, "all processes serve")
    yield process
    assert "Traceback" not in (log := "".join(process.log)), log


def wait_for(process: ServerProcess, event: str, times: int = 1) -> None:
    """Wait until so many lines say so; those of several processes come in any order."""
    until(lambda: sum(f'"event": "{event}"' in line for line in list(process.log)) >= times, event)


def started(process: ServerProcess) -> dict[str, int]:
    """Give the number of each process, the newest of each name."""
    lines = map(json.loads, list(process.log))
    return {line["process"]: line["pid"] for line in lines if line["event"] == "a process has started"}


def end(process: ServerProcess) -> None:
    process.signal(signal.SIGTERM)
    assert process.exit_code() == 0
    assert sum(json.loads(line)["event"] == "stopped" for line in process.log) == 2


def translate_over_new_connections(process: ServerProcess, text: str) -> None:
    request = pb.TranslateTextRequest(contents=[text], model="en-de")
    for _ in range(CONNECTIONS):  # a channel after another may get its connection, unless each has a pool of its own
        with grpc.insecure_channel(process.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            answer = TranslationStub(channel).TranslateText(request, timeout=PATIENCE_S)
            assert answer.translations[0].translated_text


def test_all_protocols_answer_and_both_processes_take_calls(servers: ServerProcess) -> None:
    assert len(set(started(servers).values())) == 3
    translate_over_new_connections(servers, ENGLISH)
    assert servers.metric("result_cache_misses_total") == 2  # each has a cache of its own
    assert servers.metric("requests_total", method="TranslateText", code="OK", protocol="grpc") == CONNECTIONS
    assert servers.metric("request_duration_seconds_count", method="TranslateText") == CONNECTIONS
    assert (servers.metric("processes"), servers.metric("serving"), servers.metric("slots")) == (2, 1, 64)
    assert servers.metric("model_info", model="en-de") == 1
    with grpc.insecure_channel(servers.address) as channel:
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert health.status == health_pb2.HealthCheckResponse.SERVING
    assert call(servers, "POST", "/translate", {"q": ENGLISH, "source": "en", "target": "de"}).json == {
        "translatedText": GERMAN
    }
    assert call(servers, "GET", "/").status == 200
    files = {"file": ("a.md", ENGLISH.encode()), "source": (None, "en"), "target": (None, "de")}
    sent = requests.post(f"http://{servers.http_address}/translate_file", files=files, timeout=PATIENCE_S)
    for _ in range(CONNECTIONS):  # whichever process is asked
        assert requests.get(sent.json()["translatedFileUrl"], timeout=PATIENCE_S).text == GERMAN
    servers.signal(signal.SIGHUP)
    wait_for(servers, "reloaded", times=2)
    end(servers)


def test_where_one_is_killed_the_other_serves_and_another_takes_its_place(servers: ServerProcess) -> None:
    translate_over_new_connections(servers, ENGLISH)
    before = servers.scrape()
    killed = started(servers)
    os.kill(killed["server 1"], signal.SIGKILL)
    wait_for(servers, "a process has ended: another is started")
    translate_over_new_connections(servers, ENGLISH)
    wait_for(servers, "all processes serve", times=2)
    translate_over_new_connections(servers, ENGLISH)
    after = servers.scrape()
    for name in ("requests_total", "request_duration_seconds_bucket", "source_tokens_total"):
        assert after.total(name) >= before.total(name) > 0
    assert (after.total("processes"), after.total("slots")) == (2, 64)
    assert started(servers)["server 1"] != killed["server 1"]
    os.kill(killed["metrics"], signal.SIGKILL)
    wait_for(servers, "all processes serve", times=3)
    assert servers.metric("processes") == 2
    end(servers)


def test_a_signal_drains_all_and_a_second_one_does_not_wait(servers: ServerProcess) -> None:
    running = [Background(servers.address, MEDIUM) for _ in range(4)]
    wait_until_decoding(servers)
    servers.signal(signal.SIGTERM)
    for one in running:
        one.join()
    assert all(isinstance(one.outcome, Translation) for one in running), [one.outcome for one in running]
    assert servers.exit_code() == 0


def test_a_second_signal_does_not_wait_for_calls(servers: ServerProcess) -> None:
    running = Background(servers.address, LONGER)
    wait_until_decoding(servers)
    servers.signal(signal.SIGINT)
    wait_for(servers, "draining", times=2)
    servers.signal(signal.SIGINT)
    running.join()
    assert isinstance(running.outcome, Exception)
    assert servers.exit_code() == 0


def test_where_the_supervisor_is_killed_all_end(servers: ServerProcess) -> None:
    pids = started(servers).values()
    servers.signal(signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert servers.exit_code() == -signal.SIGKILL


def test_what_cannot_be_started_ends_all_with_its_reason(launch, tmp_path: Path) -> None:
    server = launch("--processes=2", f"--glossaries={tmp_path / 'none'}")
    assert server.exit_code() == 2
    assert any(line.startswith("dragoman serve: ") for line in server.log)
    assert any("a process cannot be started" in line for line in server.log)


def test_a_port_of_another_server_is_not_shared(server: ServerProcess) -> None:
    other = ServerProcess([f"--address={server.address}", "--processes=2"])
    assert other.exit_code() == 2
    assert re.fullmatch(rf"dragoman serve: cannot listen on {server.address} \(--address\): .*in use\n", other.log[-1])
