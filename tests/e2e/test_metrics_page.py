import socket
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from dragoman import InvalidRequestError
from tests.server_process import PATIENCE_S


def test_the_page_is_openmetrics_on_a_port_of_its_own(server) -> None:
    request = urllib.request.Request(
        f"http://{server.metrics_address}/metrics", headers={"Accept": "application/openmetrics-text"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text")
        page = response.read().decode()
    assert page.endswith("# EOF\n")
    assert list(text_string_to_metric_families(page))
    assert server.metrics_address != server.address


IMPATIENT = """
import sys
from plugins.processes import pages
from service import server
server.HANDSHAKE_TIMEOUT_S = pages.HANDSHAKE_TIMEOUT_S = 0.5
from dragoman.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_silent_connection_is_ended(serve, processes: int) -> None:
    server = serve(f"--processes={processes}", program=("-c", IMPATIENT))
    host, _, port = server.metrics_address.rpartition(":")
    for begun in (b"", b"GET /metrics HTTP/1.1\r\nhost:"):
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
            connection.sendall(begun)
            assert connection.recv(1) == b""
    assert server.metric("slots") > 0
    assert not any("Traceback" in line for line in server.log)


def test_the_model_is_described(server) -> None:
    assert server.metric("model_info", model="en-de", precision="int8", device="cpu") == 1


def test_a_call_is_counted_and_leaves_the_gauges_at_rest(client, server) -> None:
    before = server.scrape()
    # Sentences of this test alone: others would come from a cache.
    translation = client.translate("Tom has 9001 apples. Where are the 9001 apples?", model="en-de")
    after = server.scrape()

    def grown(name: str, **labels: str) -> float:
        return after.total(name, **labels) - before.total(name, **labels)

    assert grown("requests_total", method="TranslateText", code="OK") == 1
    assert grown("request_duration_seconds_count", method="TranslateText") == 1
    assert grown("queue_duration_seconds_count") == 2
    assert grown("time_to_first_token_seconds_count") == 2
    assert grown("encode_duration_seconds_count") >= 1
    assert grown("decode_step_duration_seconds_count") >= translation.target_tokens / 2
    assert grown("decode_batch_slots_count") == grown("decode_step_duration_seconds_count")
    assert grown("source_tokens_total") >= translation.source_tokens
    assert grown("target_tokens_total") >= translation.target_tokens
    assert server.metric("slots") >= 32
    assert server.metric("kv_cache_bytes") > 0
    assert grown("length_ratio_count") == grown("segments_total") == 2
    for gauge in ("slots_active", "queue_segments", "queue_source_tokens"):
        assert server.metric(gauge) == 0


def test_a_refusal_is_counted_by_its_reason(client, server) -> None:
    count = server.metric("rejected_total", reason="INVALID_REQUEST")
    calls = server.metric("requests_total", method="TranslateText", code="INVALID_ARGUMENT")
    with pytest.raises(InvalidRequestError):
        client.translate([], model="en-de")
    assert server.metric("rejected_total", reason="INVALID_REQUEST") == count + 1
    assert server.metric("requests_total", method="TranslateText", code="INVALID_ARGUMENT") == calls + 1


def test_no_label_holds_a_value_of_a_user(client, server) -> None:
    with pytest.raises(InvalidRequestError):
        client.translate("x", model="users-model")
    with pytest.raises(InvalidRequestError):
        client.translate("x", source_language="xx", target_language="de")
    values = {value for _, labels in server.scrape() for _, value in labels}
    assert not values & {"users-model", "xx"}
