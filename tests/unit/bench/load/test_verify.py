import json
import re
from pathlib import Path
from typing import Any

import grpc
import pytest

from bench.load import progress
from bench.load.calls import Reply
from bench.load.command import main
from bench.load.prepare import LoadSettings
from bench.load.run import run_load
from bench.load.verify import SHOWN, Answer, Verifier
from dragoman import errors
from dragoman.v1 import translation_pb2

TEXTS = ["One two three.", "Four.", "Four.", "Five six."]
DISTINCT = 3


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.txt"
    path.write_text("\n".join(TEXTS))
    return str(path)


def answer(text: str, target_tokens: int = 1) -> translation_pb2.TranslatedText:
    return translation_pb2.TranslatedText(translated_text=text, target_tokens=target_tokens)


def change_under_load(server: Any, change: Any) -> None:
    """Lets `change` at the translations of every request after those that are sent alone."""
    honest = server.translated

    def translate(text: str) -> translation_pb2.TranslatedText:
        translation = honest(text)
        if len(server.requests) > DISTINCT:
            change(text, translation)
        return translation

    server.translated = translate


async def test_each_text_is_sent_alone_then_all_answers_are_compared(server: Any) -> None:
    settings = LoadSettings(server.address, concurrency=2, requests=8, texts_per_request=2, verify_texts=500)
    report = await run_load(settings, TEXTS)
    alone = server.requests[:DISTINCT]
    assert [list(request.contents) for request in alone] == [["One two three."], ["Four."], ["Five six."]]
    assert {request.model for request in server.requests} == {"en-de"}
    assert report["num_distinct_requests"] == 2
    assert (report["verify_texts"], report["verify_unanswered"]) == (DISTINCT, 0)
    assert (report["verify_compared"], report["verify_different"]) == (16, 0)
    assert report["completed"] == 8


async def test_only_so_many_texts_are_sent_as_asked_for(server: Any) -> None:
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=4, verify_texts=2), TEXTS)
    assert {request.contents[0] for request in server.requests} == {"One two three.", "Four."}
    assert (report["verify_texts"], report["verify_compared"]) == (2, 4)


async def test_without_it_nothing_is_compared(server: Any) -> None:
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=4), TEXTS)
    assert len(server.requests) == 4
    assert not [name for name in report if name.startswith("verify")]


async def test_answers_of_the_warm_up_are_compared_too(server: Any) -> None:
    settings = LoadSettings(server.address, concurrency=1, requests=2, warmup_s=0.05, verify_texts=9)
    report = await run_load(settings, TEXTS)
    assert report["verify_compared"] == report["warmup_requests"] + 2


async def test_a_text_without_an_answer_alone_is_not_compared(server: Any) -> None:
    def refuse_the_second(number: int) -> None:
        if number == 2:
            raise errors.QueueFullError("the queue is full")

    server.on_request = refuse_the_second
    report = await run_load(LoadSettings(server.address, concurrency=1, requests=6, verify_texts=9), TEXTS)
    assert (report["verify_unanswered"], report["verify_compared"]) == (1, 4)


@pytest.mark.parametrize("field", ["translated_text", "target_tokens", "finish_reason"])
def test_command_shows_what_differs_and_exits_3(
    server: Any, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    changed: dict[str, Any] = {"translated_text": "Fünf.", "target_tokens": 77, "finish_reason": 2}

    def change(text: str, translation: translation_pb2.TranslatedText) -> None:
        if text == "Five six.":
            setattr(translation, field, changed[field])

    change_under_load(server, change)
    out = tmp_path / "out.json"
    arguments = ["--address", server.address, "--data", data, "--concurrency", "1", "--requests", "9"]
    assert main([*arguments, "--verify", "--json", str(out)]) == 3
    printed = capsys.readouterr().out
    assert re.search(r"^different: +3$", printed, re.MULTILINE)
    assert re.search(r"^text: +Five six\.$", printed, re.MULTILINE)
    under_load = next(line for line in printed.splitlines() if line.strip().startswith("under load"))
    assert str(changed[field]) in under_load
    report = json.loads(out.read_text())
    assert (report["verify_compared"], report["verify_different"]) == (9, 3)
    assert report["verify_examples"][0]["alone"]["text"] == "FIVE SIX."
    assert report["settings"]["verify"] == 500


def test_command_exits_0_when_all_are_equal(server: Any, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--address", server.address, "--data", data, "--concurrency", "1", "--requests", "4"]
    assert main([*arguments, "--verify"]) == 0
    assert re.search(r"^compared: +4 answers with those of 3 texts given alone$", capsys.readouterr().out, re.MULTILINE)


def test_command_exits_3_when_nothing_could_be_compared(
    server: Any, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse_alone(number: int) -> None:
        if number <= DISTINCT:
            raise errors.QueueFullError("the queue is full")

    server.on_request = refuse_alone
    arguments = ["--address", server.address, "--data", data, "--concurrency", "1", "--requests", "4"]
    assert main([*arguments, "--verify"]) == 3
    assert "3 texts that got no answer alone" in capsys.readouterr().out


def test_progress_counts_the_texts_sent_alone(
    server: Any, data: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_INTERVAL_S", 0.0)
    arguments = ["--address", server.address, "--data", data, "--concurrency", "1", "--requests", "1", "--verify", "2"]
    assert main(arguments) == 0
    assert re.search(r"^[012] of 2 texts alone$", capsys.readouterr().err, re.MULTILINE)


async def test_differences_are_all_counted_and_a_few_are_shown() -> None:
    verifier = Verifier(["a", "b"], texts_per_request=3)

    async def translate(request: bytes) -> Reply:
        [text] = translation_pb2.TranslateTextRequest.FromString(request).contents
        return Reply([answer(text.upper())])

    await verifier.learn(translate, translation_pb2.TranslateTextRequest())
    # The texts of request 0 are a, b, a, those of request 1 b, a, b.
    for _ in range(4):
        verifier.check(0, [answer("A"), answer("B"), answer("A")])
        verifier.check(1, [answer("A"), answer("A"), answer("B", target_tokens=2)])
    assert (verifier.compared, verifier.different) == (24, 8)
    assert len(verifier.examples) == SHOWN
    assert verifier.examples[0] == {
        "text": "b",
        "alone": Answer("B", 1, 0)._asdict(),
        "under_load": Answer("A", 1, 0)._asdict(),
    }


async def test_errors_that_are_no_answers_of_a_server_are_raised() -> None:
    async def translate(request: bytes) -> Reply:
        raise grpc.RpcError

    with pytest.raises(grpc.RpcError):
        await Verifier(["a"], 1).learn(translate, translation_pb2.TranslateTextRequest())
