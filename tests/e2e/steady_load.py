"""A steady load on servers that come and go: what each caller should get, and what it got."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Final

from dragoman import Client
from dragoman.channel import DEFAULT_RETRIES
from tests.server_process import PATIENCE_S, ServerProcess
from tests.waiting import until

CALLERS: Final = 4
SENTENCES: Final = [f"Tom bought {number} books." for number in range(100, 116)]
# Of servers under it: every call is decoded.
OFF: Final = ("--threads=1", "--result-cache-mb=0", "--no-coalesce")
LOOK_S: Final = 0.01
PAUSE_S: Final = 0.005  # after an answer: servers that start beside them get some of the machine

Translate = Callable[[str], str]


class SteadyLoad:
    """Callers that translate one sentence after another, until they are told that it is enough.

    Attributes:
        answers: how many each caller has had, right and wrong.
        wrong: each sentence that got another answer than it should, with that answer or error.
    """

    def __init__(self, expected: dict[str, str], connect: Callable[[], AbstractContextManager[Translate]]) -> None:
        self._expected, self._connect = expected, connect
        self._enough = threading.Event()
        self.answers = [0] * CALLERS
        self.wrong: list[object] = []
        self._threads = [threading.Thread(target=self._run, args=[number]) for number in range(CALLERS)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> "SteadyLoad":
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        with self._connect() as translate:
            while not self._enough.wait(PAUSE_S):
                text = SENTENCES[(self.answers[number] + number) % len(SENTENCES)]
                try:
                    translation: object = translate(text)
                except Exception as error:
                    translation = error
                if translation != self._expected[text]:
                    self.wrong.append((text, translation))
                self.answers[number] += 1

    def go_on(self, count: int) -> None:
        """Waits until every caller has had so many more answers."""
        before = self.answers.copy()
        while any(now < then + count for now, then in zip(self.answers, before, strict=True)):
            assert all(thread.is_alive() for thread in self._threads)
            time.sleep(LOOK_S)


@contextmanager
def grpc_caller(address: str, retries: int = DEFAULT_RETRIES) -> Iterator[Translate]:
    """Calls over gRPC."""
    with Client(address, timeout_s=PATIENCE_S, retries=retries) as client:
        yield lambda text: client.translate(text, model="en-de").text


@contextmanager
def http_caller(address: str) -> Iterator[Translate]:
    """Calls over one connection of HTTP after another, as the server ends them; makes no call twice."""
    with closing(http.client.HTTPConnection(address, timeout=PATIENCE_S)) as connection:

        def translate(text: str) -> str:
            body = json.dumps({"contents": [text], "model": "en-de"})
            connection.request("POST", "/v1/translate", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            return str(json.loads(answer.read())["translations"][0]["translatedText"])

        yield translate


def expected_of(server: ServerProcess) -> dict[str, str]:
    """Translates all sentences once."""
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        translations = client.translate(SENTENCES, model="en-de")
    return {text: translation.text for text, translation in zip(SENTENCES, translations, strict=True)}


def answered_by(server: ServerProcess, protocol: str = "grpc") -> int:
    """Counts the calls that a server has answered."""
    return int(server.metric("requests_total", method="TranslateText", code="OK", protocol=protocol))


def until_served_by(server: ServerProcess, protocol: str = "grpc") -> None:
    """Waits until callers have found a server."""
    until(lambda: answered_by(server, protocol) >= CALLERS)
