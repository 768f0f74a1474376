"""LibreTranslate's API before handlers whose engine the tests play."""

import asyncio
from typing import Any

import pytest
from starlette.types import ASGIApp

from dragoman.v1 import translation_pb2 as pb
from plugins.http import application
from plugins.http.calls import Calls
from plugins.http.forwarded import TrustedProxies
from plugins.protocols.libretranslate import LibreTranslate
from plugins.protocols.parameter_calls import ParameterCalls
from service.handlers.translation import TranslationHandlers
from service.wire import CallProtocol
from tests.unit.plugins.http.asgi import call
from tests.unit.plugins.http.keyed import KEY, keyed
from tests.unit.service.played_engine import PlayedEngine

ASKED = {"q": "tom", "source": "en", "target": "de"}


def app_of(played: PlayedEngine, handlers: TranslationHandlers | None = None) -> ASGIApp:
    handlers = handlers or played.handlers
    calls = ParameterCalls(Calls(handlers, 9_000_000, TrustedProxies([])), CallProtocol.LIBRETRANSLATE, "api_key")
    return application.make(LibreTranslate(handlers, calls).routes(), [])


@pytest.mark.parametrize(("method", "path"), [("POST", "/translate"), ("GET", "/languages"), ("POST", "/detect")])
async def test_a_server_that_loads_says_when_to_try_again(closed_played, method: str, path: str) -> None:
    answer = await call(app_of(closed_played), method, path, ASKED)
    assert (answer.status, answer.json) == (503, {"error": "the models are being loaded"})
    assert answer.headers["retry-after"] == "1"


async def test_a_translation(played) -> None:
    answer = asyncio.create_task(call(app_of(played), "POST", "/translate", ASKED))
    [segment] = await played.taken(1)
    played.exhaust(segment)
    assert (await answer).json == {"translatedText": "tom"}
    assert played.records[-1].protocol == "libretranslate"


async def test_a_call_that_is_complete_is_answered_though_the_server_shuts_down(played) -> None:
    answer = asyncio.create_task(call(app_of(played), "POST", "/translate", ASKED | {"q": "good", "source": "auto"}))
    [segment] = await played.taken(1)
    played.gate.close()
    played.exhaust(segment)
    assert (await answer).json["translatedText"] == "good"


async def test_what_was_detected_is_told_though_the_server_shuts_down(played, monkeypatch) -> None:
    detect = played.handlers.detect

    async def last(*asked: Any) -> pb.DetectLanguageResponse:
        answer = await detect(*asked)
        played.gate.close()
        return answer

    monkeypatch.setattr(played.handlers, "detect", last)
    answer = await call(app_of(played), "POST", "/detect", {"q": "123"})
    assert answer.json == [{"language": "en", "confidence": 0.0}]


async def test_a_quality_estimate_is_told_where_it_is_asked_for(played) -> None:
    answer = asyncio.create_task(call(app_of(played), "POST", "/translate", ASKED | {"quality_estimate": True}))
    [segment] = await played.taken(1)
    played.exhaust(segment)
    assert (await answer).json == {"translatedText": "tom", "qualityEstimate": 0.8176}


async def test_parameters_of_the_body_win_over_those_of_the_url(played) -> None:
    answer = asyncio.create_task(
        call(app_of(played), "POST", "/translate?q=good&target=de&source=xx", {"q": "tom", "source": "en"})
    )
    [segment] = await played.taken(1)
    played.exhaust(segment)
    assert (await answer).json == {"translatedText": "tom"}


async def test_too_many_parameters_are_refused(played) -> None:
    answer = await call(app_of(played), "POST", "/translate?" + "a=1&" * 3_000, ASKED)
    assert answer.json == {"error": "there may be at most 2000 parameters"}


@pytest.mark.parametrize(
    "content",
    [{"q": "a\ud800", "source": "en", "target": "de"}, {"q": ["a", "\udfff"], "source": "en", "target": "de"}],
)
async def test_half_a_character_is_refused(played, content: dict[str, object]) -> None:
    answer = await call(app_of(played), "POST", "/translate", content)
    name = "q" if isinstance(content["q"], str) else "q[1]"
    assert (answer.status, answer.json) == (400, {"error": f"{name}: half a surrogate pair is no character"})


SAME = {"q": "tom", "source": "DE", "target": "de"}


async def test_a_text_in_the_target_language_is_a_call_as_any_other(played) -> None:
    app = app_of(played, keyed(played, requests_per_s=0.001))
    assert (await call(app, "POST", "/translate", SAME, x_api_key=KEY)).json == {"translatedText": "tom"}
    [record] = played.records
    assert (record.method, record.code.name, record.texts, record.admitted) == ("TranslateText", "OK", 1, True)
    assert (await call(app, "POST", "/translate", SAME, x_api_key=KEY)).status == 429


async def test_a_text_in_the_target_language_waits_for_a_server_that_loads(closed_played) -> None:
    assert (await call(app_of(closed_played), "POST", "/translate", SAME)).status == 503


@pytest.mark.parametrize("texts", [["a"] * 1_025, ["a" * 1_100_001], ["a" * 1_000_000] * 2])
async def test_a_text_in_the_target_language_has_the_limits_of_all(played, texts: list[str]) -> None:
    answer = await call(app_of(played), "POST", "/translate", SAME | {"q": texts})
    assert answer.status == 400
    assert answer.json["error"].startswith("q")


async def test_the_languages_of_several_texts_are_told_together(played, monkeypatch) -> None:
    guesses = {"a" * 30: {"en": 0.9, "de": 0.1}, "12": {}, "b" * 10: {"de": 1.0}}

    async def detect(asked: pb.DetectLanguageRequest, _: object) -> pb.DetectLanguageResponse:
        answer = pb.DetectLanguageResponse()
        for text in asked.contents:
            found = answer.detections.add()
            for code, confidence in guesses[text].items():
                found.languages.add(language_code=code, confidence=confidence)
        return answer

    monkeypatch.setattr(played.handlers, "detect", detect)
    answer = await call(app_of(played), "POST", "/detect", {"q": list(guesses)})
    assert answer.json == [{"language": "en", "confidence": 67.5}, {"language": "de", "confidence": 32.5}]


async def test_too_many_texts_to_detect_are_refused(played) -> None:
    answer = await call(app_of(played), "POST", "/detect", {"q": ["a"] * 1_025})
    assert (answer.status, answer.json) == (400, {"error": "q: must hold 1 to 1024 texts, holds 1025"})
