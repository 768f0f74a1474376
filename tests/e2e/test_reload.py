"""Several models in one server, and models that come, change and go while it serves."""

import json
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import Client, UnknownLanguagePairError, UnknownModelError
from dragoman.errors import from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.e2e.bundles import copy_bundle, copy_pair
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess
from tests.waiting import until

RELOADS = 3
SENTENCES = [f"Tom bought {number} books." for number in range(100, 108)]
# Loads the bundle with the name "last" once a file is in it.
LAST_WAITS = """
import sys, time
from service.registry import loading
load = loading.load
def load_later(bundle, *arguments):
    while bundle.manifest.name == "last" and not (bundle.path / "written").exists():
        time.sleep(0.02)
    return load(bundle, *arguments)
loading.load = load_later
from dragoman.cli import main
sys.exit(main())
"""
LONG = " ".join(f"Tom bought {number} books, and then he read them all." for number in range(1000, 1600))


@pytest.fixture
def models(tmp_path: Path, _bundle: None) -> Path:
    """A folder with en-de and a model that calls itself en-fr."""
    root = tmp_path / "models"
    root.mkdir()
    copy_bundle(BUNDLE, root / "en-de")
    copy_pair(root, "en", "fr")
    return root


@pytest.fixture
def serving(serve, models: Path) -> ServerProcess:
    return serve(f"--models={models}", "--threads=1")


@pytest.fixture
def client(serving: ServerProcess) -> Iterator[Client]:
    with Client(serving.address, timeout_s=PATIENCE_S) as client:
        yield client


def translated(server: ServerProcess, model: str) -> list[str]:
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        return [translation.text for translation in client.translate(SENTENCES, model=model)]


def reload(server: ServerProcess) -> None:
    server.signal(signal.SIGHUP)
    server.wait_for("reloaded")


def wait_until_retired(server: ServerProcess) -> None:
    until(lambda: not server.metric("retiring_models"))


def health(server: ServerProcess, *models: str) -> list[str]:
    """Of the server, of these models, and of the bundles on disk."""
    with grpc.insecure_channel(server.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        names = ["", *(f"dragoman.v1.Translation/{model}" for model in models), "dragoman.bundles"]
        answers = [stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=PATIENCE_S) for name in names]
    return [health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status) for answer in answers]


def refusals(server: ServerProcess) -> list[dict[str, str]]:
    lines = [json.loads(line) for line in server.log]
    return [line for line in lines if line["event"] == "a bundle was refused"]


class Caller(threading.Thread):
    """Calls again and again, never tries twice, and keeps every answer that is not as the first and every error."""

    def __init__(self, address: str, expected: list[str], *, streams: bool) -> None:
        super().__init__()
        self._address, self._expected, self._streams = address, expected, streams
        self.done = threading.Event()
        self.answers = 0
        self.faults: list[object] = []
        self.start()

    def run(self) -> None:
        with grpc.insecure_channel(self._address) as channel:
            call = self._stream if self._streams else self._translate
            stub = TranslationStub(channel)
            request = pb.TranslateTextRequest(contents=SENTENCES, model="en-de")
            while not self.done.is_set():
                try:
                    texts = call(stub, request)
                except grpc.RpcError as error:
                    self.faults.append(from_rpc_error(error))
                    continue
                self.answers += 1
                if texts != self._expected:
                    self.faults.append(texts)

    @staticmethod
    def _translate(stub: TranslationStub, request: pb.TranslateTextRequest) -> list[str]:
        return [each.translated_text for each in stub.TranslateText(request, timeout=PATIENCE_S).translations]

    @staticmethod
    def _stream(stub: TranslationStub, request: pb.TranslateTextRequest) -> list[str]:
        texts = [""] * len(request.contents)
        for piece in stub.StreamTranslateText(request, timeout=PATIENCE_S):
            texts[piece.content_index] += piece.text_delta
        return texts


def test_two_models_are_told_apart_by_name_and_by_languages(client: Client, serving: ServerProcess) -> None:
    assert [model.name for model in client.list_models()] == ["en-de", "en-fr"]
    texts = {
        client.translate("Good morning.", **choice).text
        for choice in ({"model": "en-fr"}, {"source_language": "en-US", "target_language": "de"})
    }
    assert len(texts) == 1  # they are the same model, after all
    by_languages = client.translate("Good morning.", source_language="en", target_language="fr")
    assert by_languages.model == "en-fr"
    assert client.translate("Good morning.", model="en-de").model == "en-de"
    with pytest.raises(UnknownLanguagePairError, match="the server has en to de, en to fr"):
        client.translate("Good morning.", source_language="de", target_language="en")
    with pytest.raises(UnknownModelError, match="there are: en-de, en-fr"):
        client.translate("Good morning.", model="de-en")
    assert health(serving, "en-de", "en-fr") == ["SERVING"] * 4


@pytest.mark.parametrize("flags", [(), ("--result-cache-mb=0", "--no-coalesce")])
def test_a_model_is_replaced_again_and_again_and_no_call_notices(serve, models: Path, flags: tuple[str, ...]) -> None:
    serving = serve(f"--models={models}", "--threads=1", *flags)
    expected = translated(serving, "en-de")
    slots = serving.metric("slots")
    kv_cache_bytes = serving.metric("kv_cache_bytes")
    callers = [Caller(serving.address, expected, streams=streams) for streams in (False, True, False)]
    for number in range(RELOADS):
        copy_bundle(models / "en-de", models / "en-de", parameters=1 + number)
        reload(serving)
        answers = [caller.answers for caller in callers]
        until(lambda answers=answers: all(each.answers > n for each, n in zip(callers, answers, strict=True)))
        assert all(caller.is_alive() for caller in callers)
    for caller in callers:
        caller.done.set()
        caller.join()
    assert [caller.faults for caller in callers] == [[], [], []]
    assert serving.metric("model_reloads_total", model="en-de", outcome="loaded") == RELOADS
    wait_until_retired(serving)
    assert (serving.metric("slots"), serving.metric("kv_cache_bytes")) == (slots, kv_cache_bytes)
    assert serving.metric("slots_active") == serving.metric("bundle_errors") == 0
    serving.signal(signal.SIGTERM)
    assert serving.exit_code() == 0


def test_what_a_model_has_translated_is_forgotten_with_it(client: Client, models: Path, serving) -> None:
    client.translate("Good morning.", model="en-de")
    client.translate("Good morning.", model="en-de")
    assert (serving.metric("result_cache_hits_total"), serving.metric("result_cache_misses_total")) == (1, 1)
    copy_bundle(models / "en-de", models / "en-de", parameters=1)
    reload(serving)
    wait_until_retired(serving)
    assert serving.metric("result_cache_bytes") == serving.metric("encoder_memory_cache_bytes") == 0
    client.translate("Good morning.", model="en-de")
    assert (serving.metric("result_cache_hits_total"), serving.metric("result_cache_misses_total")) == (1, 2)


def test_a_call_finishes_on_the_model_that_it_began_on(client: Client, models: Path, serving) -> None:
    outcomes: list[object] = []
    thread = threading.Thread(target=lambda: outcomes.append(client.translate(LONG, model="en-fr")))
    thread.start()
    until(lambda: serving.metric("slots_active"))
    shutil.rmtree(models / "en-fr")
    reload(serving)
    assert thread.is_alive()
    with pytest.raises(UnknownModelError):
        client.translate("Good morning.", model="en-fr")
    assert health(serving, "en-de", "en-fr") == ["SERVING", "SERVING", "NOT_SERVING", "SERVING"]
    thread.join()
    assert [outcome.segments for outcome in outcomes] == [600]
    wait_until_retired(serving)


def test_a_corrupt_bundle_is_refused_and_the_old_one_stays(client: Client, models: Path, serving) -> None:
    broken = copy_bundle(models / "en-de", models / "en-de", parameters=1)
    (broken / "decoder.onnx").unlink()
    (broken / "decoder.onnx").write_bytes(b"half of a graph")
    never = copy_pair(models, "en", "it")
    (never / "encoder.onnx").unlink()
    reload(serving)
    assert {line["model"]: line["why"].partition(": ")[0] for line in refusals(serving)} == {
        "en-de": str(broken / "decoder.onnx"),
        "en-it": str(never / "encoder.onnx"),
    }
    assert health(serving, "en-de", "en-fr", "en-it") == ["SERVING", "SERVING", "SERVING", "NOT_SERVING", "NOT_SERVING"]
    assert serving.metric("bundle_errors") == 2
    assert serving.metric("model_reloads_total", model="en-de", outcome="refused") == 1
    assert client.translate("Good morning.", model="en-de").finish_reason == "EOS"
    shutil.rmtree(never)
    copy_bundle(BUNDLE, models / "en-de")
    reload(serving)
    assert serving.metric("bundle_errors") == 0


def test_a_file_that_is_written_over_during_a_reload_is_never_served(serve, models: Path) -> None:
    """All bundles are checked before the first is loaded: the last one's encoder changes in between."""
    serving = serve(f"--models={models}", "--threads=1", program=("-c", LAST_WAITS))
    expected = translated(serving, "en-de")
    for name in ("en-de", "en-fr"):
        copy_bundle(models / name, models / name, parameters=1)
    last = copy_bundle(BUNDLE, models / "last", name="last", languages={"sources": ["en"], "targets": ["it"]})
    encoder = bytearray((last / "encoder.onnx").read_bytes())
    behind = len(encoder) * 3 // 4  # the embeddings: those of these sentences may lie elsewhere
    encoder[behind : behind + 2**20] = bytes(2**20)
    (last / "encoder.onnx").unlink()  # a link to the default model's
    shutil.copyfile(BUNDLE / "encoder.onnx", last / "encoder.onnx")
    serving.signal(signal.SIGHUP)
    serving.wait_for("loaded")
    (last / "encoder.onnx").write_bytes(encoder)
    (last / "written").touch()
    serving.wait_for("reloaded")
    [line] = refusals(serving)
    assert line["model"] == "last"
    assert line["why"].startswith(f"{last / 'encoder.onnx'}: sha256 is ")
    assert [translated(serving, name) for name in ("en-de", "en-fr")] == [expected] * 2


def test_the_last_model_stays(client: Client, models: Path, serving) -> None:
    for name in ("en-de", "en-fr"):
        shutil.rmtree(models / name)
    serving.signal(signal.SIGHUP)
    serving.wait_for("the last model stays, though its bundle is gone")
    assert client.translate("Good morning.", model="en-de").finish_reason == "EOS"
    assert serving.metric("bundle_errors") == 2


def test_a_bundle_that_is_copied_into_a_watched_folder_is_served_once_it_is_whole(serve, models: Path) -> None:
    server = serve(f"--models={models}", "--threads=1", "--watch-models-s=0.02")
    target = models / "en-it"
    target.mkdir()
    languages = {"sources": ["en"], "targets": ["it"]}
    manifest = json.loads((BUNDLE / "bundle.json").read_text()) | {"name": "en-it", "languages": languages}
    (target / "bundle.json").write_text(json.dumps(manifest))  # the wrong way round: it comes last when export writes
    server.wait_for("a bundle was refused")
    for file in sorted(BUNDLE.iterdir()):
        if file.name != "bundle.json":
            shutil.copyfile(file, target / file.name)
    server.wait_for("loaded")
    server.wait_for("reloaded")
    assert health(server, "en-it") == ["SERVING"] * 3
    assert server.metric("bundle_errors") == 0
    assert server.metric("model_reloads_total", model="en-it", outcome="loaded") == 1
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        assert client.translate("Good morning.", model="en-it").finish_reason == "EOS"
    shutil.rmtree(target)
    server.wait_for("reloaded")
    wait_until_retired(server)
    assert health(server, "en-de", "en-it") == ["SERVING", "SERVING", "NOT_SERVING", "SERVING"]


def test_a_bad_bundle_at_the_start_ends_with_2_and_one_line(launch: Callable[..., ServerProcess], models: Path) -> None:
    (models / "en-fr" / "decoder.onnx").unlink()
    server = launch(f"--models={models}")
    assert server.exit_code() == 2
    assert server.log[-1].startswith(f"dragoman serve: {models / 'en-fr' / 'decoder.onnx'}: cannot read")


def test_a_size_out_of_all_proportion_ends_a_start_with_2_and_one_line(
    launch: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    bundle = copy_bundle(BUNDLE, tmp_path / "bundle", max_target_tokens=10**7)
    server = launch(f"--models={bundle}")
    assert server.exit_code() == 2
    why = "max_target_tokens: must be less than or equal to 65536, not 10000000"
    assert server.log[-1].strip() == f"dragoman serve: {bundle / 'bundle.json'}: {why}"
    assert not any("Traceback" in line for line in server.log)


def test_a_size_out_of_all_proportion_is_refused_and_the_old_model_stays(client: Client, models: Path, serving) -> None:
    copy_bundle(models / "en-de", models / "en-de", max_target_tokens=10**30)
    reload(serving)
    [line] = refusals(serving)
    assert "max_target_tokens: must be less than or equal to 65536" in line["why"]
    assert client.translate("Good morning.", model="en-de").finish_reason == "EOS"
