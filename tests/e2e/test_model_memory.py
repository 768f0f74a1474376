"""More models on disk than have room in memory: loaded when calls need them, and gone for others."""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.memory import peak_resident_mib, resident_mib
from dragoman import Client, InvalidRequestError, ModelUnavailableError
from tests.e2e.bundles import copy_bundle, own_weights
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess, serving

CODES = ("de", "fr", "es", "it", "nl", "pt", "pl", "cs", "sv", "da", "fi", "et")
NAMES = [f"en-{code}" for code in CODES]
SENTENCES = [f"Tom bought {number} books." for number in range(100, 104)]
CALLS = 12  # of each client
CLIENTS = 4
# Few slots and small caches: what a model takes is what it uses.
SMALL = ("--threads=1", "--slots=4", "--encoder-cache-mb=1", "--result-cache-mb=1")
FOUR_MODELS_MB = 220
MIB = 2**20


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for code in CODES:
        languages = {"sources": ["en"], "targets": [code]}
        own_weights(copy_bundle(BUNDLE, root / code, name=f"en-{code}", languages=languages), code)
    return root


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[ServerProcess]:
    own = (f"--model-memory-mb={FOUR_MODELS_MB}", "--pinned-models=en-de")
    with serving(f"--models={models}", *SMALL, *own) as server:
        yield server


class Caller(threading.Thread):
    """Asks for one language after the other, some far more often than others, and never tries twice."""

    def __init__(self, address: str, expected: list[str], seed: int) -> None:
        super().__init__()
        self._address, self._expected, self._chance = address, expected, random.Random(seed)
        self.faults: list[object] = []
        self.start()

    def run(self) -> None:
        weights = [1 / rank for rank in range(1, len(CODES) + 1)]  # Zipf
        with Client(self._address, timeout_s=PATIENCE_S, retries=0) as client:
            for _ in range(CALLS):
                [code] = self._chance.choices(CODES, weights)
                try:
                    made = client.translate(SENTENCES, source_language="en", target_language=code)
                except Exception as error:
                    self.faults.append(error)
                    continue
                if [(each.text, each.model) for each in made] != [(text, f"en-{code}") for text in self._expected]:
                    self.faults.append(made)


def test_twelve_models_in_the_memory_of_four(server: ServerProcess) -> None:
    pid = server.process.pid
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        expected = [each.text for each in client.translate(SENTENCES, target_language="de")]
        assert [model.name for model in client.list_models()] == sorted(NAMES)
    assert server.metric("model_loads_total") == 1  # the pinned one, at the start
    one_model_mib = resident_mib(pid)
    callers = [Caller(server.address, expected, seed) for seed in range(CLIENTS)]
    for caller in callers:
        caller.join()
    assert [caller.faults for caller in callers] == [[]] * CLIENTS
    page = server.scrape()
    assert page.total("model_evictions_total") > 0
    assert page.total("model_evictions_total", model="en-de") == 0
    loads = page.total("model_loads_total", outcome="loaded")
    assert loads == page.total("model_loads_total") == page.total("model_evictions_total") + 4
    assert 0 < page.total("model_memory_bytes") <= FOUR_MODELS_MB * 1e6
    assert page.total("model_wait_duration_seconds_count") > 0
    # The process as it is with one model, and the others' budget; a model that left has left its memory.
    assert peak_resident_mib(pid) <= one_model_mib + FOUR_MODELS_MB * 1.1e6 / MIB


def test_every_method_has_its_model_loaded_but_for_a_bad_request(server: ServerProcess) -> None:
    with Client(server.address, timeout_s=PATIENCE_S, retries=0) as client:
        for code in CODES[1:5]:  # whatever was there, the others are not now
            client.translate("Good morning.", target_language=code)
        loads = server.metric("model_loads_total")
        with pytest.raises(InvalidRequestError, match="max_target_tokens"):
            client.translate("Good morning.", target_language="da", max_target_tokens=1_000)
        assert server.metric("model_loads_total") == loads
        many = client.translate_many(SENTENCES, target_language="da")
        assert [each.translation.model for each in many] == ["en-da"] * len(SENTENCES)
        assert "".join(each.text for each in client.stream("Good morning.", target_language="fi"))
        assert client.score("Good morning.", "Guten Morgen.", target_language="sv").model == "en-sv"
    assert server.metric("model_loads_total") == loads + 3


def test_a_damaged_bundle_fails_its_calls_alone_until_it_is_whole(server: ServerProcess, models: Path) -> None:
    encoder = models / "et" / "encoder.onnx"
    whole = encoder.read_bytes()
    with Client(server.address, timeout_s=PATIENCE_S, retries=0) as client:
        for code in CODES[1:5]:  # whatever was there, en-et is not now
            client.translate("Good morning.", target_language=code)
        encoder.unlink()  # a link
        encoder.write_bytes(whole[:100])
        with pytest.raises(ModelUnavailableError, match="model en-et could not be loaded") as refused:
            client.translate("Good morning.", target_language="et")
        assert refused.value.retry_delay_s
        assert client.translate("Good morning.", target_language="de").model == "en-de"
        encoder.write_bytes(whole)
        time.sleep(refused.value.retry_delay_s)
        assert client.translate("Good morning.", target_language="et").model == "en-et"
    assert server.metric("model_loads_total", model="en-et", outcome="failed") == 1


def test_a_model_larger_than_the_budget_ends_the_start(models: Path) -> None:
    serve = [
        sys.executable,
        "-m",
        "dragoman.cli",
        "serve",
        "--address=127.0.0.1:0",
        "--http-address=none",
        "--metrics-address=127.0.0.1:0",
    ]
    ended = subprocess.run(
        [*serve, f"--models={models}", *SMALL, "--model-memory-mb=9"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 2
    assert "model en-cs: takes " in ended.stderr.splitlines()[-1]
    assert "DRAGOMAN_MODEL_MEMORY_MB (--model-memory-mb) allows 9 MB" in ended.stderr.splitlines()[-1]


def test_calls_over_a_pivot_language_get_two_models_each_in_the_memory_of_two(tmp_path: Path) -> None:
    pairs = [("de", "en"), ("it", "en"), ("en", "fr"), ("en", "es")]
    for source, target in pairs:
        name, languages = f"{source}-{target}", {"sources": [source], "targets": [target]}
        own_weights(copy_bundle(BUNDLE, tmp_path / name, name=name, languages=languages), name)
    own = (f"--model-memory-mb={FOUR_MODELS_MB // 2}", "--pivot-language=en")
    with serving(f"--models={tmp_path}", *SMALL, *own) as server:
        ways = [("de", "fr"), ("it", "es"), ("de", "es"), ("it", "fr")]
        with Client(server.address, timeout_s=PATIENCE_S, retries=0) as client, ThreadPoolExecutor(len(ways)) as pool:
            calls = [
                pool.submit(client.translate, "Good morning.", source_language=source, target_language=target)
                for source, target in ways
            ]
            made = [call.result() for call in calls]
        assert [(each.pivot_model, each.model) for each in made] == [(f"{a}-en", f"en-{b}") for a, b in ways]
        assert server.metric("model_evictions_total") > 0
