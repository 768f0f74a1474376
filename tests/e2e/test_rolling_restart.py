"""Servers that stop or die under load and come back: clients that try again lose nothing."""

import signal
import threading
import time
from collections.abc import Callable

from dragoman import Client, LoadingError, ServerUnavailableError
from tests.server_process import PATIENCE_S, ServerProcess

CALLERS = 4
SENTENCES = [f"Tom bought {number} books." for number in range(100, 116)]
LOOK_S = 0.01
OFF = ("--threads=1", "--result-cache-mb=0", "--no-coalesce")


class Load:
    """Callers that translate one sentence after another, until they are told that it is enough."""

    def __init__(self, address: str, expected: dict[str, str], translate: Callable[[Client, str], str]) -> None:
        self._address, self._expected, self._translate = address, expected, translate
        self._enough = threading.Event()
        self.answers = [0] * CALLERS
        self.wrong: list[object] = []
        self._threads = [threading.Thread(target=self._run, args=[number]) for number in range(CALLERS)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        with Client(self._address, timeout_s=PATIENCE_S) as client:
            while not self._enough.is_set():
                text = SENTENCES[(self.answers[number] + number) % len(SENTENCES)]
                try:
                    translation: object = self._translate(client, text)
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

    def end(self) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()


def expected_of(server: ServerProcess) -> dict[str, str]:
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        translations = client.translate(SENTENCES, model="en-de")
    return {text: translation.text for text, translation in zip(SENTENCES, translations, strict=True)}


def translated(client: Client, text: str) -> str:
    return client.translate(text, model="en-de").text


def until_served_by(server: ServerProcess) -> None:
    """Waits until callers have found a server."""
    while server.metric("requests_total", method="TranslateText", code="OK") < CALLERS:
        assert server.process.poll() is None
        time.sleep(LOOK_S)


def test_a_rolling_restart_loses_nothing(launch) -> None:
    servers = [launch("--shutdown-delay-s=0.5", *OFF) for _ in range(2)]
    for server in servers:
        server.wait_until_serving()
    target = "ipv4:" + ",".join(server.address for server in servers)
    load = Load(target, expected_of(servers[0]), translated)
    for place, server in enumerate(servers):
        until_served_by(server)
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0
        load.go_on(20)  # the other one serves them all
        servers[place] = launch(f"--address={server.address}", "--shutdown-delay-s=0.5", *OFF)
        servers[place].wait_until_serving()
        until_served_by(servers[place])
    load.go_on(20)
    load.end()
    assert load.wrong == []


def test_a_killed_server_comes_back_and_those_who_try_again_get_everything(launch) -> None:
    server = launch(*OFF)
    server.wait_until_serving()
    failures: list[ServerUnavailableError] = []

    def translate(client: Client, text: str) -> str:
        while True:
            try:
                return translated(client, text)
            except ServerUnavailableError as error:
                failures.append(error)

    load = Load(server.address, expected_of(server), translate)
    for _ in range(2):
        load.go_on(10)
        server.signal(signal.SIGKILL)
        assert server.exit_code() == -signal.SIGKILL
        before = len(failures)
        while len(failures) < before + CALLERS:  # all of its own tries of each caller have failed
            assert load.wrong == []
            time.sleep(LOOK_S)
        server = launch(f"--address={server.address}", *OFF)
        server.wait_until_serving()
        until_served_by(server)
    load.go_on(10)
    load.end()
    assert load.wrong == []
    # A last try may meet a server that is there again and loads.
    assert {ServerUnavailableError} <= {type(error) for error in failures} <= {ServerUnavailableError, LoadingError}
