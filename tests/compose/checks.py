"""What must be true of the running stack; every check is a function of the stack that raises AssertionError."""

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial, reduce
from http.client import HTTPConnection
from itertools import count

import grpc
import pytest
import requests
from stack import ROOT, Stack, until

from dragoman import Client
from dragoman.errors import UnknownLanguagePairError
from dragoman.v1.translation_pb2 import TranslateTextRequest
from dragoman.v1.translation_pb2_grpc import TranslationStub

SENTENCE = "How are you today?"
_LONG_TEXT = " ".join(f"There are {number} trees in the garden." for number in range(200))
_CALLERS = 8
_PATIENCE_S = 30.0
_STRANGER = "192.0.2.7"  # an address of no machine
_OF_WAITS = "dragoman_model_wait_duration_seconds"  # has no data here: the models are always in memory
_HARDENING = {
    "ReadonlyRootfs": True,
    "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges:true"],
    "Memory": 2 << 30,
}
_DASHBOARD = ROOT / "deploy/grafana/dashboards/dragoman.json"

Translate = Callable[[str], str]


def hardened(stack: Stack) -> None:
    """A replica is not root, cannot write to its file system, has no capability, and no torch."""
    [replica] = stack.replicas()
    known = stack.inspect(replica)
    host = {name: known["HostConfig"][name] for name in _HARDENING}
    assert host == _HARDENING, host
    assert known["Config"]["User"] == "10001:10001", known["Config"]["User"]
    _fails_inside(stack, replica, "open('/opt/dragoman/probe', 'w')", "Read-only file system")
    _fails_inside(stack, replica, "import torch", "ModuleNotFoundError")


def _fails_inside(stack: Stack, replica: str, program: str, error: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        stack.docker("exec", replica, "python", "-c", program)
    assert error in raised.value.stderr, raised.value.stderr


def translates(stack: Stack) -> None:
    """The balancer passes on translations, streams, batches while they are sent, and precise errors."""
    with Client(stack.address) as client:
        whole = client.translate(SENTENCE, source_language="en", target_language="de")
        assert whole.text not in ("", SENTENCE), whole
        served = [model.name for model in client.list_models()]
        assert (whole.model, served) == ("en-de", ["de-en", "en-de"]), (whole, served)
        back = client.translate(whole.text, source_language="de", target_language="en")
        assert back.model == "de-en", back
        deltas = client.stream(SENTENCE, source_language="en", target_language="de")
        assert "".join(delta.text for delta in deltas) == whole.text
        answered = threading.Event()

        def when_answered() -> Iterator[str]:
            yield SENTENCE
            assert answered.wait(_PATIENCE_S), "no answer to the first text of a batch before the second is sent"
            yield SENTENCE

        for _, translation in client.translate_many(when_answered(), model="en-de"):
            assert translation.text == whole.text
            answered.set()
        with pytest.raises(UnknownLanguagePairError):
            client.translate(SENTENCE, source_language="en", target_language="xx")


def speaks_http(stack: Stack) -> None:
    """The balancer passes on the HTTP port: translations, events, precise errors, the page, and who calls."""
    with Client(stack.address) as client:
        expected = client.translate(SENTENCE, model="en-de").text
    asked = {"contents": [SENTENCE], "targetLanguageCode": "de", "sourceLanguageCode": "auto"}
    status, body = _http(stack, "POST", "/v1/translate", asked)
    [translation] = json.loads(body)["translations"]
    assert (status, translation["translatedText"], translation["detectedLanguageCode"]) == (200, expected, "en"), body
    status, body = _http(stack, "POST", "/v1/translate:stream", asked)
    pieces = [json.loads(event.removeprefix("data: ")) for event in body.strip().split("\n\n")]
    assert "".join(piece.get("textDelta", "") for piece in pieces) == expected, body
    status, body = _http(stack, "POST", "/translate", {"q": SENTENCE, "source": "en", "target": "de"})
    assert (status, json.loads(body)) == (200, {"translatedText": expected}), body
    status, body = _http(stack, "POST", "/v1/translate", {**asked, "targetLanguageCode": "xx"})
    reasons = [detail.get("reason") for detail in json.loads(body)["error"]["details"]]
    assert (status, UnknownLanguagePairError.reason in reasons) == (400, True), body
    assert _http(stack, "GET", "/health")[0] == 200
    status, body = _http(stack, "GET", "/")
    assert (status, "page/page.js" in body) == (200, True), body
    assert _http(stack, "GET", "/page/page.js")[0] == 200
    _http(stack, "POST", "/v1/translate", asked, {"x-forwarded-for": _STRANGER})
    callers = stack.callers()
    assert callers, "no call is in the log"
    assert _STRANGER not in callers, callers
    seen = 'sum(dragoman_requests_total{protocol="http",code="OK"})'
    until(lambda: stack.query_value(seen) > 0, "Prometheus sees calls over HTTP")


def _http(
    stack: Stack, method: str, path: str, content: object = None, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    """Make one call; gives the status and the body of the answer."""
    connection = HTTPConnection(stack.http_address, timeout=_PATIENCE_S)
    with closing(connection):
        body = None if content is None else json.dumps(content)
        connection.request(method, path, body, {"content-type": "application/json"} | (headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def dashboard_has_data(stack: Stack) -> None:
    """Every query of every panel finds series in Prometheus, while there is traffic."""
    panels = json.loads(_DASHBOARD.read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    queries = [_chosen_nothing(each) for each in expressions if _OF_WAITS not in each]
    done = threading.Event()

    def traffic() -> None:
        for number in count():
            if done.is_set():
                return
            translates(stack)
            speaks_http(stack)
            with Client(stack.address) as client:  # a text that no cache knows: there is always something to decode
                text = f"There are {number} trees in the garden, and {number} birds."
                client.translate(text, model="en-de", quality_estimate=True)

    with ThreadPoolExecutor(1) as callers:
        future = callers.submit(traffic)
        try:
            for query in queries:
                until(partial(stack.query, query), f"data for {query}")
        finally:
            done.set()
    future.result()
    until(lambda: {rule["health"] for rule in stack.rules()} == {"ok"}, "every alert rule is evaluated")
    assert "ok" in stack.grafana("/api/health")
    mounted = stack.compose("exec", "--no-TTY", "grafana", "cat", "/etc/grafana/dashboards/dragoman.json")
    assert mounted == _DASHBOARD.read_text()


def _chosen_nothing(query: str) -> str:
    """Write what Grafana writes in place of the variables where a user has chosen nothing."""
    chosen = {"$__rate_interval": "1m", "$job": "dragoman", "$instance": ".*", "$model": ".*"}
    return reduce(lambda text, name: text.replace(name, chosen[name]), chosen, query)


def runbooks_open(stack: Stack) -> None:
    """Prometheus serves the page of the alerts, under the address that its notifications name."""
    assert stack.prometheus("/user/runbooks.md") == (ROOT / "docs/runbooks.md").read_text()


def alerts_are_tested(stack: Stack) -> None:
    """The configuration is valid, and the unit tests of the alert rules pass, by the tool of that very Prometheus."""
    inside = ("exec", "--no-TTY", "--env", "TMPDIR=/prometheus", "prometheus")  # nothing else can be written to
    stack.compose(*inside, "promtool", "check", "config", "/etc/prometheus/prometheus.yml")
    files = (f"/etc/prometheus/{name}" for name in ("alerts_test.yml", "alerts_hours_test.yml"))
    stack.compose(*inside, "promtool", "test", "rules", *files)


def shared_by_two(stack: Stack) -> None:
    """With two replicas, each answers its part of the calls, and none is answered twice."""
    for way in (_with_retries(stack.address), _over_http(stack)):
        before = {replica: stack.calls(replica) for replica in stack.replicas()}
        with way as translate:
            for _ in range(40):
                translate(SENTENCE)
        shares = [stack.calls(replica) - count for replica, count in before.items()]
        assert sum(shares) == 40, shares
        assert len(shares) == 2, shares
        assert min(shares) >= 10, shares


def documents_of_two(stack: Stack) -> None:
    """With two replicas, clients that know nothing of them get their documents, by both APIs that have documents."""
    url = f"http://{stack.http_address}"
    served = Counter[str]()
    with Client(stack.address) as client:
        expected = client.translate(SENTENCE, model="en-de").text
    for _ in range(10):
        languages = {"source": (None, "en"), "target": (None, "de"), "target_lang": (None, "DE")}
        form = {"file": ("a.txt", SENTENCE), **languages}
        before = {replica: stack.calls(replica, "BatchTranslateText") for replica in stack.replicas()}
        address = requests.post(f"{url}/translate_file", files=form, timeout=_PATIENCE_S).json()["translatedFileUrl"]
        given = [requests.get(address, timeout=_PATIENCE_S).text]
        job = requests.post(f"{url}/v2/document", files=form, timeout=_PATIENCE_S).json()
        place, key = f"{url}/v2/document/{job['document_id']}", {"document_key": job["document_key"]}
        until(partial(_is_done, place, key), "the document is translated")
        given.append(requests.post(f"{place}/result", data=key, timeout=_PATIENCE_S).text)
        assert given == [expected] * 2, (address, given)
        for replica, calls in before.items():
            served[replica] += int(stack.calls(replica, "BatchTranslateText") > calls)
    assert len(+served) == 2, served


def _is_done(place: str, key: dict[str, str]) -> bool:
    return bool(requests.post(place, data=key, timeout=_PATIENCE_S).json()["status"] == "done")


def survives_kill(stack: Stack) -> None:
    """A replica that dies in the middle of its calls costs the client no call, though it does not retry."""
    victim = stack.replicas()[0]
    with (
        _without_retries(stack.address) as translate,
        _over_http(stack) as translate_over_http,
        _steady_calls(translate) as answered,
        _steady_calls(translate_over_http) as answered_over_http,
    ):
        stack.docker("kill", victim)
        until(lambda: len(stack.replicas()) == 1, "one replica is left")
        _more_calls(answered)
        _more_calls(answered_over_http)


def survives_stop(stack: Stack) -> None:
    """A replica that is told to stop finishes its calls, exits 0, and costs no call of our client or over HTTP."""
    victim = stack.replicas()[0]
    with (
        _with_retries(stack.address) as translate,
        _over_http(stack) as translate_over_http,
        _steady_calls(translate) as answered,
        _steady_calls(translate_over_http) as answered_over_http,
        ThreadPoolExecutor(2) as callers,
    ):
        long_answers = callers.map(translate, [_LONG_TEXT] * 2)  # one on each replica
        stack.docker("stop", victim)
        _more_calls(answered)
        _more_calls(answered_over_http)
    assert stack.inspect(victim)["State"]["ExitCode"] == 0, stack.docker("logs", victim)
    assert len(set(long_answers)) == 1


@contextmanager
def _without_retries(address: str) -> Iterator[Translate]:
    with grpc.insecure_channel(address, [("grpc.enable_retries", 0)]) as channel:
        stub = TranslationStub(channel)  # type: ignore[no-untyped-call]

        def translate(text: str) -> str:
            request = TranslateTextRequest(contents=[text], model="en-de")
            return str(stub.TranslateText(request, timeout=30).translations[0].translated_text)

        yield translate


@contextmanager
def _with_retries(address: str) -> Iterator[Translate]:
    with Client(address) as client:
        yield lambda text: client.translate(text, model="en-de").text


@contextmanager
def _over_http(stack: Stack) -> Iterator[Translate]:
    """Each call has a connection of its own, and is made once."""

    def translate(text: str) -> str:
        status, body = _http(stack, "POST", "/v1/translate", {"contents": [text], "model": "en-de"})
        assert status == 200, body
        return str(json.loads(body)["translations"][0]["translatedText"])

    yield translate


@contextmanager
def _steady_calls(translate: Translate) -> Iterator[list[str]]:
    """Call from several threads without a pause; all answers must be the same, and none an error.

    Yields:
        The answers so far.
    """
    expected = translate(SENTENCE)
    answered: list[str] = []
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            answered.append(translate(SENTENCE))

    with ThreadPoolExecutor(_CALLERS) as callers:
        futures: list[Future[None]] = [callers.submit(call) for _ in range(_CALLERS)]
        try:
            _more_calls(answered)
            yield answered
        finally:
            stop.set()
    for future in futures:
        future.result()
    assert set(answered) == {expected}, set(answered)


def _more_calls(answered: list[str]) -> None:
    enough = len(answered) + 300
    until(lambda: len(answered) >= enough, "300 more answers")
